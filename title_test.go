package loadout_test

import (
	"io/fs"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/session"
)

// counting counts how often a SKILL.md is opened.
type counting struct {
	files  fs.FS
	opened *atomic.Int64
}

func (c counting) Open(name string) (fs.File, error) {
	if strings.HasSuffix(name, "SKILL.md") {
		c.opened.Add(1)
	}
	return c.files.Open(name)
}

// W17: a skill is called by its display name, or its name where it has none: in listings,
// in what a load came to, and of what is in force, also in a conversation that is opened
// again; for the last nothing is read.
func TestW17DisplayNames(t *testing.T) {
	files := counting{fstest.MapFS{
		"tides/SKILL.md": {Data: []byte("---\nname: tides\ndescription: Reads tide tables.\ndisplayName: Tide tables\n---\nAdd one hour.\n")},
		"plain/SKILL.md": {Data: []byte("---\nname: plain\ndescription: Has no other name.\n---\nDo it.\n")},
	}, new(atomic.Int64)}
	rt, err := loadout.New(t.Context(), &loadout.Options{Sources: []catalog.Source{catalog.NewFS("mine", catalog.User, files)}})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	log := &session.Memory{}
	s, err := rt.NewSession(t.Context(), &loadout.SessionOptions{Log: log, ID: "s"})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"tides": "Tide tables", "plain": "plain"}
	for name, title := range want {
		e, err := rt.Catalog().Snapshot().Get(name)
		if err != nil || e.Title() != title {
			t.Errorf("listed is %q, %v; want %q", e.Title(), err, title)
		}
		if r, err := s.Load(t.Context(), name); err != nil || r.Material.Title != title {
			t.Errorf("loaded is %+v, %v; want %q", r, err, title)
		}
	}
	s.Close()
	read := files.opened.Load()
	if s, err = rt.NewSession(t.Context(), &loadout.SessionOptions{Log: log, ID: "s"}); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for range 2 {
		for _, a := range s.Active() {
			if got := a.Called(); got != want[a.Skill.Name] {
				t.Errorf("%s in force is called %q", a.Skill.Name, got)
			}
		}
	}
	if n := len(s.Active()); n != len(want) || read == 0 || files.opened.Load() != read {
		t.Errorf("%d are in force, and %d files were read for their names", n, files.opened.Load()-read)
	}
}
