package loadout_test

import (
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
)

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		os.Exit(child())
	}
	goleak.VerifyTestMain(staged{m})
}

// files maps paths to contents.
type files map[string]string

func (f files) write(t *testing.T, dir string) {
	t.Helper()
	for name, text := range f {
		p := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func skillText(name, body string) string {
	return "---\nname: " + name + "\ndescription: What " + name + " is for.\n---\n" + body
}

// runtimeOf returns a runtime with the skills in a new directory.
func runtimeOf(t *testing.T, tree files) (*loadout.Runtime, string) {
	t.Helper()
	dir := t.TempDir()
	tree.write(t, dir)
	return newRuntime(t, dir), dir
}

func newRuntime(t testing.TB, dir string) *loadout.Runtime {
	t.Helper()
	rt, err := loadout.New(t.Context(), &loadout.Options{Sources: []catalog.Source{catalog.NewDir("local", catalog.User, dir, nil)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close() })
	return rt
}

func entry(t *testing.T, rt *loadout.Runtime, name string) *catalog.Entry {
	t.Helper()
	e, err := rt.Catalog().Snapshot().Get(name)
	if err != nil {
		t.Fatal(err)
	}
	return e
}
