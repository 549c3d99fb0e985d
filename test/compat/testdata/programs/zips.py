"""A ZIP archive and a compressed tar archive, written and read."""
import io
import lzma
import tarfile
import zipfile

with zipfile.ZipFile("a.zip", "w", zipfile.ZIP_DEFLATED) as z:
    for n in range(50):
        z.writestr("dir/%d.txt" % n, "text " * n)
with zipfile.ZipFile("a.zip") as z:
    z.extractall("unpacked")
    print(z.testzip(), len(z.namelist()))
with tarfile.open("a.tar.xz", "w:xz") as t:
    t.add("unpacked")
with tarfile.open(fileobj=io.BytesIO(open("a.tar.xz", "rb").read())) as t:
    print(sum(m.isfile() for m in t), len(lzma.decompress(lzma.compress(b"x" * 100000))))
