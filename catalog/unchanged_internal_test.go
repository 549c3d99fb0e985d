package catalog

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A scan of many directories finds every change since the last one: its listing is
// that of a source that has seen nothing before.
func TestScanOfManyDirectoriesFindsChanges(t *testing.T) {
	root := t.TempDir()
	file := func(i int) string { return filepath.Join(root, fmt.Sprintf("skill-%04d", i), "SKILL.md") }
	write := func(path, description string) {
		t.Helper()
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte("---\nname: "+filepath.Base(filepath.Dir(path))+"\ndescription: "+description+"\n---\n"), 0o644))
	}
	old := time.Now().Add(-time.Hour)
	for i := range 600 {
		write(file(i), "Old.")
	}
	setTimes(t, root, old)
	seen := NewDir("dir", User, root, nil).(*dirSource)
	if n := len(list(t, seen).Entries); n != 600 {
		t.Fatalf("%d skills, want 600", n)
	}
	for name, change := range map[string]func(){
		"nothing":            func() {},
		"an edited file":     func() { write(file(7), "New.") },
		"another file":       func() { must(t, os.Rename(file(8), filepath.Join(filepath.Dir(file(8)), "skill.md"))) },
		"a deleted file":     func() { must(t, os.Remove(file(9))) },
		"a deleted skill":    func() { must(t, os.RemoveAll(filepath.Dir(file(10)))) },
		"a new skill":        func() { write(file(700), "New.") },
		"a skill in a skill": func() { write(filepath.Join(filepath.Dir(file(11)), "inner", "SKILL.md"), "New.") },
		"a replaced skill":   func() { must(t, os.RemoveAll(filepath.Dir(file(12)))); write(file(12), "Old.") },
		"a skill that another path reaches": func() {
			must(t, os.RemoveAll(filepath.Dir(file(13))))
			must(t, os.Symlink(filepath.Dir(file(14)), filepath.Dir(file(13))))
		},
	} {
		t.Run(name, func(t *testing.T) {
			change()
			got := list(t, seen)
			want := list(t, NewDir("dir", User, root, nil))
			if diff := cmp.Diff(describe(want), describe(got)); diff != "" {
				t.Errorf("the listing differs from that of a new source (-want +got):\n%s", diff)
			}
		})
	}
}

func describe(l Listing) (out []string) {
	for _, e := range l.Entries {
		out = append(out, e.Path+" "+e.Description)
	}
	for _, p := range l.Problems {
		out = append(out, p.Path+": "+p.Message)
	}
	return out
}
