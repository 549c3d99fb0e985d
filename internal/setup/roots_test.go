package setup

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/console"
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
