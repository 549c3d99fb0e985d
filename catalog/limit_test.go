package catalog_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/catalog"
)

// project returns the source of the directory skills in a project.
func project(root string, o catalog.DirOptions) catalog.Watcher {
	o.Within = root
	return catalog.NewDir("dir", catalog.Project, filepath.Join(root, "skills"), &o).(catalog.Watcher)
}

func TestSymlinksOutOfAProject(t *testing.T) {
	away := tree(t, map[string]string{"pdf/SKILL.md": doc("pdf", ""), "a.skill": pack(t, map[string]string{"packed/SKILL.md": doc("packed", "")})})
	inside := map[string]string{"skills/own/SKILL.md": doc("own", "")}
	for _, tt := range []struct {
		what  string
		files map[string]string
		want  []string // directories of the skills
		codes []string // problems, relative to the project
	}{
		{"to the root of the file system", map[string]string{"skills/x": "-> /"}, []string{"own"}, []string{"skills/x outside-project"}},
		{"to a skill elsewhere", map[string]string{"skills/x": "-> " + away + "/pdf"}, []string{"own"}, []string{"skills/x outside-project"}},
		{"by dots", map[string]string{"skills/x": "-> ../../../../../../../../../../.." + away}, []string{"own"}, []string{"skills/x outside-project"}},
		{"by another symlink", map[string]string{"skills/x": "-> ../y", "y": "-> " + away}, []string{"own"}, []string{"skills/x outside-project"}},
		{"through a directory that is a symlink", map[string]string{"skills/x": "-> ../y/pdf", "y": "-> " + away}, []string{"own"}, []string{"skills/x outside-project"}},
		{"of a subdirectory", map[string]string{"skills/g/h/x": "-> " + away}, []string{"own"}, []string{"skills/g/h/x outside-project"}},
		{"to an archive", map[string]string{"skills/a.skill": "-> " + away + "/a.skill"}, []string{"own"}, []string{"skills/a.skill outside-project"}},
		{"to a missing directory", map[string]string{"skills/x": "-> /nowhere/at/all"}, []string{"own"}, []string{"skills/x outside-project"}},
		{"inside, relative", map[string]string{"skills/x": "-> ../lib", "lib/pdf/SKILL.md": doc("pdf", "")}, []string{"own", "x/pdf"}, nil},
		{"inside, to a skill", map[string]string{"skills/x": "-> ../lib/x", "lib/x/SKILL.md": doc("x", "")}, []string{"own", "x"}, nil},
		{"inside, by a symlink", map[string]string{"skills/x": "-> ../y/pdf", "y": "-> lib", "lib/pdf/SKILL.md": doc("pdf", "")}, []string{"own", "x"}, []string{"skills/x/SKILL.md name-folder"}},
		{"that form a cycle", map[string]string{"skills/x": "-> y", "skills/y": "-> x", "skills/z": "-> ..", "skills/self": "-> ."}, []string{"own"}, nil},
	} {
		t.Run(tt.what, func(t *testing.T) {
			root := tree(t, inside)
			write(t, root, tt.files)
			d := project(root, catalog.DirOptions{})
			for _, again := range []bool{false, true} {
				s := open(t, d).Snapshot()
				if diff := cmp.Diff(tt.want, dirs(s)); diff != "" {
					t.Errorf("again %v: skills (-want +got):\n%s", again, diff)
				}
				if diff := cmp.Diff(tt.codes, codes(root, s.Problems())); diff != "" && len(tt.codes)+len(s.Problems()) > 0 {
					t.Errorf("again %v: problems (-want +got):\n%s", again, diff)
				}
			}
		})
	}
	t.Run("inside, absolute", func(t *testing.T) {
		root := tree(t, inside)
		write(t, root, map[string]string{"lib/pdf/SKILL.md": doc("pdf", ""), "skills/x": "-> " + filepath.Join(root, "lib")})
		c := open(t, project(root, catalog.DirOptions{}))
		e := get(t, c.Snapshot(), "pdf")
		if s, _, err := c.Read(t.Context(), e); err != nil || s.Name != "pdf" {
			t.Errorf("read: %v", err)
		}
		if _, err := c.Manifest(t.Context(), e); err != nil {
			t.Errorf("manifest: %v", err)
		}
	})
	t.Run("as the root of the source, or above it", func(t *testing.T) {
		for link, files := range map[string]map[string]string{"skills": {"skills": "-> " + away}, "dots": {"dots": "-> " + filepath.Dir(away), "skills/": ""}} {
			root := tree(t, files)
			at := filepath.Join(root, "skills")
			if link == "dots" {
				at = filepath.Join(root, "dots", filepath.Base(away))
			}
			s := open(t, catalog.NewDir("dir", catalog.Project, at, &catalog.DirOptions{Within: root, Optional: true})).Snapshot()
			if got := dirs(s); len(got) > 0 {
				t.Errorf("%s: skills %q", link, got)
			}
			if len(s.Problems()) != 1 || s.Problems()[0].Code != "outside-project" || !strings.Contains(s.Problems()[0].Message, filepath.Dir(away)) {
				t.Errorf("%s: problems %v, want one with the target", link, s.Problems())
			}
		}
	})
	t.Run("in any number are a few problems", func(t *testing.T) {
		root := tree(t, inside)
		for i := range 100 {
			write(t, root, map[string]string{fmt.Sprintf("skills/x%d", i): "-> /"})
		}
		s := open(t, project(root, catalog.DirOptions{})).Snapshot()
		if n := len(s.Problems()); n != 21 {
			t.Errorf("%d problems, want 20 and one for the rest", n)
		}
		if last := s.Problems()[20].Message; !strings.Contains(last, "80 more") {
			t.Errorf("last problem %q", last)
		}
	})
	t.Run("in a user's directory are followed", func(t *testing.T) {
		root := tree(t, inside)
		write(t, root, map[string]string{"skills/x": "-> " + away})
		d := catalog.NewDir("dir", catalog.User, filepath.Join(root, "skills"), nil)
		if diff := cmp.Diff([]string{"own", "x/a.skill", "x/pdf"}, dirs(open(t, d).Snapshot())); diff != "" {
			t.Errorf("skills (-want +got):\n%s", diff)
		}
	})
}

