package catalog_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/catalog"
)

func TestDiscovery(t *testing.T) {
	zipped := pack(t, map[string]string{"packed/SKILL.md": doc("packed", "")})
	for _, tt := range []struct {
		what  string
		files map[string]string
		want  []string // directories of the skills
		codes []string // problems
	}{
		{"nothing", map[string]string{"README.md": "hello"}, []string{}, nil},
		{"a directory with SKILL.md", map[string]string{"pdf/SKILL.md": doc("pdf", "")}, []string{"pdf"}, nil},
		{"the root itself", map[string]string{"SKILL.md": doc("pdf", "")}, []string{"."}, []string{"SKILL.md name-folder"}},
		{"a skill in a skill", map[string]string{"a/SKILL.md": doc("a", ""), "a/b/SKILL.md": doc("b", "")}, []string{"a", "a/b"}, nil},
		{"a skill far below a skill", map[string]string{"a/SKILL.md": doc("a", ""), "a/x/y/z/SKILL.md": doc("z", "")}, []string{"a", "a/x/y/z"}, nil},
		{"groups of skills", map[string]string{"g/h/one/SKILL.md": doc("one", ""), "g/two/SKILL.md": doc("two", "")}, []string{"g/h/one", "g/two"}, nil},
		{"a hidden directory", map[string]string{".curated/pdf/SKILL.md": doc("pdf", "")}, []string{".curated/pdf"}, nil},
		{
			"what a skill keeps for itself is not searched",
			map[string]string{"a/SKILL.md": doc("a", ""), "a/assets/t/SKILL.md": doc("t", ""), "a/references/SKILL.md": doc("r", ""), "a/scripts/s/SKILL.md": doc("s", "")},
			[]string{"a"}, nil,
		},
		{
			"also not further down in a skill",
			map[string]string{"a/SKILL.md": doc("a", ""), "a/x/assets/t/SKILL.md": doc("t", ""), "a/x/b/SKILL.md": doc("b", "")},
			[]string{"a", "a/x/b"}, nil,
		},
		{"outside a skill these are names like others", map[string]string{"scripts/SKILL.md": doc("scripts", "")}, []string{"scripts"}, nil},
		{
			"version control, dependencies, caches and private skills of Codex are skipped",
			map[string]string{
				".git/a/SKILL.md": doc("a", ""), "node_modules/b/SKILL.md": doc("b", ""), "vendor/c/SKILL.md": doc("c", ""),
				".venv/d/SKILL.md": doc("d", ""), "__pycache__/e/SKILL.md": doc("e", ""), "x/site-packages/f/SKILL.md": doc("f", ""),
				"g/SKILL.md": doc("g", ""), "bower_components/h/SKILL.md": doc("h", ""), "dist-packages/i/SKILL.md": doc("i", ""), ".nox/j/SKILL.md": doc("j", ""),
				".system/k/SKILL.md": doc("k", ""),
			},
			[]string{"g"}, nil,
		},
		{"skill.md", map[string]string{"a/skill.md": doc("a", "")}, []string{"a"}, []string{"a/skill.md file-name"}},
		{"Skill.MD", map[string]string{"a/Skill.MD": doc("a", "")}, []string{"a"}, []string{"a/Skill.MD file-name"}},
		{"SKILL.md is preferred to other spellings", map[string]string{"a/SKILL.md": doc("a", ""), "a/skill.md": doc("other", ""), "a/SKILL.MD": doc("third", "")}, []string{"a"}, nil},
		{"a document about a skill is none", map[string]string{"a/skill.md": "# On skill\n"}, []string{}, nil},
		{"other names are no skills", map[string]string{"a/SKILLS.md": doc("a", ""), "b/SKILL.txt": doc("b", ""), "c/MY-SKILL.md": doc("c", "")}, []string{}, nil},
		{"a directory named SKILL.md is none", map[string]string{"a/SKILL.md/": "", "b/SKILL.md": doc("b", "")}, []string{"b"}, nil},
		{"a skill in a directory named SKILL.md", map[string]string{"SKILL.md/a/SKILL.md": doc("a", "")}, []string{"SKILL.md/a"}, nil},
		{"an archive", map[string]string{"x/packed.skill": zipped}, []string{"x/packed.skill"}, nil},
		{"an archive in other letters", map[string]string{"packed.SKILL": zipped}, []string{"packed.SKILL"}, nil},
		{"an archive in a skill is a file of the skill", map[string]string{"a/SKILL.md": doc("a", ""), "a/packed.skill": zipped, "a/x/packed.skill": zipped}, []string{"a"}, nil},
		{"a .zip may be anything", map[string]string{"packed.zip": zipped}, []string{}, nil},
		{"a directory named like an archive", map[string]string{"a.skill/SKILL.md": doc("a.skill", "")}, []string{"a.skill"}, []string{"a.skill/SKILL.md name-characters"}},
	} {
		t.Run(tt.what, func(t *testing.T) {
			root := tree(t, tt.files)
			s := scan(t, root)
			if diff := cmp.Diff(tt.want, dirs(s)); diff != "" {
				t.Errorf("skills (-want +got):\n%s", diff)
			}
			if got := codes(root, s.Problems()); !slices.Equal(got, tt.codes) && len(got)+len(tt.codes) > 0 {
				t.Errorf("problems %q, want %q", got, tt.codes)
			}
		})
	}
}

