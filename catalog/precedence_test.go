package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/loadout-dev/loadout/catalog"
)

// W6: the user's skills precede those of a group, which precede public ones. A unified
// list hides shadowed public names.
func TestW6ScopesInOrder(t *testing.T) {
	scopes := allScopes
	for n := range len(scopes) {
		for range 5 { // whatever the order of sources
			var sources []catalog.Source
			for _, sc := range scopes[n:] {
				sources = append(sources, source("of-"+sc.String(), sc, "pdf"))
			}
			rand.Shuffle(len(sources), func(i, j int) { sources[i], sources[j] = sources[j], sources[i] })
			s := open(t, sources...).Snapshot()
			if e := get(t, s, "pdf"); e.Scope != scopes[n] {
				t.Errorf("of %v the skill of %s wins", scopes[n:], e.Scope)
			}
			if got := names(s.Skills()); !slices.Equal(got, []string{"pdf"}) {
				t.Errorf("the list has %q, want one pdf", got)
			}
			var lost []string
			for _, sh := range s.Shadowed() {
				lost = append(lost, sh.Reason)
			}
			var want []string
			for _, sc := range scopes[n+1:] {
				want = append(want, fmt.Sprintf("scope %s comes after %s", sc, scopes[n]))
			}
			if !slices.Equal(lost, want) {
				t.Errorf("lost %q, want %q", lost, want)
			}
		}
	}
}

func TestB8DirectoriesOfOneScopeInConfiguredOrder(t *testing.T) {
	root := tree(t, map[string]string{
		"skills/pdf/SKILL.md": doc("pdf", "version: 1.0.0\n"), ".claude/skills/pdf/SKILL.md": doc("pdf", "version: 2.0.0\n"),
		".claude/skills/csv/SKILL.md": doc("csv", ""),
	})
	first := catalog.NewDir("first", catalog.Project, filepath.Join(root, "skills"), nil)
	second := catalog.NewDir("second", catalog.Project, filepath.Join(root, ".claude", "skills"), nil)
	s := open(t, first, second).Snapshot()
	if got := keys(s.Skills()); !slices.Equal(got, []string{"second/csv", "first/pdf"}) {
		t.Errorf("got %q", got)
	}
	if got := s.Shadowed(); len(got) != 1 || got[0].Reason != "source second comes after first" {
		t.Errorf("shadowed %v", got)
	}
	if got := keys(open(t, second, first).Snapshot().Skills()); !slices.Equal(got, []string{"second/csv", "second/pdf"}) {
		t.Errorf("the other way round got %q", got)
	}
}

func TestK5SkillIsFoundByNameNotDirectory(t *testing.T) {
	root := tree(t, map[string]string{"pdf-tools/SKILL.md": doc("文档处理", ""), "b/SKILL.md": doc("a", ""), "a/SKILL.md": doc("b", "")})
	c := open(t, dir(root))
	s := c.Snapshot()
	for ref, want := range map[string]string{
		"文档处理": "pdf-tools", "dir/文档处理": "pdf-tools", "dir/pdf-tools": "pdf-tools", " 文档处理\n": "pdf-tools",
		"a": "b", "b": "a",
		"dir/a": "a", "dir/b": "b", // a key is of the directory
	} {
		if e := get(t, s, ref); e.Dir != want {
			t.Errorf("%q is in %s, want %s", ref, e.Dir, want)
		}
	}
	if _, err := s.Get("pdf-tools"); err == nil {
		t.Error("it answers to its folder's name")
	}
	if sk, _, err := c.Read(t.Context(), get(t, s, "文档处理")); err != nil || sk.Name != "文档处理" {
		t.Errorf("read: %v", err)
	}
}

