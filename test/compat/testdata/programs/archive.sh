# tar and gzip, with modes kept.
set -euo pipefail
mkdir -p d/sub
echo text >d/sub/file
chmod 640 d/sub/file
ln -s sub/file d/link
tar czf d.tar.gz d
mkdir x
tar xzpf d.tar.gz -C x
stat -c %a x/d/sub/file
readlink x/d/link
gzip -t d.tar.gz && gzip -c d/sub/file | gunzip