// A skill found once is found the same way by the second scan and by a fresh
// process, whatever way the scan takes through the tree.
func TestDiscoveryIsStableAcrossRestarts(t *testing.T) {
	root := tree(t, map[string]string{
		"SKILL.md": doc("root", ""), "a/SKILL.md": doc("a", ""), "a/scripts/x.py": "", "a/b/SKILL.md": doc("b", ""),
		"c/skill.md": doc("c", ""), "d/e/f/SKILL.md": doc("f", ""), "bad/SKILL.md": "no frontmatter", "l": "-> d/e/f",
	})
	index := filepath.Join(t.TempDir(), "i.idx")
	for _, aged := range []bool{false, true} {
		if aged {
			age(t, root)
		}
		first := catalog.NewDir("dir", catalog.Project, root, &catalog.DirOptions{IndexFile: index})
		for _, d := range []catalog.Source{first, first, catalog.NewDir("dir", catalog.Project, root, &catalog.DirOptions{IndexFile: index}), dir(root)} {
			s := open(t, d).Snapshot()
			if diff := cmp.Diff([]string{".", "a", "a/b", "c", "d/e/f"}, dirs(s)); diff != "" {
				t.Errorf("aged %v: skills (-want +got):\n%s", aged, diff)
			}
			if diff := cmp.Diff([]string{"SKILL.md name-folder", "bad/SKILL.md frontmatter-missing", "c/skill.md file-name"}, codes(root, s.Problems())); diff != "" {
				t.Errorf("aged %v: problems (-want +got):\n%s", aged, diff)
			}
		}
	}
}