// A directory may be replaced after a scan, by a script that may write the
// project.
func TestReplacedDirectoryDoesNotLeadOutOfAProject(t *testing.T) {
	away := tree(t, map[string]string{"SKILL.md": doc("own", "license: secret\n"), "key": "secret"})
	for what, replace := range map[string]string{"the skill": "skills/own", "a directory above": "skills"} {
		root := tree(t, map[string]string{"skills/own/SKILL.md": doc("own", "")})
		c := open(t, project(root, catalog.DirOptions{}))
		e := get(t, c.Snapshot(), "own")
		target := away
		if replace == "skills" {
			target = tree(t, map[string]string{"own": "-> " + away})
		}
		must(t, os.RemoveAll(filepath.Join(root, replace)))
		must(t, os.Symlink(target, filepath.Join(root, replace)))
		if s, _, err := c.Read(t.Context(), e); err == nil {
			t.Errorf("%s: read %+v", what, s)
		}
		if m, err := c.ListFiles(t.Context(), e); err == nil {
			t.Errorf("%s: files %v", what, m)
		}
		if b, err := c.Open(t.Context(), e); err == nil {
			b.Close()
			t.Errorf("%s: opened", what)
		}
	}
}

// An index saved before a source had a boundary may contain anything.
func TestIndexDoesNotLeadOutOfAProject(t *testing.T) {
	away := tree(t, map[string]string{"pdf/SKILL.md": doc("pdf", ""), "a.skill": pack(t, map[string]string{"packed/SKILL.md": doc("packed", "")})})
	root := tree(t, map[string]string{"skills/own/SKILL.md": doc("own", ""), "skills/x": "-> " + away, "skills/one": "-> " + away + "/pdf", "skills/a.skill": "-> " + away + "/a.skill"})
	age(t, root)
	age(t, away)
	index := filepath.Join(t.TempDir(), "i.idx")
	user := catalog.NewDir("dir", catalog.Project, filepath.Join(root, "skills"), &catalog.DirOptions{IndexFile: index})
	if got := dirs(open(t, user).Snapshot()); len(got) < 3 {
		t.Fatalf("without a boundary: %q", got)
	}
	s := open(t, project(root, catalog.DirOptions{IndexFile: index})).Snapshot()
	if diff := cmp.Diff([]string{"own"}, dirs(s)); diff != "" {
		t.Errorf("skills (-want +got):\n%s", diff)
	}
	want := []string{"skills/a.skill outside-project", "skills/one outside-project", "skills/x outside-project"}
	if diff := cmp.Diff(want, codes(root, s.Problems())); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestScanStopsAtNumberOfEntries(t *testing.T) {
	files := map[string]string{"a/SKILL.md": doc("a", ""), "z/SKILL.md": doc("z", "")}
	for i := range 1000 {
		files[fmt.Sprintf("m/%d.txt", i)] = ""
	}
	root := tree(t, files)
	age(t, root)
	index := filepath.Join(t.TempDir(), "i.idx")
	s := open(t, catalog.NewDir("dir", catalog.Project, root, &catalog.DirOptions{MaxEntries: 500, IndexFile: index})).Snapshot()
	if diff := cmp.Diff([]string{"a", "z"}, dirs(s)); diff != "" {
		t.Errorf("skills (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{". entry-limit"}, codes(root, s.Problems())); diff != "" {
		t.Fatalf("problems (-want +got):\n%s", diff)
	}
	if m := s.Problems()[0].Message; !strings.Contains(m, "500") || !strings.Contains(m, filepath.Join(root, "m")) {
		t.Errorf("message %q, want the limit and the place", m)
	}
	again := open(t, catalog.NewDir("dir", catalog.Project, root, &catalog.DirOptions{MaxEntries: 500, IndexFile: index})).Snapshot()
	if diff := cmp.Diff([]string{". entry-limit"}, codes(root, again.Problems())); diff != "" {
		t.Errorf("from the index: problems (-want +got):\n%s", diff)
	}
	if all := open(t, catalog.NewDir("dir", catalog.Project, root, &catalog.DirOptions{IndexFile: index})).Snapshot(); len(all.Problems()) > 0 {
		t.Errorf("with a higher limit: problems %v", all.Problems())
	}
}

func TestScanStopsAfterTime(t *testing.T) {
	root := tree(t, map[string]string{"a/SKILL.md": doc("a", ""), "b/c/SKILL.md": doc("c", "")})
	age(t, root)
	index := filepath.Join(t.TempDir(), "i.idx")
	hurried := &catalog.DirOptions{MaxTime: 1, IndexFile: index}
	s := open(t, catalog.NewDir("dir", catalog.Project, root, hurried)).Snapshot()
	if got := dirs(s); len(got) > 0 {
		t.Errorf("skills %q after one nanosecond", got)
	}
	if diff := cmp.Diff([]string{". time-limit"}, codes(root, s.Problems())); diff != "" {
		t.Fatalf("problems (-want +got):\n%s", diff)
	}
	if m := s.Problems()[0].Message; !strings.Contains(m, "1ns") || !strings.Contains(m, filepath.Join(root, "a")) {
		t.Errorf("message %q, want the limit and the place", m)
	}
	open(t, catalog.NewDir("dir", catalog.Project, root, &catalog.DirOptions{MaxTime: time.Hour, IndexFile: index}))
	// What a scan does not reach is taken from the index.
	s = open(t, catalog.NewDir("dir", catalog.Project, root, hurried)).Snapshot()
	if diff := cmp.Diff([]string{"a", "b/c"}, dirs(s)); diff != "" {
		t.Errorf("with an index: skills (-want +got):\n%s", diff)
	}
}
