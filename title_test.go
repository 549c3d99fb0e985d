package loadout_test

import (
	"cmp"
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

// W17: listings, load results and active skills use the display name of a
// skill, or its name if it has none. In a reopened conversation, active skills
// need no reading of files.
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
	log := &session.MemoryLog{}
	s, err := rt.NewSession(t.Context(), &session.Options{Log: log, ID: "s"})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"tides": "Tide tables", "plain": "plain"}
	for name, title := range want {
		e, err := rt.Catalog().Snapshot().Get(name)
		if err != nil || cmp.Or(e.DisplayName, e.Name) != title {
			t.Errorf("listed is %+v, %v; want %q", e, err, title)
		}
		if r, err := s.Load(t.Context(), name, nil); err != nil || r.Skill.Title != title {
			t.Errorf("loaded is %+v, %v; want %q", r, err, title)
		}
	}
	s.Close()
	read := files.opened.Load()
	if s, err = rt.NewSession(t.Context(), &session.Options{Log: log, ID: "s"}); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for range 2 {
		for _, a := range s.Active() {
			if got := cmp.Or(a.Title, a.Skill.Name); got != want[a.Skill.Name] {
				t.Errorf("%s active is called %q", a.Skill.Name, got)
			}
		}
	}
	if n := len(s.Active()); n != len(want) || read == 0 || files.opened.Load() != read {
		t.Errorf("%d are active, and %d files were read for their names", n, files.opened.Load()-read)
	}
}