func TestSkillWithoutNameUsesDirectoryName(t *testing.T) {
	root := tree(t, map[string]string{"pdf/SKILL.md": "---\ndescription: d\n---\n"})
	s := scan(t, root)
	if e := get(t, s, "pdf"); e.HasOwnName {
		t.Error("it says that it names itself")
	}
	if got := codes(root, s.Problems()); !slices.Equal(got, []string{"pdf/SKILL.md name-missing"}) {
		t.Errorf("problems %q", got)
	}
}

func TestReferences(t *testing.T) {
	root := tree(t, map[string]string{
		"p/pdf/SKILL.md": doc("pdf", "version: 1.0.0\n"), "u/pdf/SKILL.md": doc("pdf", "version: 2.1.0\n"), "u/docs/pdf/SKILL.md": doc("pdf", "version: 3.0.0\n"),
		"u/plain/SKILL.md": doc("plain", ""), "u/odd@2/SKILL.md": doc("odd@2", ""), "u/full width/SKILL.md": doc("ｆｕｌｌ", ""),
		"u/spaced/SKILL.md": doc("two words", ""),
	})
	s := open(t,
		catalog.NewDir("project.skills", catalog.Project, filepath.Join(root, "p"), nil),
		catalog.NewDir("user.agents", catalog.User, filepath.Join(root, "u"), nil)).Snapshot()
	for _, tt := range []struct{ ref, want string }{
		{"pdf", "project.skills/pdf"},
		{" pdf\t", "project.skills/pdf"},
		{"pdf@", "project.skills/pdf"},
		{"pdf@^1", "project.skills/pdf"},
		{"pdf@2.1.0", "user.agents/pdf"},
		{"pdf@>=2", "user.agents/docs/pdf"}, // docs comes before pdf
		{"pdf@>=2 <3", "user.agents/pdf"},
		{"pdf @ ^2", "user.agents/pdf"},
		{"user.agents/pdf", "user.agents/pdf"},
		{"user.agents/docs/pdf", "user.agents/docs/pdf"},
		{"user.agents/pdf@^3", "user.agents/docs/pdf"},
		{"plain@*", ""}, // it has no version
		{"plain", "user.agents/plain"},
		{"odd@2", "user.agents/odd@2"},
		{"user.agents/odd@2", "user.agents/odd@2"},
		{"full", "user.agents/full width"}, // NFKC
		{"ｆｕｌｌ", "user.agents/full width"},
		{"user.agents/full width", "user.agents/full width"},
		{"two words", "user.agents/spaced"},
	} {
		e, err := s.Get(tt.ref)
		switch {
		case tt.want == "" && err == nil:
			t.Errorf("%q is %s", tt.ref, e.Key())
		case tt.want != "" && err != nil:
			t.Errorf("%q: %v", tt.ref, err)
		case tt.want != "" && tt.ref != "user.agents/pdf@^3" && e.Key() != tt.want:
			t.Errorf("%q is %s, want %s", tt.ref, e.Key(), tt.want)
		}
	}
}

// Every skill is reached by its key, whatever its folders and names are.
func TestEachSkillIsFoundByItsKey(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		part := rapid.SampledFrom([]string{"a", "b", "a-b", "a.b", "a b", "a@1", "é", "e\u0301", "ａ", "A", "docs", "文"})
		name := rapid.SampledFrom([]string{"a", "b", "a-b", "a@1", "a@^1", "docs", "é", "文"})
		var sources []catalog.Source
		for _, origin := range []string{"x", "x-2", "y.z"} {
			m := &memory{origin: origin, scope: catalog.Scope(rapid.IntRange(0, 4).Draw(rt, "scope"))}
			seen := map[string]bool{}
			for range rapid.IntRange(0, 12).Draw(rt, "skills") {
				d := strings.Join(rapid.SliceOfN(part, 1, 3).Draw(rt, "dir"), "/")
				if rapid.IntRange(0, 9).Draw(rt, "root") == 0 {
					d = "."
				}
				if seen[d] {
					continue
				}
				seen[d] = true
				m.add(name.Draw(rt, "name"))
				m.entries[len(m.entries)-1].Dir = d
			}
			sources = append(sources, m)
		}
		s := open(t, sources...).Snapshot()
		n := 0
		for e := range s.All() {
			n++
			if got, err := s.Get(e.Key()); err != nil || got != e {
				rt.Fatalf("%q gives %v, %v", e.Key(), got, err)
			}
		}
		for _, e := range s.Skills() {
			if got, err := s.Get(e.Name); !strings.Contains(e.Name, "@") && (err != nil || got != e) {
				rt.Fatalf("%q gives %v, %v", e.Name, got, err)
			}
		}
		if n != len(s.Skills())+len(s.Shadowed()) {
			rt.Fatalf("%d skills, of which %d have their names and %d have lost them", n, len(s.Skills()), len(s.Shadowed()))
		}
	})
}