func TestDiscoveryDepthIsSix(t *testing.T) {
	root := tree(t, map[string]string{
		"1/2/3/4/5/six/SKILL.md":       doc("six", ""),
		"1/2/3/4/5/6/seven/SKILL.md":   doc("seven", ""),
		"1/2/3/4/5/7/eight/SKILL.md":   doc("eight", ""),
		"1/2/3/4/5/six/sub/x/SKILL.md": doc("x", ""),
	})
	s := scan(t, root)
	if diff := cmp.Diff([]string{"1/2/3/4/5/six"}, dirs(s)); diff != "" {
		t.Errorf("skills (-want +got):\n%s", diff)
	}
	if n := len(s.Problems()); n != 1 {
		t.Fatalf("%d problems, want one that tells where the search ended: %v", n, s.Problems())
	}
	p := s.Problems()[0]
	if p.Code != "depth-limit" || p.Severity != "info" || !strings.Contains(p.Fix, "skills.depth") || p.Origin != "dir" {
		t.Errorf("got %+v, want a hint that names skills.depth", p)
	}

	for depth, want := range map[int][]string{1: {}, 5: {}, 7: {"1/2/3/4/5/6/seven", "1/2/3/4/5/7/eight", "1/2/3/4/5/six"}, 8: {"1/2/3/4/5/6/seven", "1/2/3/4/5/7/eight", "1/2/3/4/5/six", "1/2/3/4/5/six/sub/x"}} {
		d := catalog.NewDir("dir", catalog.Project, root, &catalog.DirOptions{MaxDepth: depth})
		s := open(t, d).Snapshot()
		if got := dirs(s); !slices.Equal(got, want) {
			t.Errorf("depth %d: got %q, want %q", depth, got, want)
		}
		if cut := len(s.Problems()) > 0; cut != (depth < 8) {
			t.Errorf("depth %d: problems %v", depth, s.Problems())
		}
	}
}

