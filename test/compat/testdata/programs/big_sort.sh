# A file of 9 MB, sorted in /tmp with little memory.
set -euo pipefail
cd /tmp
seq 1 1200000 | awk '{ print ($1 * 7919) % 1200007 }' >numbers
sort -n -S 1M -T /tmp numbers >sorted
sort -nc sorted
head -1 sorted
wc -l <sorted