func TestNameWithAtSignIsNotAVersion(t *testing.T) {
	evil := &memory{origin: "evil", scope: catalog.Project}
	evil.add("x")
	evil.entries[0].Name = "pdf@^2"
	s := open(t, evil, source("good", catalog.User, "pdf@2.0.0")).Snapshot()
	if e := get(t, s, "pdf@^2"); e.Origin != "good" {
		t.Errorf("pdf@^2 is %s", e.Key())
	}
}

func TestResolutionIsDeterministic(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		type offer struct{ origin, ref, dir string }
		scopes := map[string]catalog.Scope{"a": catalog.User, "b": catalog.User, "c": catalog.Project, "d": catalog.Bundled}
		var offers []offer
		seen := map[string]bool{}
		for range rapid.IntRange(1, 30).Draw(rt, "offers") {
			o := offer{rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(rt, "origin"), rapid.SampledFrom([]string{"x", "y@1.0.0", "y@2.0.0", "z"}).Draw(rt, "ref"),
				rapid.StringMatching(`[a-c]([-/.][a-c]){0,3}`).Draw(rt, "dir")}
			if !seen[o.origin+"/"+o.dir] {
				seen[o.origin+"/"+o.dir] = true
				offers = append(offers, o)
			}
		}
		view := func() string {
			sources := map[string]*memory{}
			for o, sc := range scopes {
				sources[o] = &memory{origin: o, scope: sc}
			}
			for _, o := range offers {
				m := sources[o.origin].add(o.ref)
				e := m.entries[len(m.entries)-1]
				e.Dir, e.Path = o.dir, o.origin+":"+o.dir
			}
			s := open(t, sources["a"], sources["b"], sources["c"], sources["d"]).Snapshot()
			out := fmt.Sprint(keys(s.Skills()), keys(slices.Collect(s.All())), s.Shadowed(), s.Explain("y@^2"), s.Explain("x"))
			return out + catalog.Format(s.ForModel(), catalog.FormatOptions{})
		}
		want := view()
		for range 3 {
			rand.Shuffle(len(offers), func(i, j int) { offers[i], offers[j] = offers[j], offers[i] })
			if got := view(); got != want {
				rt.Fatalf("in another order of answers:\n%s\nwant\n%s", got, want)
			}
		}
	})
}

func TestOrderWithinASource(t *testing.T) {
	files := map[string]string{}
	want := []string{".", "a", "a/z", "a-b", "a-b/c", "a.b", "aa", "b/x/y", "b/x-y", "c.skill"}
	for _, d := range want {
		switch d {
		case "c.skill":
			files[d] = pack(t, map[string]string{"n/SKILL.md": doc("n", "")})
		case ".":
			files["SKILL.md"] = doc("n", "")
		default:
			files[d+"/SKILL.md"] = doc("n", "")
		}
	}
	delete(files, "SKILL.md") // or the archive would be a file of the skill
	s := scan(t, tree(t, files))
	var got []string
	for e := range s.All() {
		got = append(got, e.Dir)
	}
	if diff := cmp.Diff(want[1:], got); diff != "" {
		t.Errorf("a directory (-want +got):\n%s", diff)
	}
	m := &memory{origin: "m"}
	for _, i := range rand.Perm(len(want)) {
		m.add("n")
		m.entries[len(m.entries)-1].Dir = want[i]
	}
	got = nil
	for e := range open(t, m).Snapshot().All() {
		got = append(got, e.Dir)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("another source (-want +got):\n%s", diff)
	}
}