func TestDiscoveryReportsTooManyDirectories(t *testing.T) {
	root := tree(t, map[string]string{"a/SKILL.md": doc("a", ""), "b/SKILL.md": doc("b", ""), "c/SKILL.md": doc("c", ""), "d/SKILL.md": doc("d", "")})
	age(t, root)
	index := filepath.Join(t.TempDir(), "i.idx")
	few := catalog.NewDir("dir", catalog.Project, root, &catalog.DirOptions{MaxDirs: 3, IndexFile: index})
	s := open(t, few).Snapshot()
	if diff := cmp.Diff([]string{"a", "b"}, dirs(s)); diff != "" {
		t.Errorf("skills (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{". directory-limit"}, codes(root, s.Problems())); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	// What was cut off is not remembered as not being there.
	all := catalog.NewDir("dir", catalog.Project, root, &catalog.DirOptions{IndexFile: index})
	if diff := cmp.Diff([]string{"a", "b", "c", "d"}, dirs(open(t, all).Snapshot())); diff != "" {
		t.Errorf("after a restart with a higher bound (-want +got):\n%s", diff)
	}
}

func TestLinks(t *testing.T) {
	t.Run("to a directory of skills as the root", func(t *testing.T) {
		root := tree(t, map[string]string{"real/pdf/SKILL.md": doc("pdf", ""), "link": "-> real"})
		e := get(t, scan(t, filepath.Join(root, "link")), "pdf")
		if want := filepath.Join(root, "link", "pdf"); e.Path != want || e.Location() != want {
			t.Errorf("path %s and location %s, want %s", e.Path, e.Location(), want)
		}
	})
	t.Run("to a skill elsewhere", func(t *testing.T) {
		root := tree(t, map[string]string{"store/pdf/SKILL.md": doc("pdf", ""), "skills/pdf": "-> ../store/pdf"})
		c := open(t, dir(filepath.Join(root, "skills")))
		e := get(t, c.Snapshot(), "pdf")
		if s, _, err := c.Read(t.Context(), e); err != nil || s.Name != "pdf" {
			t.Errorf("read: %v", err)
		}
	})
	t.Run("cycles are followed once", func(t *testing.T) {
		root := tree(t, map[string]string{"a/b/up": "-> ../..", "a/loop": "-> loop", "pdf/SKILL.md": doc("pdf", ""), "self": "-> ."})
		s := scan(t, root)
		if diff := cmp.Diff([]string{"pdf"}, dirs(s)); diff != "" {
			t.Errorf("skills (-want +got):\n%s", diff)
		}
		if len(s.Problems()) > 0 {
			t.Errorf("problems %v", s.Problems())
		}
	})
	t.Run("two symlinks to one skill are one skill", func(t *testing.T) {
		root := tree(t, map[string]string{"pdf/SKILL.md": doc("pdf", ""), "x/pdf": "-> ../pdf", "y": "-> pdf"})
		s := scan(t, root)
		if diff := cmp.Diff([]string{"pdf"}, dirs(s)); diff != "" {
			t.Errorf("skills (-want +got):\n%s", diff)
		}
		if len(s.Shadowed()) > 0 {
			t.Errorf("shadowed: %v, want none: it is one skill", s.Shadowed())
		}
	})
	t.Run("of a skill to directories are not searched", func(t *testing.T) {
		root := tree(t, map[string]string{
			"other/secret/SKILL.md": doc("secret", ""),
			"skills/pdf/SKILL.md":   doc("pdf", ""), "skills/pdf/out": "-> ../../other", "skills/pdf/sub/in/SKILL.md": doc("in", ""), "skills/pdf/sub/out": "-> ../../../other",
			"skills/csv/SKILL.md": doc("csv", ""), "skills/csv/out": "-> ../../other",
		})
		if diff := cmp.Diff([]string{"csv", "pdf", "pdf/sub/in"}, dirs(scan(t, filepath.Join(root, "skills")))); diff != "" {
			t.Errorf("skills (-want +got):\n%s", diff)
		}
	})
	t.Run("as SKILL.md must not leave the skill", func(t *testing.T) {
		root := tree(t, map[string]string{
			"outside.md": doc("outside", ""), "skills/out/SKILL.md": "-> ../../outside.md",
			"skills/in/SKILL.md": "-> docs/text.md", "skills/in/docs/text.md": doc("in", ""),
			"skills/lost/SKILL.md": "-> nowhere.md",
		})
		s := scan(t, filepath.Join(root, "skills"))
		if diff := cmp.Diff([]string{"in"}, dirs(s)); diff != "" {
			t.Errorf("skills (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"lost/SKILL.md unreadable", "out/SKILL.md unreadable"}, codes(filepath.Join(root, "skills"), s.Problems())); diff != "" {
			t.Errorf("problems (-want +got):\n%s", diff)
		}
		for _, p := range s.Problems() {
			if !strings.Contains(p.Message, "link") {
				t.Errorf("message %q does not speak of a link", p.Message)
			}
		}
	})
	t.Run("dangling ones are skipped", func(t *testing.T) {
		root := tree(t, map[string]string{"gone": "-> nowhere", "pdf/SKILL.md": doc("pdf", "")})
		s := scan(t, root)
		if diff := cmp.Diff([]string{"pdf"}, dirs(s)); diff != "" || len(s.Problems()) > 0 {
			t.Errorf("problems %v, skills (-want +got):\n%s", s.Problems(), diff)
		}
	})
}

// A symlink that was skipped because its target had been found already is used after the
// other path is removed.
func TestDirectoryStaysWhenOneOfTwoPathsIsRemoved(t *testing.T) {
	for _, aged := range []bool{false, true} {
		root := tree(t, map[string]string{"a/link": "-> ../z", "z/pdf/SKILL.md": doc("pdf", "")})
		if aged {
			age(t, root)
		}
		c := open(t, dir(root))
		if got := dirs(c.Snapshot()); !slices.Equal(got, []string{"a/link/pdf"}) {
			t.Fatalf("got %q", got)
		}
		must(t, os.Remove(filepath.Join(root, "a", "link")))
		must(t, c.Reload(t.Context()))
		if got := dirs(c.Snapshot()); !slices.Equal(got, []string{"z/pdf"}) {
			t.Errorf("aged %v: after the link is gone got %q, want z/pdf", aged, got)
		}
	}
}

func TestNestedFilesBelongToNearestSkill(t *testing.T) {
	root := tree(t, map[string]string{
		"a/sub/packed.skill":      pack(t, map[string]string{"packed/SKILL.md": doc("packed", "")}),
		"a/sub/assets/t/SKILL.md": doc("t", ""),
		"a/sub/m.py":              "SKILL_MANIFEST = {'name': 'm'}\n",
	})
	age(t, root)
	c := open(t, dir(root))
	loose := []string{"a/sub/assets/t", "a/sub/packed.skill"}
	if diff := cmp.Diff(loose, dirs(c.Snapshot())); diff != "" {
		t.Fatalf("before (-want +got):\n%s", diff)
	}
	write(t, root, map[string]string{"a/SKILL.md": doc("a", "")})
	must(t, c.Reload(t.Context()))
	if diff := cmp.Diff([]string{"a"}, dirs(c.Snapshot())); diff != "" {
		t.Errorf("with a skill above (-want +got):\n%s", diff)
	}
	if len(c.Snapshot().Problems()) > 0 {
		t.Errorf("with a skill above: problems %v", c.Snapshot().Problems())
	}
	must(t, os.Remove(filepath.Join(root, "a", "SKILL.md")))
	must(t, c.Reload(t.Context()))
	if diff := cmp.Diff(loose, dirs(c.Snapshot())); diff != "" {
		t.Errorf("without it again (-want +got):\n%s", diff)
	}
}

func TestSkillInTwoSourcesIsListedOnce(t *testing.T) {
	root := tree(t, map[string]string{"store/pdf/SKILL.md": doc("pdf", ""), "a": "-> store", "b/pdf": "-> ../store/pdf"})
	c := open(t,
		catalog.NewDir("a", catalog.User, filepath.Join(root, "a"), nil),
		catalog.NewDir("b", catalog.Project, filepath.Join(root, "b"), nil),
		catalog.NewDir("store", catalog.User, filepath.Join(root, "store"), nil))
	s := c.Snapshot()
	if got := keys(slices.Collect(s.All())); !slices.Equal(got, []string{"b/pdf"}) {
		t.Errorf("skills %q, want b/pdf alone", got)
	}
	if len(s.Shadowed()) > 0 {
		t.Errorf("shadowed %v, want none", s.Shadowed())
	}
	for _, ref := range []string{"pdf", "b/pdf", "a/pdf", "store/pdf"} {
		if e := get(t, s, ref); e.Key() != "b/pdf" {
			t.Errorf("%s is %s", ref, e.Key())
		}
	}
	var got []string
	for _, x := range s.Explain("pdf") {
		got = append(got, x.Origin+": "+x.Reason)
	}
	same := "the same as " + filepath.Join(root, "b", "pdf") + ", reached by another path"
	if diff := cmp.Diff([]string{"b: the only skill of this name", "a: " + same, "store: " + same}, got); diff != "" {
		t.Errorf("explain (-want +got):\n%s", diff)
	}
}

// The head of a file is read in one block of 4 KiB, and in a second one for longer
// frontmatter.
func TestFrontmatterUpTo64KiBIsRead(t *testing.T) {
	fixed := len("---\nname: pdf\ndescription: d\nlicense: \n---\n")
	for _, size := range []int{4095, 4096, 4097, 4 << 10 * 2, 60 << 10, 64<<10 - 100, 64<<10 + 8} {
		for _, tail := range []string{"", "body\n", strings.Repeat("body\n", 20_000)} {
			src := "---\nname: pdf\ndescription: d\nlicense: " + strings.Repeat("x", size-fixed) + "\n---\n" + tail
			s := scan(t, tree(t, map[string]string{"pdf/SKILL.md": src}))
			if len(src)-len(tail) != size {
				t.Fatalf("the test has it wrong: %d", len(src)-len(tail))
			}
			if _, err := s.Get("pdf"); err != nil {
				t.Errorf("a head of %d bytes and a body of %d: %v; problems %v", size, len(tail), err, s.Problems())
			}
		}
	}
	root := tree(t, map[string]string{"pdf/SKILL.md": "---\nname: pdf\ndescription: d\nlicense: " + strings.Repeat("x", 64<<10) + "\n---\n"})
	if got := codes(root, scan(t, root).Problems()); !slices.Equal(got, []string{"pdf/SKILL.md frontmatter-too-long"}) {
		t.Errorf("beyond 64 KiB: %q", got)
	}
}
