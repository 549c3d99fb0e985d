package catalog_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/skill"
)

// broken are skills that do not load, each for its own reason.
var broken = map[string]string{
	"empty/SKILL.md":       "",
	"heading/SKILL.md":     "# no frontmatter\n",
	"unclosed/SKILL.md":    "---\nname: unclosed\ndescription: d\n",
	"undescribed/SKILL.md": "---\nname: undescribed\n---\n",
	"list/SKILL.md":        "---\n- a\n- b\n---\n",
	"nul/SKILL.md":         "---\nname: nul\ndescription: a\x00b\n---\n",
	"utf16/SKILL.md":       "\xff\xfe-\x00-\x00-\x00\n\x00",
	"latin1/SKILL.md":      "---\nname: latin1\ndescription: caf\xe9\n---\n",
	"yaml/SKILL.md":        "---\nname: yaml\ndescription: d\njust text\n---\n",
	"deep/SKILL.md":        "---\nname: deep\ndescription: d\nx: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + "\n---\n",
	"gone/SKILL.md":        "-> nowhere",
	"notzip.skill":         "PK not really",
	"dangling.skill":       "-> nowhere",
}

func TestK3BadSkillHidesNoOthers(t *testing.T) {
	for name, content := range broken {
		t.Run(name, func(t *testing.T) {
			root := tree(t, map[string]string{name: content, "a/SKILL.md": doc("a", ""), "zz/SKILL.md": doc("zz", ""), filepath.Dir(name) + "/below/SKILL.md": doc("below", "")})
			checkBroken(t, root, scan(t, root), []string{"a", "below", "zz"}, 1)
		})
	}
	t.Run("concurrently", func(t *testing.T) {
		root := tree(t, broken)
		write(t, root, map[string]string{"a/SKILL.md": doc("a", ""), "zz/SKILL.md": doc("zz", "")})
		checkBroken(t, root, scan(t, root), []string{"a", "zz"}, len(broken))
	})
	t.Run("in an fs.FS", func(t *testing.T) {
		files := fstest.MapFS{"a/SKILL.md": {Data: []byte(doc("a", ""))}, "zz/skill.md": {Data: []byte(doc("zz", ""))}}
		n := 0
		for name, content := range broken {
			if strings.HasSuffix(name, ".md") && !strings.HasPrefix(content, "-> ") {
				files[name] = &fstest.MapFile{Data: []byte(content)}
				n++
			}
		}
		s := open(t, catalog.NewFS("fs", catalog.Bundled, files)).Snapshot()
		checkBroken(t, "", s, []string{"a", "zz"}, n)
	})
	t.Run("bad source affects no others", func(t *testing.T) {
		root := tree(t, map[string]string{"pdf/SKILL.md": doc("pdf", "")})
		bad := &memory{origin: "bad", scope: catalog.Group, list: func(context.Context) (catalog.Listing, error) {
			return catalog.Listing{}, errors.New("the network is down")
		}}
		s := open(t, bad, catalog.NewDir("none", catalog.Project, filepath.Join(root, "missing"), nil), dir(root)).Snapshot()
		get(t, s, "pdf")
		var got []string
		for _, p := range s.Problems() {
			got = append(got, p.Origin+" "+p.Path+" "+p.Code+" "+p.Message)
		}
		want := []string{"bad bad unreadable cannot be read: the network is down",
			"none " + filepath.Join(root, "missing") + " not-found cannot be read: no such file or directory"}
		if runtime.GOOS == "windows" {
			want[1] = got[1] // in other words
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("problems (-want +got):\n%s", diff)
		}
	})
}

// checkBroken expects these skills, and a useful problem for each broken one.
func checkBroken(t *testing.T, root string, s *catalog.Snapshot, want []string, bad int) {
	t.Helper()
	if got := names(s.Skills()); !slices.Equal(got, want) {
		t.Errorf("skills %q, want %q", got, want)
	}
	paths := map[string]bool{}
	for _, p := range s.Problems() {
		if p.Severity != skill.Error {
			continue
		}
		paths[p.Path] = true
		if p.Origin == "" || p.Code == "" || p.Message == "" || p.Fix == "" || !strings.HasPrefix(p.Path, root) {
			t.Errorf("the problem does not say where, what and how how to fix it: %+v", p)
		}
	}
	if len(paths) != bad {
		t.Errorf("problems with %d places, want %d: %v", len(paths), bad, s.Problems())
	}
}