func TestExplain(t *testing.T) {
	s := filtered(t, catalog.Filter{Allow: []string{"pdf@<3", "csv"}},
		source("g", catalog.Group, "pdf@1.0.0"),
		source("u1", catalog.User, "pdf@2.0.0"),
		source("u2", catalog.User, "pdf@2.5.0"),
		source("p", catalog.Project, "pdf@3.0.0", "csv")).Snapshot()
	for _, tt := range []struct {
		ref  string
		want []string
	}{
		{"csv", []string{"* p: the only skill of this name"}},
		{"pdf", []string{
			"p: not on the allowlist (skills.allow)",
			"* u1: first of 4 by scope, then by order of sources",
			"u2: source u2 comes after u1",
			"g: scope group comes after user",
		}},
		{"pdf@^1", []string{
			"p: not on the allowlist (skills.allow)",
			`u1: version "2.0.0" does not satisfy ^1`,
			`u2: version "2.5.0" does not satisfy ^1`,
			"* g: first of 4 by scope, then by order of sources",
		}},
		{"pdf@^9", []string{
			"p: not on the allowlist (skills.allow)",
			`u1: version "2.0.0" does not satisfy ^9`,
			`u2: version "2.5.0" does not satisfy ^9`,
			`g: version "1.0.0" does not satisfy ^9`,
		}},
		{"pdf@latest", []string{
			"p: not on the allowlist (skills.allow)",
			`u1: invalid version constraint "latest"`, `u2: invalid version constraint "latest"`, `g: invalid version constraint "latest"`,
		}},
		{"u2/pdf", []string{"* u2: the only skill of this name"}},
		{"nothing", nil},
	} {
		var got []string
		for _, c := range s.Explain(tt.ref) {
			mark := ""
			if c.Chosen {
				mark = "* "
			}
			got = append(got, mark+c.Origin+": "+c.Reason)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.ref, diff)
		}
	}
}

func TestNotFoundIsExplained(t *testing.T) {
	s := filtered(t, catalog.Filter{Allow: []string{"*@>=0.1", "[^h]*"}},
		source("u", catalog.User, "pdf@1.0.0", "pdf-forms@1.0.0", "csv", "hidden", "数据分析", "skills"),
		source("g", catalog.Group, "pdf@1.5.0")).Snapshot()
	for _, tt := range []struct{ ref, want string }{
		{"PDF", `skill "PDF" not found; did you mean pdf?`},
		{"pfd", `skill "pfd" not found; did you mean pdf?`},
		{"pdf_forms", `skill "pdf_forms" not found; did you mean pdf-forms?`},
		{"pdfforms@^1", `skill "pdfforms@^1" not found; did you mean pdf-forms?`},
		{"u/pfd", `skill "u/pfd" not found; did you mean pdf?`},
		{"something", `skill "something" not found`},
		{"数据分折", `skill "数据分折" not found; did you mean 数据分析?`},
		{"天气", `skill "天气" not found`},
		{"", `skill "" not found`},
		{"@", `skill "@" not found`},
		{"hidden", `skill "hidden" is not available: not on the allowlist (skills.allow)`},
		{"pdf@^2", `skill "pdf@^2" is not available: u/pdf has version 1.0.0; g/pdf has version 1.5.0`},
		{"csv@1", `skill "csv@1" is not available: u/csv has no version, so it satisfies no constraint`},
		{"pdf@new", `skill "pdf@new" is not available: invalid version constraint "new"; write for example pdf@^1.2`},
		{"nope@new", `skill "nope@new" not found`},
		{"../pdf", `skill "../pdf" not found; did you mean pdf?`},
		{"../../etc/passwd", `skill "../../etc/passwd" not found`},
		{"u/../g/pdf", `skill "u/../g/pdf" not found; did you mean pdf?`},
		{"/etc", `skill "/etc" not found`},
		{"a\x00b\x1b[31m\n", `skill "a\x00b\x1b[31m" not found`},
		{strings.Repeat("x", 1<<16), `skill "` + strings.Repeat("x", 200) + `…" not found`},
	} {
		_, err := s.Get(tt.ref)
		if err == nil || err.Error() != tt.want {
			t.Errorf("%.40q: %v\nwant %s", tt.ref, err, tt.want)
			continue
		}
		nf, ok := errors.AsType[*catalog.NotFoundError](err)
		if !ok || !errors.Is(err, fs.ErrNotExist) || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: %T is not a not-found error", tt.ref, err)
		} else if len(nf.Suggestions) > 3 {
			t.Errorf("%q: %d near names", tt.ref, len(nf.Suggestions))
		}
	}
}

