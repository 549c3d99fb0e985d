"""What is copied from the skill can be changed, and new files have the usual modes."""
import os
import shutil
import stat

shutil.copytree(os.environ["LOADOUT_SKILL"], "copy")
shutil.copy(os.path.join(os.environ["LOADOUT_SKILL"], "copies.py"), "one.py")
for path in ("copy/copies.py", "one.py"):
    with open(path, "a") as f:
        f.write("# more\n")
with open("copy/new", "w"):
    pass
os.mkdir("dir")
print(*(stat.filemode(os.stat(p).st_mode) for p in ("one.py", "copy", "copy/new", "dir")))