func TestProblemsHaveLineNumbers(t *testing.T) {
	root := tree(t, map[string]string{"pdf/SKILL.md": "---\nname: pdf\ndescription: d\nx: \"\n---\n"})
	p := scan(t, root).Problems()[0]
	if p.Line == 0 || p.Column == 0 || p.Path != filepath.Join(root, "pdf", "SKILL.md") {
		t.Errorf("got %+v, want a line and column", p)
	}
	if got := p.String(); !strings.HasPrefix(got, p.Path+":") || !strings.Contains(got, "["+p.Code+"]\n") || !strings.HasSuffix(got, p.Fix) {
		t.Errorf("as text: %q", got)
	}
}

func TestRepairedSkillLoadsWithDiagnostic(t *testing.T) {
	root := tree(t, map[string]string{"pdf/SKILL.md": "---\nname: pdf\ndescription: Use when: a PDF is there\n---\n"})
	s := scan(t, root)
	e := get(t, s, "pdf")
	if e.Verbatim || e.Warnings != 1 || e.Description != "Use when: a PDF is there" {
		t.Errorf("got %+v", e)
	}
	if got := codes(root, s.Problems()); !slices.Equal(got, []string{"pdf/SKILL.md yaml-repaired"}) {
		t.Errorf("problems %q", got)
	}
}

