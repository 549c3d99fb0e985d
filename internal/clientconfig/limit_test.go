//go:build unix

package clientconfig_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/clientconfig"
	"github.com/loadout-dev/loadout/internal/limittest"
)

// With too many open files, an entry is added and removed in full or not at all, for
// each client.
func TestEntriesWithinLimits(t *testing.T) {
	entry := clientconfig.Entry{Name: "loadout", Command: "/bin/loadout", Args: []string{"mcp"}}
	for _, c := range clientconfig.All() {
		target := clientconfig.Target{Client: c, File: filepath.Join(t.TempDir(), "sub", "file")}
		text := func() string {
			b, _ := os.ReadFile(target.File)
			return string(b)
		}
		apply := func(plan func() (*clientconfig.Change, error)) func() error {
			return func() error {
				change, err := plan()
				if err != nil {
					return err
				}
				return change.Apply()
			}
		}
		limittest.EachOpen(t, apply(func() (*clientconfig.Change, error) { return clientconfig.Plan(target, entry) }), func(error) {
			if got := text(); got != "" {
				t.Errorf("%s: a failed change wrote %q", c.Name, got)
			}
		})
		added := text()
		if !strings.Contains(added, "/bin/loadout") {
			t.Errorf("%s: %q", c.Name, added)
		}
		limittest.EachOpen(t, func() error {
			s, err := clientconfig.Read(target)
			if err == nil && !s.HasEntry(c, entry) {
				t.Errorf("%s: the entry is missing, without an error", c.Name)
			}
			return err
		}, func(error) {})
		limittest.EachOpen(t, apply(func() (*clientconfig.Change, error) { return clientconfig.PlanUndo(target, "loadout") }), func(error) {
			if got := text(); got != added {
				t.Errorf("%s: a failed change left %q", c.Name, got)
			}
		})
		if strings.Contains(text(), "/bin/loadout") {
			t.Errorf("%s: left %q", c.Name, text())
		}
		if left, _ := os.ReadDir(filepath.Dir(target.File)); len(left) > 2 { // the file and its backup
			t.Errorf("%s: left %v", c.Name, left)
		}
	}
}
