package execution

import (
	"encoding/json"
	"io/fs"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/script"
)

// For any arguments of npx or uvx, an accepted command is one package of the
// registry, with a name and a version that the build step cannot misread.
func FuzzFetch(f *testing.F) {
	for _, s := range []string{"-y x@1.0.0 a", "-p @a/b serve", "--package=x y", "x", "--from x==1 y", "--python 3.12 x", "x[cli]>=1,<2", "x@latest", "-y\nx", "x\"]\n# ///", "x@npm:y@1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		words := strings.Split(line, " ")
		if got, err := parseNPX(words); err == nil {
			var doc struct{ Dependencies map[string]string }
			if err := json.Unmarshal(got.files["package.json"], &doc); err != nil || len(doc.Dependencies) != 1 || doc.Dependencies[got.pkg] == "" || !fs.ValidPath(got.pkg) {
				t.Errorf("npx %q: %s (%v)", words, got.files["package.json"], err)
			}
		}
		if got, err := parseUVX(words); err == nil {
			plan, err := script.Resolve(got.files, "main.py", script.Host{})
			if err != nil {
				return // an error for the arguments or the Python version
			}
			if plan.Needs == nil || len(plan.Needs.Requirements) != 1 || !strings.HasPrefix(plan.Needs.Requirements[0], strings.TrimSpace(got.pkg)) {
				t.Errorf("uvx %q: %s: %+v", words, got.files["main.py"], plan.Needs)
			}
		}
	})
}

func TestPythonVersionOfUVX(t *testing.T) {
	for args, want := range map[string]string{
		"--python 3.12 x": `# requires-python = "==3.12.*"`, "-p python3.11 x==1.0": `# requires-python = "==3.11.*"`, "x": "",
	} {
		got, err := parseUVX(strings.Fields(args))
		if err != nil {
			t.Errorf("%s: %v", args, err)
			continue
		}
		data, err := fs.ReadFile(got.files, "main.py")
		if text := string(data); err != nil || !strings.Contains(text, want) || want == "" && strings.Contains(text, "requires-python") {
			t.Errorf("%s: %q, %v", args, text, err)
		}
	}
	if _, err := parseUVX([]string{"--python", "2.7", "x"}); err == nil {
		t.Error("Python 2.7 is accepted")
	}
}
