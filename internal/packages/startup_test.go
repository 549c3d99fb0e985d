package packages_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// importAll imports all public modules of the standard library. It leaves out
// those that show something, and distutils, which setuptools replaces.
const importAll = `
import importlib, sys, warnings
warnings.simplefilter("ignore")
for name in sorted(getattr(sys, "stdlib_module_names", ["copy", "json", "pickle", "subprocess", "typing"])):
    if name[0] != "_" and name not in ("antigravity", "distutils", "idlelib", "this"):
        try:
            importlib.import_module(name)
        except ImportError:
            pass
`

// A package runs no code in Python programs that do not import it, and replaces
// no module of the standard library.
func TestPackagesDoNotRunWhenPythonStarts(t *testing.T) {
	skill := fstest.MapFS{"run.py": {Data: []byte(`# /// script
# dependencies = ["greeting>=1"]
# ///
import os, subprocess, sys
import greeting
subprocess.run([sys.executable, "-m", "greeting.again"], check=True)
vendored = os.environ | {"PYTHONPATH": os.environ["PYTHONPATH"] + ":/skill/vendor/site-packages"}
subprocess.run([sys.executable, "-c", "import json, greeting; print(greeting.text(), flush=True)"], env=vendored, check=True)
print(greeting.text())
` + importAll)}}
	f := newFake(t)
	s, plan := pythonScene(t, f.index())
	names := importedNames(t, plan.Argv[0])
	for _, want := range []string{"sitecustomize", "usercustomize", "encodings", "runpy", "json", "typing", "subprocess", "nt"} {
		if !slices.Contains(names, want) {
			t.Errorf("Python does not look for %s: %q", want, names)
		}
	}
	members := []member{{name: "greeting/__init__.py", text: "from .site import text\n"}, {name: "greeting/site.py", text: "def text():\n    return 'hello'\n"},
		{name: "greeting/again.py", text: "print('again', flush=True)\n"}, {name: "greeting.pth", text: "import sys; sys.exit(7)\n"}}
	for _, name := range names {
		members = append(members, member{name: name + ".py", text: fmt.Sprintf("import sys\nsys.exit('%s ran')\n", name)})
	}
	f.wheel("greeting", "1.0", makeWheel("greeting", "1.0", members...))
	plan.Needs = resolve(t, skill, "run.py").Needs
	if got := s.run(t, skill, plan, s.ensure(t, skill, plan)); got != "again\nhello\nhello\n" {
		t.Errorf("the script printed %q", got)
	}
}

// importedNames returns the top-level names of the standard library, and of the
// modules for which Python or the standard library searches PYTHONPATH.
func importedNames(t *testing.T, python string) []string {
	t.Helper()
	empty := t.TempDir()
	names := []string{"usercustomize", "_virtualenv"} // depend on the installation
	tried := regexp.MustCompile(`# trying ` + regexp.QuoteMeta(empty+string(filepath.Separator)) + `(\w+)`)
	for _, args := range [][]string{{"-vv", "-c", importAll + "print(*getattr(sys, 'stdlib_module_names', ()))"}, {"-vv", "-m", "this"}} {
		cmd := exec.Command(python, args...)
		cmd.Env = append(os.Environ(), "PYTHONPATH="+empty)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		if args[1] == "-c" {
			names = append(names, strings.Fields(string(out))...)
		}
		for _, m := range tried.FindAllStringSubmatch(stderr.String(), -1) {
			names = append(names, m[1])
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
