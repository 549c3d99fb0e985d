package catalog_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/skill"
)

// A project's skill with the name of another is pending until it is confirmed,
// also while the catalog runs, and again once it is not confirmed anymore.
func TestPendingSkillIsServedOnceConfirmed(t *testing.T) {
	file := func(text string) fstest.MapFS {
		return fstest.MapFS{"git/SKILL.md": {Data: []byte("---\nname: git\ndescription: " + text + "\n---\n")}}
	}
	sources := []catalog.Source{
		catalog.NewFS("clone", catalog.Project, file("Theirs.")), catalog.NewFS("other", catalog.Project, file("Theirs too.")),
		catalog.NewFS("own", catalog.User, file("Mine.")), catalog.NewFS("bundled", catalog.Bundled, file("Bundled.")),
	}
	var confirmed atomic.Bool
	c, err := catalog.New(sources, &catalog.Options{Poll: time.Millisecond, Confirm: func(r catalog.ProjectSkill, manifest func() (skill.Manifest, error)) string {
		m, err := manifest()
		if err != nil || len(m) != 1 || r.Replaced.Origin != "own" {
			t.Errorf("files %v, %v; replaces %s", m, err, r.Replaced.Key())
		}
		if confirmed.Load() {
			return ""
		}
		return "pending"
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	published := make(chan *catalog.Snapshot, 10)
	defer c.Subscribe(func(_, now *catalog.Snapshot) { published <- now })()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = c.Run(ctx) }()
	defer func() { stop(); <-done }()
	check := func(s *catalog.Snapshot, origin string, pending int) {
		t.Helper()
		e, err := s.Get("git")
		if err != nil || e.Origin != origin || len(s.Pending()) != pending || len(s.Skills()) != 1 {
			t.Errorf("got %v, %v and %v", e, err, s.Pending())
		}
	}
	check(c.Snapshot(), "own", 2)
	confirmed.Store(true)
	check(<-published, "clone", 0)
	confirmed.Store(false)
	check(<-published, "own", 2)
	if _, err := c.Snapshot().Get("clone/git"); err == nil {
		t.Error("a pending skill is available by its key")
	}
}
