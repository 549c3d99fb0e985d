package mcpserver

import (
	"context"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"pgregory.net/rapid"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/skill"
)

func skillFile(name string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte("---\nname: " + name + "\ndescription: d\n---\nx")}
}

func viewOf(t interface {
	Helper()
	Fatal(...any)
}, sources ...catalog.Source) *view {
	t.Helper()
	c, err := catalog.New(sources, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Reload(context.Background()); err != nil {
		t.Fatal(err)
	}
	return &view{snap: c.Snapshot()}
}

func TestEachSkillHasItsOwnPath(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"a", "b", "c", "hub", "more"})
		dir := rapid.Custom(func(t *rapid.T) string {
			return strings.Join(rapid.SliceOfN(name, 1, 3).Draw(t, "path"), "/")
		})
		var sources []catalog.Source
		trees := map[string]fs.FS{}
		for _, origin := range []string{"hub", "a", "from.a"} {
			tree := fstest.MapFS{}
			for d, n := range rapid.MapOfN(dir, name, 0, 6).Draw(t, origin) {
				if rapid.Bool().Draw(t, "named like its directory") {
					n = path.Base(d)
				}
				tree[d+"/SKILL.md"] = skillFile(n)
				tree[d+"/note.md"] = &fstest.MapFile{Data: []byte(origin + "/" + d)}
			}
			trees[origin] = tree
			sources = append(sources, catalog.NewFS(origin, catalog.User, tree))
		}
		v := viewOf(t, sources...)
		seen := map[string]bool{}
		for e := range v.served() {
			root := v.uriOf(e)
			if seen[root] || path.Base(root) != e.Name {
				t.Fatalf("%s is at %s", e.Key(), root)
			}
			seen[root] = true
			sub, err := fs.Sub(trees[e.Origin], e.Dir)
			if err != nil {
				t.Fatal(err)
			}
			files, _, err := skill.List(sub)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range files {
				found, inside, ok := v.find(root + "/" + escapePath(f.Path))
				if !ok {
					t.Fatalf("%s of %s is not found at %s", f.Path, e.Key(), root)
				}
				want, _ := fs.ReadFile(sub, f.Path)
				got, err := fs.ReadFile(trees[found.Origin], path.Join(found.Dir, inside))
				if err != nil || string(got) != string(want) || found.Origin != e.Origin {
					t.Fatalf("%s of %s at %s is %s of %s", f.Path, e.Key(), root, inside, found.Key())
				}
			}
		}
		for _, e := range v.snap.Skills() {
			if unportableReason(e) == "" && !slices.Contains(slices.Collect(v.served()), e) {
				t.Fatalf("%s is not served", e.Key())
			}
		}
	})
}

func TestPathsInURIs(t *testing.T) {
	for p, want := range map[string]string{
		"pdf/SKILL.md":         "pdf/SKILL.md",
		"a b/ü#?%.md":          "a%20b/%C3%BC%23%3F%25.md",
		"a:b@c;d=e&f+g$h,i(j)": "a%3Ab@c%3Bd=e&f+g$h%2Ci%28j%29",
		`back\slash`:           "back%5Cslash",
		"..notes/...":          "..notes/...",
	} {
		if got := escapePath(p); got != want {
			t.Errorf("escapePath(%q) = %q, want %q", p, got, want)
		}
		if back, ok := unescapePath(escapePath(p)); !ok || back != p {
			t.Errorf("%q comes back as %q, %t", p, back, ok)
		}
	}
	for _, bad := range []string{"", "/", "a/", "/a", "a//b", ".", "..", "a/..", "a/%2e%2e", "a/%2E", "%2f", "a%2Fb", "a%00", "a%", "a%zz", "a?b", "a#b", "%ff", "a\x00b"} {
		if got, ok := unescapePath(bad); ok {
			t.Errorf("unescapePath(%q) = %q", bad, got)
		}
	}
}

func FuzzFind(f *testing.F) {
	for _, uri := range []string{"skill://pdf/SKILL.md", "skill://", "skill:///", "skill:////", "skill://pdf/../x", "skill://pdf/%2e%2e/x", "skill://pdf%2fSKILL.md", "skill://a/b/c/../../..", "skill://pdf/\x00", "x", "skill://pdf/" + strings.Repeat("\x1d", 4000)} {
		f.Add(uri)
	}
	tree := fstest.MapFS{"pdf/SKILL.md": skillFile("pdf"), "pdf/parts/inner/SKILL.md": skillFile("inner"), "pdf/a b.md": {}, "csv/SKILL.md": skillFile("csv")}
	v := viewOf(f, catalog.NewFS("a", catalog.User, tree), catalog.NewFS("b", catalog.User, tree))
	f.Fuzz(func(t *testing.T, uri string) {
		e, inside, ok := v.find(uri)
		if !ok {
			return
		}
		if inside != "" && !fs.ValidPath(inside) || inside == "." {
			t.Fatalf("%q is %q in %s", uri, inside, e.Key())
		}
		again, same, ok := v.find(strings.TrimSuffix(v.uriOf(e)+"/"+escapePath(inside), "/"))
		if !ok || again != e || same != inside {
			t.Fatalf("%q is %q in %s, whose URI is %q in %v", uri, inside, e.Key(), same, again)
		}
	})
}
