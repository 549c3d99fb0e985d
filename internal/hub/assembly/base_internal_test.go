package assembly

import (
	"context"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

// unsteady is a source that cannot be read at first.
type unsteady struct {
	catalog.Source
	err error
}

func (u *unsteady) List(ctx context.Context) (catalog.Listing, error) {
	if u.err != nil {
		return catalog.Listing{}, u.err
	}
	return u.Source.List(ctx)
}

// A source that could not be read is read again, though no skill has changed since.
func TestFailedReadIsRetried(t *testing.T) {
	files := fstest.MapFS{"tides/SKILL.md": {Data: []byte("---\nname: tides\ndescription: Reads tide tables.\n---\nRead them.\n")}}
	source := &unsteady{catalog.NewFS("team", catalog.User, files), store.ErrUnavailable}
	rt, err := loadout.New(t.Context(), &loadout.Options{Sources: []catalog.Source{source}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close() })
	b := &base{assembler: &Assembler{o: Options{DB: storetest.Open(t, storetest.SQLite(t))}}, rt: rt}
	b.seenRevision.Store(-1)
	for _, want := range [][]string{{}, {"tides"}} {
		if err := b.refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		got := []string{}
		for _, e := range rt.Catalog().Snapshot().Skills() {
			got = append(got, e.Name)
		}
		if seen := b.seenRevision.Load() >= 0; !slices.Equal(got, want) || seen != (len(want) > 0) {
			t.Errorf("there are %v, and that is taken as seen: %v; want %v", got, seen, want)
		}
		source.err = nil
	}
}
