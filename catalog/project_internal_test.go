package catalog

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func writeSkill(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte("---\nname: "+name+"\ndescription: Does things.\n---\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// projectSources returns sources within a project, each with the given number
// of skills. onDir is called for each of their directories.
func projectSources(t *testing.T, sources, skills int, o DirOptions, onDir func(string)) []Source {
	t.Helper()
	root := t.TempDir()
	o.Within = root
	var out []Source
	for i := range sources {
		dir := filepath.Join(root, fmt.Sprintf("level%d", i))
		for j := range skills {
			writeSkill(t, fmt.Sprintf("%s/s%d-%d", dir, i, j), fmt.Sprintf("s%d-%d", i, j))
		}
		d := NewDir(fmt.Sprintf("level%d", i), Project, dir, &o).(*dirSource)
		d.onDir = onDir
		out = append(out, d)
	}
	return out
}

func reloaded(t *testing.T, sources []Source, o *Options) *Snapshot {
	t.Helper()
	c, err := New(sources, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c.Snapshot()
}

// A clone determines the number of its sources, so limits per source bound
// nothing.
func TestSourcesOfProjectShareDeadline(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	for _, wait := range []time.Duration{0, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			active, most := 0, 0
			sources := projectSources(t, 40, 3, DirOptions{MaxTime: 10 * time.Second}, func(string) {
				mu.Lock()
				active++
				most = max(most, active)
				mu.Unlock()
				time.Sleep(time.Second)
				mu.Lock()
				active--
				mu.Unlock()
			})
			start := time.Now()
			s := reloaded(t, sources, &Options{Wait: wait})
			if took := time.Since(start); took > 30*time.Second {
				t.Errorf("wait %v: 40 sources took %v, want about the limit of 10s", wait, took)
			}
			if most > 2 {
				t.Errorf("wait %v: %d sources were read at a time, want at most one for each of 2 CPUs", wait, most)
			}
			stopped := 0
			for _, p := range s.Problems() {
				if p.Code == "time-limit" && strings.Contains(p.Message, "all skill directories of the project takes more than 10s") {
					stopped++
				}
			}
			if n := len(s.Skills()); stopped == 0 || n == 0 || n == 120 {
				t.Errorf("wait %v: %d skills and %d stopped sources, want some of both", wait, n, stopped)
			}
		})
	}
}

func TestSourcesOfProjectShareLimits(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	for code, o := range map[string]DirOptions{"entry-limit": {MaxEntries: 25}, "directory-limit": {MaxDirs: 25}} {
		s := reloaded(t, projectSources(t, 10, 20, o, nil), nil)
		if n := len(s.Skills()); n == 0 || n > 50 {
			t.Errorf("%s: %d skills in 10 sources, want those in about 25 files and directories", code, n)
		}
		if !slices.ContainsFunc(s.Problems(), func(p Problem) bool {
			return p.Code == code && strings.Contains(p.Message, "in the skill directories of the project")
		}) {
			t.Errorf("%s: problems %v", code, s.Problems())
		}
	}
}

// A huge project does not use up the limits of another one.
func TestProjectsHaveTheirOwnLimits(t *testing.T) {
	for code, o := range map[string]DirOptions{"entry-limit": {MaxEntries: 25}, "directory-limit": {MaxDirs: 25}, "time-limit": {MaxTime: 10 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			sources := projectSources(t, 10, 20, o, func(string) { time.Sleep(time.Second) })
			var small []*dirSource
			for i, s := range projectSources(t, 2, 2, o, nil) {
				d := s.(*dirSource)
				d.origin = fmt.Sprintf("small%d", i)
				small = append(small, d)
				sources = append(sources, d)
			}
			n := 0
			for e := range reloaded(t, sources, nil).Entries() {
				if e.Origin == small[0].origin || e.Origin == small[1].origin {
					n++
				}
			}
			if n != 4 {
				t.Errorf("%s: %d of the 4 skills of the small project", code, n)
			}
		})
	}
}

// The user's own directories do not share the limits of a project.
func TestOwnDirectoriesHaveTheirOwnLimits(t *testing.T) {
	sources := projectSources(t, 2, 20, DirOptions{MaxEntries: 5}, nil)
	own := t.TempDir()
	for i := range 20 {
		writeSkill(t, fmt.Sprintf("%s/own%d", own, i), fmt.Sprintf("own%d", i))
	}
	s := reloaded(t, append(sources, NewDir("own", User, own, nil)), nil)
	n := 0
	for _, e := range s.Skills() {
		if e.Origin == "own" {
			n++
		}
	}
	if n != 20 {
		t.Errorf("%d of the 20 skills of the user", n)
	}
}

// A script that may write the project replaces a directory by a symlink after
// the scan inspected the directory.
func TestDirectoryReplacedDuringScanDoesNotLeadOutOfProject(t *testing.T) {
	for what, more := range map[string]string{"a skill": "", "a skill with own material": "scripts", "a directory with others": "sub"} {
		root, away := t.TempDir(), t.TempDir()
		x := filepath.Join(root, "skills", "x")
		writeSkill(t, x, "x")
		writeSkill(t, away, "secret")
		writeSkill(t, away+"/sub", "secret")
		if more != "" {
			writeSkill(t, filepath.Join(x, more), "x")
		}
		d := NewDir("p", Project, filepath.Join(root, "skills"), &DirOptions{Within: root}).(*dirSource)
		replaced := false
		d.onDir = func(at string) {
			if at != x || replaced {
				return
			}
			replaced = true
			if err := os.Rename(x, root+"/was"); err != nil {
				t.Error(err)
			}
			if err := os.Symlink(away, x); err != nil {
				t.Error(err)
			}
		}
		s := reloaded(t, []Source{d}, nil)
		if !replaced {
			t.Errorf("%s: not inspected", what)
		}
		for e := range s.All() {
			if e.Name == "secret" {
				t.Errorf("%s: listed %s from outside of the project", what, e.Path)
			}
		}
	}
}
