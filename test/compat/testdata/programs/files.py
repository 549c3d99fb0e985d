"""Temporary files, a memory map, links, modes, locks and times."""
import fcntl
import mmap
import os
import pathlib
import stat
import tempfile

with tempfile.NamedTemporaryFile() as f:
    f.truncate(1 << 20)
    with mmap.mmap(f.fileno(), 0) as m:
        m[100:105] = b"hello"
        m.flush()
    f.seek(100)
    print(f.read(5).decode(), f.name.startswith("/tmp/"))
with tempfile.TemporaryDirectory() as d:
    p = pathlib.Path(d, "größe und gewicht.txt")
    p.write_text("x")
    os.link(p, p.with_suffix(".hard"))
    p.with_suffix(".soft").symlink_to(p)
    p.chmod(0o700)
    os.utime(p, (1, 2))
    with open(p, "r+") as f:
        fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
    s = p.with_suffix(".soft").stat()
    print(stat.filemode(s.st_mode), s.st_nlink, int(s.st_mtime), len(list(pathlib.Path(d).iterdir())))
