package loadout_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/skill"
)

// countingSource counts the bundles that it opened and that are not closed yet.
type countingSource struct {
	catalog.Source
	opened, open atomic.Int64
}

func (s *countingSource) Open(ctx context.Context, e *catalog.Entry) (*skill.Bundle, error) {
	b, err := s.Source.Open(ctx, e)
	if err != nil {
		return nil, err
	}
	s.opened.Add(1)
	s.open.Add(1)
	return skill.NewBundle(b, b.Folder, func() error { s.open.Add(-1); return b.Close() }), nil
}

func TestBundlesAreClosed(t *testing.T) {
	source := &countingSource{Source: catalog.NewFS("counted", catalog.User, fstest.MapFS{
		"a/SKILL.md": {Data: []byte("---\nname: a\ndescription: x\ndependencies: [b]\n---\nbody")},
		"a/do.sh":    {Data: []byte("exit $1\n")},
		"b/SKILL.md": {Data: []byte(skillText("b", "x"))},
	})}
	s := newShop(t, nil, func(_ *shop, o *loadout.Options) { o.Sources = []catalog.Source{source} })
	check := func(what string) {
		t.Helper()
		if source.opened.Swap(0) == 0 || source.open.Load() != 0 {
			t.Errorf("%s: %d bundles are still open, want 0 of at least 1", what, source.open.Load())
		}
	}
	for _, code := range []string{"0", "3"} {
		s.ran(t, loadout.Run{Skill: "a", Script: "do.sh", Args: []string{code}})
		check("a script that exits with " + code)
	}
	if _, err := s.try(t, loadout.Run{Skill: "a", Script: "none.sh", ByUser: true}); err == nil {
		t.Error("a run of a missing script succeeded")
	}
	check("a missing script")
	if _, err := s.try(t, loadout.Run{Skill: "a", Script: "do.sh", Args: []string{"0"}}); err == nil {
		t.Error("a run that nobody approved succeeded")
	}
	check("a refused run")
	s.approve(t, "a")
	check("an approval request")
	if _, err := s.try(t, loadout.Run{Skill: "a", Script: "do.sh", Args: []string{"0"}}); err != nil {
		t.Error(err)
	}
	check("an approved run")
}
