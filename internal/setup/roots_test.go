package setup

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/sources"
)

// The skills of a project that takes the place of another as the root of a client
// are those that it had when it was first listed.
func TestRootThatReplacesAnother(t *testing.T) {
	home := t.TempDir()
	here, api, lib := newListedProject(t, home), newListedProject(t, home), newListedProject(t, home)
	api.add(t, "lint", "lint")
	lib.add(t, "shared", "shared")
	s := here.setup(t)
	c, err := s.LoadConfig(nil)
	if err != nil {
		t.Fatal(err)
	}
	rt, roots, err := s.NewRuntimeWithRoots(t.Context(), c, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	for _, root := range []struct {
		dir   string
		skill string
	}{{api.dir, "lint"}, {lib.dir, "shared"}, {api.dir, "lint"}} {
		if err := roots.Set(t.Context(), []string{root.dir}); err != nil {
			t.Fatal(err)
		}
		now := rt.Catalog().Snapshot()
		if _, err := now.Get(root.skill); err != nil || len(now.Pending()) > 0 {
			t.Errorf("%s: %v, pending: %d", root.skill, err, len(now.Pending()))
		}
	}
	lib.wantPending(t)
	api.add(t, "planted", "planted")
	api.wantPending(t, "planted")
}

// If the catalog rejects the sources of roots, the roots of before stay.
func TestRejectedRootsChangeNothing(t *testing.T) {
	home := t.TempDir()
	here, api, lib := newListedProject(t, home), newListedProject(t, home), newListedProject(t, home)
	api.add(t, "lint", "lint")
	lib.add(t, "shared", "shared")
	s := here.setup(t)
	c, err := s.LoadConfig(nil)
	if err != nil {
		t.Fatal(err)
	}
	rt, roots, err := s.NewRuntimeWithRoots(t.Context(), c, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	if err := roots.Set(t.Context(), []string{api.dir}); err != nil {
		t.Fatal(err)
	}
	root, own := s.RootOf("lint"), roots.own
	roots.own = append(slices.Clone(own), own[0]) // its label is not unique
	if err := roots.Set(t.Context(), []string{lib.dir}); err == nil {
		t.Error("no error")
	}
	if got := s.RootOf("lint"); got != root || got == "" {
		t.Errorf("the root is %q, was %q", got, root)
	}
	roots.own = own
	if err := roots.Set(t.Context(), []string{lib.dir}); err != nil || s.RootOf("shared") == "" {
		t.Errorf("%v, root %q", err, s.RootOf("shared"))
	}
}

// A file system that does not answer, such as that of a network mount, delays the
// roots for a limited time, and further attempts do not wait for it.
func TestRootOnHungFileSystem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		var searches atomic.Int32
		r := &Roots{search: func(*sources.Options, []catalog.Source, []sources.Root, []string) ([]sources.Root, []error) {
			searches.Add(1)
			<-answer
			return nil, nil
		}}
		for i, wait := range []time.Duration{rootsTimeout, 0} {
			start := time.Now()
			if err := r.Set(t.Context(), []string{"/mnt/hung"}); err == nil || !strings.Contains(err.Error(), "not answer") {
				t.Errorf("attempt %d: %v", i, err)
			}
			if took := time.Since(start); took != wait {
				t.Errorf("attempt %d took %v, want %v", i, took, wait)
			}
		}
		if n := searches.Load(); n != 1 {
			t.Errorf("%d searches, want 1", n)
		}
		close(answer)
		synctest.Wait()
		if err := r.Set(t.Context(), []string{"/mnt/hung"}); err != nil || searches.Load() != 2 {
			t.Errorf("after the file system answered: %v, %d searches", err, searches.Load())
		}
	})
}

// A relative path to the configuration would be a file of the root, whose author
// would then choose the user's configuration.
func TestCommandInRootNamesOwnConfiguration(t *testing.T) {
	home := t.TempDir()
	here, api := newListedProject(t, home), newListedProject(t, home)
	api.add(t, "lint", "lint")
	s := here.setup(t)
	s.ConfigFile = "own.yaml"
	if err := os.WriteFile("own.yaml", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := s.LoadConfig(nil)
	if err != nil {
		t.Fatal(err)
	}
	rt, roots, err := s.NewRuntimeWithRoots(t.Context(), c, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	if err := roots.Set(t.Context(), []string{api.dir}); err != nil {
		t.Fatal(err)
	}
	want, err := filepath.Abs("own.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dir := s.RootOf("lint")
	if got := s.SkillArgsIn(dir); !slices.Equal(got, []string{"--config", want}) {
		t.Errorf("arguments %q, want %s", got, want)
	}
	hint := s.ApproveHint(&loadout.RefusedError{Skill: "lint", NeedsApproval: true})
	if !strings.HasPrefix(hint, "cd ") || !strings.HasSuffix(hint, " --config "+console.ShellQuote(want)) {
		t.Errorf("hint %q", hint)
	}
	if got := s.SkillArgsIn(""); !slices.Equal(got, []string{"--config", "own.yaml"}) {
		t.Errorf("arguments for the working directory: %q", got)
	}
}