// No reference opens a file outside the catalog, however it is spelled.
func TestReferenceIsNeverAPath(t *testing.T) {
	root := tree(t, map[string]string{"outside/SKILL.md": doc("outside", ""), "skills/pdf/SKILL.md": doc("pdf", "")})
	c := open(t, dir(filepath.Join(root, "skills")))
	for _, ref := range []string{"../outside", "dir/../outside", "dir/../../outside", root + "/outside", "pdf/../../outside", "dir/./pdf", "dir//pdf", `..\outside`, "dir/pdf/../pdf"} {
		if e, err := c.Resolve(t.Context(), ref); err == nil {
			t.Errorf("%q is %s", ref, e.Path)
		}
	}
}

func TestDigestsAreReferences(t *testing.T) {
	root := tree(t, map[string]string{"a/SKILL.md": doc("pdf", ""), "b/SKILL.md": doc("pdf", "license: MIT\n"), "b/x.txt": "x"})
	c := open(t, dir(root))
	for e := range c.Snapshot().All() {
		m, err := c.Manifest(t.Context(), e)
		must(t, err)
		got, err := c.Resolve(t.Context(), " "+m.Digest()+"\n")
		if err != nil || got != e {
			t.Errorf("the digest of %s: %v, %v", e.Dir, got, err)
		}
	}
	unknown := "sha256:" + strings.Repeat("0", 64)
	if _, err := c.Resolve(t.Context(), unknown); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an unknown digest: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Resolve(ctx, unknown); !errors.Is(err, context.Canceled) {
		t.Errorf("after cancel: %v", err)
	}
	off := filtered(t, catalog.Filter{Disabled: true}, dir(root))
	if _, err := off.Resolve(t.Context(), unknown); err == nil || !strings.Contains(err.Error(), "switched off") {
		t.Errorf("with skills off: %v", err)
	}
}

// K6: returned values do not change later, and changing them does not change the
// catalog.
func TestK6ReturnedValuesAreCopies(t *testing.T) {
	m := source("m", catalog.User, "a", "b")
	n := source("n", catalog.Group, "a")
	c := open(t, m, n)
	before := c.Snapshot()
	view := func(s *catalog.Snapshot) string {
		return fmt.Sprint(keys(s.Skills()), keys(slices.Collect(s.All())), s.Shadowed(), s.Explain("a"), s.Version)
	}
	want := view(before)
	clear(before.ForModel())
	clear(before.Shadowed())
	clear(before.Explain("a"))
	clear(c.Sources())
	m.entries = source("m", catalog.User, "c").entries
	must(t, c.Reload(t.Context()))
	if got := view(before); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := names(c.Snapshot().Skills()); !slices.Equal(got, []string{"a", "c"}) {
		t.Errorf("after the reload %q", got)
	}
}
