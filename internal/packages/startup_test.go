package packages_test

import (
	"os"
	"path/filepath"
	"testing"
)

// A package runs no code in Python programs that do not import it.
func TestPackagesDoNotRunWhenPythonStarts(t *testing.T) {
	const text = "import sys\nsys.stderr.write('ran')\nsys.exit(7)\n"
	f := newFake(t)
	f.wheel("greeting", "1.0", makeWheel("greeting", "1.0", member{name: "greeting/__init__.py", text: "from .site import text\n"},
		member{name: "greeting/site.py", text: "def text():\n    return 'hello'\n"}, member{name: "greeting.pth", text: "import sys; sys.exit(7)\n"},
		member{name: "sitecustomize.py", text: text}, member{name: "usercustomize/__init__.py", text: text}, member{name: "encodings/__init__.py", text: text}))
	s, plan := pythonScene(t, f.index())
	p := s.ensure(t, greeter, plan)
	if got := s.run(t, greeter, plan, p); got != "hello\n" {
		t.Errorf("the script printed %q", got)
	}
	for _, name := range []string{"sitecustomize.py", "usercustomize", "encodings"} {
		if _, err := os.Stat(filepath.Join(p.Mounts[0].Host, name)); err == nil {
			t.Errorf("%s is stored", name)
		}
	}
}
