package packages

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/sandbox"
)

// Packages that an earlier version stored with such a module are installed again.
func TestStoredStartupModulesAreRefused(t *testing.T) {
	for entry, want := range map[string]string{"python-3.11-x": "sitecustomize.py runs whenever Python starts", "node-24-x": ""} {
		s := &store{dir: t.TempDir(), log: slog.New(slog.DiscardHandler)}
		d, err := s.begin(entry)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { removeAll(s.dir) })
		sum, err := d.writeFile("sitecustomize.py", sandbox.File{Size: 1}, strings.NewReader("\n"))
		if err != nil {
			t.Fatal(err)
		}
		if err := d.finish([]file{{Path: "sitecustomize.py", Size: 1, SHA256: sum}}); err != nil {
			t.Fatal(err)
		}
		_, err = s.publish(d)
		if changed, ok := errors.AsType[*ChangedError](err); ok != (want != "") || ok && changed.Error() != want {
			t.Errorf("%s: %v, want %q", entry, err, want)
		}
	}
}

func TestIsStartupModule(t *testing.T) {
	for name, want := range map[string]bool{
		"sitecustomize.py": true, "usercustomize.cpython-313-x86_64-linux-gnu.so": true, "encodings/utf_8.py": true, "os.pyc": true, "site/__init__.py": true,
		"greeting/site.py": false, "sites.py": false, "os.path-1.0.dist-info/RECORD": false, "greeting.pth": false,
	} {
		if got := isStartupModule(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