func TestL16CodeManifestIsOfferedAsDraft(t *testing.T) {
	root := tree(t, map[string]string{
		"chrome/skill.py":   "from x import SkillManifest\nSKILL_MANIFEST = SkillManifest(name='chrome')\n",
		"top.py":            "SKILL_MANIFEST = {'name': 'top'}\n",
		"uses/it.py":        "print(SKILL_MANIFEST)\n",
		"indented/it.py":    "if True:\n    SKILL_MANIFEST = 1\n",
		"both/SKILL.md":     doc("both", ""), // SKILL.md comes first
		"both/skill.py":     "SKILL_MANIFEST = {'name': 'both'}\n",
		"both/sub/skill.py": "SKILL_MANIFEST = {'name': 'sub'}\n",
		"text/manifest.txt": "SKILL_MANIFEST = {}\n",
	})
	s := scan(t, root)
	if diff := cmp.Diff([]string{"both"}, names(s.Skills())); diff != "" {
		t.Errorf("skills (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"chrome/skill.py code-manifest", "top.py code-manifest"}, codes(root, s.Problems())); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	for _, p := range s.Problems() {
		if want := "loadout new --from " + p.Path; !strings.Contains(p.Fix, want) || p.Severity != skill.Warning {
			t.Errorf("%s: fix %q, want %q", p.Path, p.Fix, want)
		}
	}
}

func TestL16DuplicatesAreReported(t *testing.T) {
	root := tree(t, map[string]string{"a/SKILL.md": doc("pdf", ""), "b/SKILL.md": doc("pdf", "")})
	got := scan(t, root).Shadowed()
	want := []catalog.Shadow{{Name: "pdf", Origin: "dir", Path: filepath.Join(root, "b"), Winner: "dir/a", Reason: "b comes after a in the same source"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("shadowed (-want +got):\n%s", diff)
	}
}

func TestMissingDirectory(t *testing.T) {
	root := tree(t, map[string]string{"file": "x", "pdf/SKILL.md": doc("pdf", ""), "dangling": "-> nowhere"})
	for _, tt := range []struct {
		path     string
		optional bool
		want     []string
	}{
		{"missing", false, []string{"missing not-found"}},
		{"missing", true, []string{}},
		{"missing/below", true, []string{}},
		{"file", false, []string{"file unreadable"}},
		{"file", true, []string{}}, // a file of that name is something else
		{"file/below", true, []string{}},
		{"dangling", false, []string{"dangling not-found"}},
		{"dangling", true, []string{"dangling not-found"}}, // the user probably made a mistake
		{"pdf", true, []string{}},
	} {
		d := catalog.NewDir("x", catalog.User, filepath.Join(root, filepath.FromSlash(tt.path)), &catalog.DirOptions{Optional: tt.optional})
		s := open(t, d, dir(root)).Snapshot()
		if got := codes(root, s.Problems()); !slices.Equal(got, tt.want) {
			t.Errorf("%s, optional %v: problems %q, want %q", tt.path, tt.optional, got, tt.want)
		}
		get(t, s, "pdf")
	}
}

func TestUnreadableSkillIsReported(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may read everything")
	}
	root := tree(t, map[string]string{"a/SKILL.md": doc("a", ""), "b/SKILL.md": doc("b", ""), "shut/c/SKILL.md": doc("c", ""), "d.skill": "x", "z/SKILL.md": doc("z", "")})
	shut := []string{"b/SKILL.md", "d.skill", "shut"}
	for _, p := range shut {
		must(t, os.Chmod(filepath.Join(root, p), 0))
		t.Cleanup(func() { os.Chmod(filepath.Join(root, p), 0o700) })
	}
	c := open(t, dir(root))
	for range 2 {
		s := c.Snapshot()
		if diff := cmp.Diff([]string{"a", "z"}, names(s.Skills())); diff != "" {
			t.Errorf("skills (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"b/SKILL.md unreadable", "d.skill unreadable", "shut unreadable"}, codes(root, s.Problems())); diff != "" {
			t.Errorf("problems (-want +got):\n%s", diff)
		}
		for _, p := range s.Problems() {
			if !strings.Contains(p.Fix, "right to read") {
				t.Errorf("%s: fix %q", p.Path, p.Fix)
			}
		}
		must(t, c.Reload(t.Context()))
	}
	// Once it may be read it is, although nothing was written.
	for _, p := range shut {
		must(t, os.Chmod(filepath.Join(root, p), 0o700))
	}
	must(t, c.Reload(t.Context()))
	if diff := cmp.Diff([]string{"a", "b", "c", "z"}, names(c.Snapshot().Skills())); diff != "" {
		t.Errorf("after it may be read (-want +got):\n%s", diff)
	}
}

func TestUnreadableRootIsReported(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may read everything")
	}
	root := tree(t, map[string]string{"s/a/SKILL.md": doc("a", "")})
	shut := filepath.Join(root, "s")
	must(t, os.Chmod(shut, 0))
	t.Cleanup(func() { os.Chmod(shut, 0o700) })
	d := catalog.NewDir("x", catalog.User, shut, &catalog.DirOptions{Optional: true})
	if got := codes(root, open(t, d).Snapshot().Problems()); !slices.Equal(got, []string{"s unreadable"}) {
		t.Errorf("problems %q", got)
	}
}

// A file may be deleted, or replaced, after the catalog has listed it.
func TestSkillVanishesOrBreaksAfterListing(t *testing.T) {
	for _, tt := range []struct {
		what   string
		change func(dir string) error
		ok     func(error) bool
	}{
		{"the directory is deleted", os.RemoveAll, func(err error) bool { return errors.Is(err, fs.ErrNotExist) }},
		{"the file is deleted", func(dir string) error { return os.Remove(filepath.Join(dir, "SKILL.md")) }, func(err error) bool { return errors.Is(err, fs.ErrNotExist) }},
		{"it breaks", func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte("---\nname: pdf\n---\n"), 0o644)
		}, func(err error) bool {
			be, ok := errors.AsType[*catalog.BrokenError](err)
			return ok && be.Name == "pdf" && strings.Contains(err.Error(), "description")
		}},
		{"it becomes huge", func(dir string) error { return os.Truncate(filepath.Join(dir, "SKILL.md"), skillfile.MaxFileBytes+1) }, func(err error) bool { return strings.Contains(err.Error(), "too large") }},
		{"it becomes a directory", func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "SKILL.md")), os.Mkdir(filepath.Join(dir, "SKILL.md"), 0o755))
		}, func(err error) bool { return strings.Contains(err.Error(), "not a regular file") }},
		{"it becomes a link that leads out", func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "SKILL.md")), os.WriteFile(dir+"/../x.md", []byte(doc("pdf", "")), 0o644), os.Symlink("../x.md", filepath.Join(dir, "SKILL.md")))
		}, func(err error) bool { return err != nil }},
	} {
		t.Run(tt.what, func(t *testing.T) {
			root := tree(t, map[string]string{"pdf/SKILL.md": doc("pdf", ""), "csv/SKILL.md": doc("csv", "")})
			c := open(t, dir(root))
			e := get(t, c.Snapshot(), "pdf")
			must(t, tt.change(filepath.Join(root, "pdf")))
			if s, src, err := c.Read(t.Context(), e); !tt.ok(err) {
				t.Errorf("read: %v, %d bytes, error %v", s, len(src), err)
			}
			if _, _, err := c.Read(t.Context(), get(t, c.Snapshot(), "csv")); err != nil {
				t.Errorf("the skill beside it: %v", err)
			}
			must(t, c.Reload(t.Context()))
			if got := names(c.Snapshot().Skills()); tt.what != "it becomes huge" && !slices.Equal(got, []string{"csv"}) {
				t.Errorf("after a reload: %q", got)
			}
		})
	}
	t.Run("its spelling changes", func(t *testing.T) {
		root := tree(t, map[string]string{"pdf/SKILL.md": doc("pdf", "")})
		c := open(t, dir(root))
		e := get(t, c.Snapshot(), "pdf")
		must(t, os.Rename(filepath.Join(root, "pdf", "SKILL.md"), filepath.Join(root, "pdf", "skill.md")))
		if _, _, err := c.Read(t.Context(), e); err != nil {
			t.Errorf("read: %v", err)
		}
	})
}
