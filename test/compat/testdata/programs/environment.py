"""A virtual environment without pip, and its interpreter."""
import subprocess
import venv

venv.create("env", with_pip=False)
out = subprocess.check_output(["env/bin/python", "-c", "import sys; print(sys.prefix, sys.prefix != sys.base_prefix)"])
print(out.decode().strip())
