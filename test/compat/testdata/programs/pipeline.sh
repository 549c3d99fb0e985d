# sed, awk, sort, uniq, cut, xargs, find and join.
set -euo pipefail
seq 1 1000 | awk '{ print $1 % 7, $1 }' | sort -k1,1n -k2,2n | sed 's/ /:/' | cut -d: -f1 | uniq -c | awk '{ n += $1 } END { print NR, n }'
mkdir -p d/e
touch d/a.txt d/e/b.txt
find d -name '*.txt' -print0 | xargs -0 -n1 basename | sort | paste -sd' '
