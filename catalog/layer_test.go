package catalog_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/skill"
)

// sharing is a source with a layer.
type sharing struct {
	catalog.Source
	layer *catalog.Layer
}

func (s *sharing) List(context.Context) (catalog.Listing, error) {
	return catalog.Listing{Layer: s.layer}, nil
}

// listing is a source with fixed entries.
type listing struct {
	origin  string
	scope   catalog.Scope
	entries []*catalog.Entry
}

func (l *listing) Origin() string       { return l.origin }
func (l *listing) Scope() catalog.Scope { return l.scope }
func (l *listing) List(context.Context) (catalog.Listing, error) {
	return catalog.Listing{Entries: slices.Clone(l.entries)}, nil
}
func (l *listing) Open(context.Context, *catalog.Entry) (*skill.Bundle, error) {
	return nil, fmt.Errorf("no files")
}

// A catalog of shared layers answers like one that lists the same skills.
func TestSharedLayersAnswerLikeListings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var plain, shared []catalog.Source
		name := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f", "Ｆ"})
		for i, scope := range []catalog.Scope{catalog.User, catalog.User, catalog.Group, catalog.Public, catalog.Bundled} {
			l := &listing{origin: fmt.Sprint("s", i), scope: scope}
			omitted := rapid.SliceOfDistinct(name, rapid.ID).Draw(t, "omitted")
			var all []*catalog.Entry
			for _, n := range rapid.SliceOfNDistinct(name, 0, 7, rapid.ID).Draw(t, l.origin) {
				s := &skill.Skill{Name: n, Description: "About " + n + l.origin, DisableModelInvocation: rapid.Bool().Draw(t, "users only"), Preload: rapid.Bool().Draw(t, "preload"), UserInvocable: true}
				e := catalog.EntryOf(l, s, n)
				all = append(all, e)
				if !slices.Contains(omitted, n) {
					l.entries = append(l.entries, e)
				}
			}
			plain, shared = append(plain, l), append(shared, &sharing{l, catalog.NewLayer(all).Without(omitted...)})
		}
		var f catalog.Filter
		switch rapid.IntRange(0, 2).Draw(t, "filter") {
		case 1:
			f.Select = rapid.SliceOf(rapid.SampledFrom([]string{"a", "s1/b", "c", "s4/d", "x"})).Draw(t, "select")
		case 2:
			f.Allow = []string{"[a-d]"}
		}
		snapshot := func(sources []catalog.Source) *catalog.Snapshot {
			c, err := catalog.New(sources, &catalog.Options{Filter: f})
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Reload(context.Background()); err != nil {
				t.Fatal(err)
			}
			return c.Snapshot()
		}
		p, s := snapshot(plain), snapshot(shared)
		// The reference is the first visible skill of each name in order of precedence.
		first := map[string]*catalog.Entry{}
		for e := range p.All() {
			if first[e.Name] == nil {
				first[e.Name] = e
			}
		}
		var want []*catalog.Entry
		for _, e := range first {
			want = append(want, e)
		}
		slices.SortFunc(want, func(a, b *catalog.Entry) int { return cmpNames(a, b) })
		for _, snap := range []*catalog.Snapshot{p, s} {
			if !slices.Equal(snap.Skills(), want) {
				t.Fatalf("skills are %v, want %v", names(snap.Skills()), names(want))
			}
			if n := len(snap.ForModel()); snap.Count() != n {
				t.Fatalf("the count is %d, want %d", snap.Count(), n)
			}
			first := rapid.SliceOfN(rapid.SampledFrom([]string{"s4/e", "s1/b", "x/y", "s2/c", "s3/a"}), 0, 4).Draw(t, "first")
			for _, most := range []int{0, 3, 12, 30, 60, 200} {
				o := catalog.FormatOptions{Characters: most, First: func() []string { return first }}
				if got, want := snap.Text(o), catalog.Format(snap.ForModel(), o); got != want {
					t.Fatalf("text of %d characters is %q, want %q", most, got, want)
				}
			}
			preload := slices.DeleteFunc(snap.ForModel(), func(e *catalog.Entry) bool { return !e.Preload })
			if !slices.Equal(snap.Preloaded(), preload) {
				t.Fatalf("preloaded are %v, want %v", names(snap.Preloaded()), names(preload))
			}
		}
		if !slices.Equal(slices.Collect(p.All()), slices.Collect(s.All())) || !slices.Equal(p.Shadowed(), s.Shadowed()) || !slices.Equal(p.Problems(), s.Problems()) {
			t.Fatal("the snapshots differ")
		}
		for _, ref := range []string{"a", "s1/b", "s2/c", "d", "Ｆ", "s4/e", "x"} {
			a, errA := p.Get(ref)
			b, errB := s.Get(ref)
			if a != b || fmt.Sprint(errA) != fmt.Sprint(errB) || !slices.Equal(p.Explain(ref), s.Explain(ref)) {
				t.Fatalf("%s is %v, %v and %v, %v", ref, a, errA, b, errB)
			}
		}
	})
}

func cmpNames(a, b *catalog.Entry) int {
	if a.Name < b.Name {
		return -1
	}
	return 1
}
