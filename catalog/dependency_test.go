package catalog_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/loadout-dev/loadout/catalog"
)

func TestLoadOrder(t *testing.T) {
	m := func(origin string, scope catalog.Scope) *memory { return &memory{origin: origin, scope: scope} }
	for _, tt := range []struct {
		what    string
		sources []*memory
		load    string
		want    string // keys in order, or the error
	}{
		{"nothing is needed", []*memory{m("m", 0).add("a")}, "a", "m/a"},
		{"one is", []*memory{m("m", 0).add("a", "b").add("b")}, "a", "m/b m/a"},
		{"several in the order given", []*memory{m("m", 0).add("a", "c", "b").add("b").add("c")}, "a", "m/c m/b m/a"},
		{"a chain", []*memory{m("m", 0).add("a", "b").add("b", "c").add("c")}, "a", "m/c m/b m/a"},
		{"a diamond brings each once", []*memory{m("m", 0).add("a", "b", "c").add("b", "d").add("c", "d").add("d")}, "a", "m/d m/b m/c m/a"},
		{"twice the same", []*memory{m("m", 0).add("a", "b", "b", " b ").add("b")}, "a", "m/b m/a"},
		{"a version", []*memory{m("u", 1).add("b@1.0.0"), m("g", 0).add("b@2.0.0").add("a", "b@^2")}, "a", "g/b g/a"},
		{"of a source", []*memory{m("p", 2).add("b"), m("u", 1).add("b").add("a", "u/b")}, "a", "u/b u/a"},
		{"unknown ones are left out", []*memory{m("m", 0).add("a", "nope", "b").add("b")}, "a", "m/b m/a"},
		{"unknown ones further on too", []*memory{m("m", 0).add("a", "b").add("b", "nope")}, "a", "m/b m/a"},
		{"of no such version", []*memory{m("m", 0).add("a", "b@^2").add("b@1.0.0")}, "a", `a → b@^2: skill "b@^2" is not available: m/b has version 1.0.0`},
		{"of no version at all", []*memory{m("m", 0).add("a", "b@^2").add("b")}, "a", `a → b@^2: skill "b@^2" is not available: m/b has no version, so it satisfies no constraint`},
		{"a constraint that is none", []*memory{m("m", 0).add("a", "b@new").add("b@1")}, "a", `a → b@new: invalid version constraint "new"`},
		{"itself", []*memory{m("m", 0).add("a", "a")}, "a", "a → a: circular dependency; remove one of the dependencies"},
		{"a circle", []*memory{m("m", 0).add("a", "b").add("b", "c").add("c", "a")}, "a", "a → b → c → a: circular dependency; remove one of the dependencies"},
		{"a circle further on", []*memory{m("m", 0).add("a", "b").add("b", "c").add("c", "b")}, "a", "a → b → c → b: circular dependency; remove one of the dependencies"},
		{
			"needs that exclude each other",
			[]*memory{m("m", 0).add("a", "b", "c").add("b", "x@^1").add("c", "x@^2").add("x@1.5.0")}, "a",
			"a → c → x@^2: c requires x@^2, but x is version 1.5.0, chosen because b requires x@^1",
		},
		{
			"needs that one version suits, not the first",
			[]*memory{m("u", 1).add("x@1.0.0"), m("g", 0).add("a", "b", "c").add("b", "x").add("c", "x@^2").add("x@2.0.0")}, "a", "g/x g/b g/c g/a",
		},
		{
			"needs that exclude each other whatever the version",
			[]*memory{m("u", 1).add("x@1.0.0"), m("g", 0).add("a", "b", "c", "d").add("b", "x").add("c", "x@^2").add("d", "x@^1").add("x@2.0.0")}, "a",
			"a → d → x@^1: d requires x@^1, but x is version 2.0.0, chosen because b requires x, c requires x@^2",
		},
		{"what is loaded answers to its name", []*memory{m("u", 1).add("a@1.0.0"), m("g", 0).add("a@2.0.0", "b").add("b", "a@^2")}, "g/a", "a → b → a: circular dependency; remove one of the dependencies"},
		{"what is loaded is of the wrong version", []*memory{m("m", 0).add("a@1.0.0", "b").add("b", "a@^2")}, "a", "a → b → a@^2: b requires a@^2, but a is version 1.0.0"},
		{"the one that it shadows", []*memory{m("p", 2).add("a", "u/a"), m("u", 1).add("a")}, "a", "u/a p/a"},
	} {
		t.Run(tt.what, func(t *testing.T) {
			var sources []catalog.Source
			for _, s := range tt.sources {
				for _, e := range s.entries { // scopes 0, 1, 2 are group, user, project here
					e.Scope = s.scope + catalog.Group
				}
				sources = append(sources, s)
			}
			order, err := loadOrder(t, open(t, sources...), tt.load)
			got := strings.Join(keys(order), " ")
			if err != nil {
				if _, ok := errors.AsType[*catalog.DependencyError](err); !ok {
					t.Errorf("%T is not a dependency error", err)
				}
				got = err.Error()
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// loadOrder returns the entries of a load of ref.
func loadOrder(t testing.TB, c *catalog.Catalog, ref string) ([]*catalog.Entry, error) {
	t.Helper()
	order, err := c.LoadOrder(t.Context(), get(t, c.Snapshot(), ref))
	return entriesOf(order), err
}

func entriesOf(order []*catalog.Loaded) []*catalog.Entry {
	var out []*catalog.Entry
	for _, l := range order {
		out = append(out, l.Entry)
	}
	return out
}

func TestMissingReportsUnknownReferences(t *testing.T) {
	c := filtered(t, catalog.Filter{}, (&memory{origin: "m"}).add("a", "nope", "b", "gone@^1").add("b"))
	order, err := c.LoadOrder(t.Context(), get(t, c.Snapshot(), "a"))
	must(t, err)
	a := order[len(order)-1]
	if got := strings.Join(a.Missing, " ") + "; " + strings.Join(a.Needs, " "); got != "nope gone@^1; b" {
		t.Errorf("got %q", got)
	}
}

// Python modules that a skill of Wegent lists are not missing, and a skill of such a name is
// a dependency.
func TestPythonModulesAreNotMissing(t *testing.T) {
	c := filtered(t, catalog.Filter{}, (&memory{origin: "m"}).add("a", "app.tools.requests", "my.skill", "gone").add("my.skill"))
	order, err := c.LoadOrder(t.Context(), get(t, c.Snapshot(), "a"))
	must(t, err)
	a := order[len(order)-1]
	if got := strings.Join(a.Missing, " ") + "; " + strings.Join(a.Needs, " "); got != "gone; my.skill" {
		t.Errorf("got %q", got)
	}
}

func TestHiddenDependencyIsAnError(t *testing.T) {
	_, err := loadOrder(t, filtered(t, catalog.Filter{Allow: []string{"a"}}, (&memory{origin: "m"}).add("a", "b").add("b")), "a")
	if err == nil || err.Error() != `a → b: skill "b" is not available: not on the allowlist (skills.allow)` {
		t.Errorf("got %v", err)
	}
}

func TestLoadOrderReadsDependenciesFromTheSkill(t *testing.T) {
	m := &memory{origin: "m", files: fstest.MapFS{
		"a/SKILL.md": {Data: []byte("---\nname: a\ndescription: Does a.\ndependencies: [b, gone]\n---\nDo a.\n")},
		"b/SKILL.md": {Data: []byte("---\nname: b\ndescription: Does b.\n---\nDo b.\n")},
	}}
	c := open(t, m.add("a").add("b"))
	order, err := c.LoadOrder(t.Context(), get(t, c.Snapshot(), "a"))
	must(t, err)
	if got := strings.Join(keys(entriesOf(order)), " "); got != "m/b m/a" {
		t.Errorf("got %s", got)
	}
	if got := order[1].Missing; !slices.Equal(got, []string{"gone"}) {
		t.Errorf("missing: %q", got)
	}
}

func TestTooManyDependencies(t *testing.T) {
	m := &memory{origin: "m"}
	for i := range 100 {
		m.add(fmt.Sprint("chain", i), fmt.Sprint("chain", i+1))
		m.add(fmt.Sprint("leaf", i))
	}
	var leaves []string
	for i := range 100 {
		leaves = append(leaves, fmt.Sprint("leaf", i))
	}
	m.add("chain100").add("wide", leaves...).add("just", leaves[:63]...)
	c := open(t, m)
	for _, name := range []string{"chain0", "wide"} {
		if _, err := loadOrder(t, c, name); err == nil || !strings.HasSuffix(err.Error(), "too many dependencies (limit 64)") {
			t.Errorf("%s: %.80v", name, err)
		}
	}
	if order, err := loadOrder(t, c, "just"); err != nil || len(order) != 64 {
		t.Errorf("64 skills: %d, %v", len(order), err)
	}
}

func TestHostileConstraintsTakeLimitedTime(t *testing.T) {
	m := &memory{origin: "m"}
	for i := range 200 {
		m.entries = append(m.entries, &catalog.Entry{Name: "x", Version: fmt.Sprintf("1.%d.0", i), Origin: "m", Dir: fmt.Sprintf("x%03d", i)})
	}
	var needs []string
	for i := range 1000 {
		needs = append(needs, fmt.Sprintf("x@>=1.%d", i))
	}
	m.add("a", needs...)
	if _, err := loadOrder(t, open(t, m), "a"); err == nil {
		t.Error("no error")
	}
}

func TestLoadOrderHoldsForAnyDependencies(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var sources []catalog.Source
		ref := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "b@^1", "c@>=1.5", "c@^2", "d@<2", "x/b", "y/c", "nope"})
		for _, origin := range []string{"x", "y"} {
			m := &memory{origin: origin, scope: catalog.User}
			for _, name := range []string{"a", "b", "c", "d", "e"} {
				version := rapid.SampledFrom([]string{"", "@1.0.0", "@1.9.0", "@2.0.0"}).Draw(rt, "version")
				m.add(name+version, rapid.SliceOfN(ref, 0, 2).Draw(rt, "needs")...)
			}
			sources = append(sources, m)
		}
		c := open(t, sources...)
		s := c.Snapshot()
		for e := range s.All() {
			loaded, err := c.LoadOrder(t.Context(), e)
			order := entriesOf(loaded)
			repeated, err2 := c.LoadOrder(t.Context(), e)
			again := entriesOf(repeated)
			if fmt.Sprint(keys(order), err) != fmt.Sprint(keys(again), err2) {
				rt.Fatalf("%s: %v, %v and then %v, %v", e.Key(), keys(order), err, keys(again), err2)
			}
			if err != nil {
				de, ok := errors.AsType[*catalog.DependencyError](err)
				if !ok || de.Path[0] != e.Name || de.Reason == "" {
					rt.Fatalf("%s: %v does not name the way from it", e.Key(), err)
				}
				continue
			}
			if order[len(order)-1] != e {
				rt.Fatalf("%s is not the last of %v", e.Key(), keys(order))
			}
			for i, x := range order {
				if slices.Contains(order[:i], x) {
					rt.Fatalf("%s is twice in %v", x.Key(), keys(order))
				}
				for _, need := range x.Dependencies {
					name, constraint, _ := strings.Cut(need, "@")
					if slices.Contains(loaded[i].Missing, need) {
						continue
					}
					if !slices.ContainsFunc(order[:i], func(d *catalog.Entry) bool {
						return (d.Name == name || d.Key() == name) && versionSuits(s, d, constraint)
					}) {
						rt.Fatalf("%s needs %s, which is not before it in %v", x.Key(), need, keys(order))
					}
				}
			}
		}
	})
}

// versionSuits asks the catalog itself.
func versionSuits(s *catalog.Snapshot, e *catalog.Entry, constraint string) bool {
	got, err := s.Get(e.Key())
	if constraint != "" && err == nil {
		for _, c := range s.Explain(e.Origin + "/" + e.Name + "@" + constraint) {
			if c.Path == e.Path {
				return c.Chosen || !strings.Contains(c.Reason, "does not satisfy")
			}
		}
	}
	return err == nil && got == e
}
