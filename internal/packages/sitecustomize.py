# Python imports this file when it starts, because PYTHONPATH contains its
# directory. It adds the installed packages to the module search path where an
# installation has them: after the standard library. In PYTHONPATH itself, they
# would come first, so their modules could replace those of the standard library
# and those that Python imports or looks for when it starts.
import os
import sys

PACKAGES = "/deps"

# Names that Python or its standard library looks for without having such a
# module: on other systems, in other versions, or if the user has one.
ABSENT = {"usercustomize", "org", "win32api", "msvcrt", "nt", "winreg", "winsound", "_overlapped", "_winapi", "_wmi"}


def block():
    """Hides modules of the packages that would run without being named."""
    names = ABSENT.union(getattr(sys, "stdlib_module_names", ()))
    for name in names.intersection(f.partition(".")[0] for f in os.listdir(PACKAGES)):
        if name not in sys.modules and not any(finder.find_spec(name, None) for finder in sys.meta_path):
            sys.modules[name] = None


def position():
    """Returns the index of the first site-packages after the standard library."""
    library = os.path.dirname(os.__file__)
    after = max((i + 1 for i, p in enumerate(sys.path) if p == library or os.path.basename(p) == "lib-dynload"), default=len(sys.path))
    sites = (i for i in range(after, len(sys.path)) if os.path.basename(sys.path[i]) in ("site-packages", "dist-packages"))
    return next(sites, len(sys.path))


itself = sys.modules.pop(__name__)
directory = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [p for p in sys.path if os.path.abspath(p) != directory]
try:
    import sitecustomize  # the file of this name that Python would import otherwise
except ImportError as e:
    if e.name != "sitecustomize":
        raise
finally:
    sys.modules.setdefault(__name__, itself)
    block()
    sys.path.insert(position(), PACKAGES)
