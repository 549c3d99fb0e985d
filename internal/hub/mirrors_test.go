package hub_test

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/encryption"
	"github.com/loadout-dev/loadout/internal/hub"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

// serve runs the background work of a node until the test ends.
func (n *node) serve(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- n.Hub.Serve(t.Context(), l) }()
	t.Cleanup(func() { // the test's context is canceled before
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// An edit in a directory of the operator is seen on all nodes, also on one that has no
// directories. Bundled skills are listed too.
func TestDirectoriesAreInTheLibrary(t *testing.T) {
	for name, address := range map[string]func(testing.TB) string{"SQLite": storetest.SQLite, "PostgreSQL": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write := func(text string) {
				t.Helper()
				path := filepath.Join(dir, "tides", "SKILL.md")
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte("---\nname: tides\ndescription: "+text+"\n---\nLook at the table."), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			write("Tells the tides.")
			o := hub.Options{Database: address(t), Keys: []encryption.Key{encryption.NewKey()}, Accounts: true, FirstAdmin: &hub.FirstAdmin{Name: "root", Password: secret}, BundledSkills: true}
			asked := make(chan bool, 1)
			o.Skills = func(single bool) ([]catalog.Source, error) {
				asked <- single
				return []catalog.Source{catalog.NewDir("skills", catalog.User, dir, nil)}, nil
			}
			one := start(t, o)
			if <-asked {
				t.Error("a hub with accounts asks for the directories of a single user")
			}
			if name == "PostgreSQL" {
				o.Skills = nil
			} else {
				o.Skills = func(bool) ([]catalog.Source, error) {
					return []catalog.Source{catalog.NewDir("skills", catalog.User, dir, nil)}, nil
				}
			}
			two := start(t, o)
			one.serve(t)
			two.serve(t)
			here := one.signIn(t, "root", secret)
			there := caller{node: two, cookie: here.cookie}
			listed := func(c caller, query string) string {
				return c.send(t, "GET", "/api/v1/skills?"+query, nil).want(t, http.StatusOK).body
			}
			for _, c := range []caller{here, there} {
				eventually(t, func() bool { return strings.Contains(listed(c, "namespace=hub"), "Tells the tides.") })
				if body := listed(c, "namespace=bundled"); !strings.Contains(body, `"csv-analysis"`) || !strings.Contains(body, `"runnable":true`) {
					t.Errorf("the bundled skills are %s", body)
				}
			}
			write("Tells the moon.")
			for _, c := range []caller{here, there} {
				eventually(t, func() bool { return strings.Contains(listed(c, ""), "Tells the moon.") })
			}
		})
	}
}

// A hub without directories hides the skills of directories that it had before.
func TestRemovedDirectoriesAreHidden(t *testing.T) {
	dir, data := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte("---\nname: tides\ndescription: Tells the tides.\n---\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	o := hub.Options{Data: data, Skills: func(single bool) ([]catalog.Source, error) {
		if !single {
			t.Error("a hub for one user has accounts")
		}
		return []catalog.Source{catalog.NewDir("skills", catalog.User, dir, nil)}, nil
	}}
	listed := func(c caller) bool {
		return strings.Contains(c.send(t, "GET", "/api/v1/skills", nil).want(t, 200).body, `"tides"`)
	}
	t.Run("with the directory", func(t *testing.T) {
		n := start(t, o)
		n.serve(t)
		eventually(t, func() bool { return listed(n.anybody()) })
	})
	t.Run("without it", func(t *testing.T) {
		o.Skills = nil
		n := start(t, o)
		if !listed(n.anybody()) {
			t.Fatal("the skill is not stored")
		}
		n.serve(t)
		eventually(t, func() bool { return !listed(n.anybody()) })
	})
}
