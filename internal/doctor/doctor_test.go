package doctor_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/doctor"
	"github.com/loadout-dev/loadout/internal/sandbox/selection"
	"github.com/loadout-dev/loadout/internal/secrets"
	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/sandbox"
)

func newCatalog(t *testing.T) *catalog.Catalog {
	t.Helper()
	files := fstest.MapFS{
		"good/SKILL.md":   {Data: []byte("---\nname: good\ndescription: Reads tide tables.\n---\nText\n")},
		"large/SKILL.md":  {Data: []byte("---\nname: large\ndescription: Has many files.\n---\nText\n")},
		"broken/SKILL.md": {Data: []byte("---\nname: broken\n---\nText\n")},
	}
	for i := range skillfile.PortableFiles {
		files[fmt.Sprintf("large/%d.txt", i)] = &fstest.MapFile{Data: []byte("x")}
	}
	c, err := catalog.New([]catalog.Source{catalog.NewFS("mine", catalog.User, files)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestSources(t *testing.T) {
	got := doctor.Sources(newCatalog(t))
	if len(got) != 1 || got[0].Origin != "mine" || got[0].Skills != 2 || got[0].Problems == 0 || !got[0].Exists {
		t.Errorf("%+v", got)
	}
}

func TestSourcesWithPaths(t *testing.T) {
	here, gone := t.TempDir(), filepath.Join(t.TempDir(), "gone")
	c, err := catalog.New([]catalog.Source{catalog.NewDir("here", catalog.User, here, nil), catalog.NewDir("gone", catalog.Project, gone, nil)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]doctor.Source{}
	for _, s := range doctor.Sources(c) {
		got[s.Origin] = s
	}
	want := map[string]doctor.Source{
		"here": {Origin: "here", Scope: catalog.User, Path: here, Exists: true},
		"gone": {Origin: "gone", Scope: catalog.Project, Path: gone},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
}

func TestOversizedSkills(t *testing.T) {
	c := newCatalog(t)
	got := doctor.OversizedSkills(t.Context(), c, nil)
	if len(got) != 1 || got[0].Name != "large" || got[0].Files != skillfile.PortableFiles+1 {
		t.Fatalf("%+v", got)
	}
	if got := doctor.OversizedSkills(t.Context(), c, []string{got[0].Path}); len(got) > 0 {
		t.Errorf("known: %+v", got)
	}
}

type backend struct{ sandbox.Backend }

func (backend) Name() string { return "test" }

func TestCheckSandbox(t *testing.T) {
	check := func(b sandbox.Backend, r *sandbox.Report, err error) doctor.Sandbox {
		return doctor.CheckSandbox(t.Context(), func(context.Context) (sandbox.Backend, *sandbox.Report, error) { return b, r, err }, 2)
	}
	layer := sandbox.Layer{Name: "network", Enforced: true}
	for _, tt := range []struct {
		name string
		got  doctor.Sandbox
		want doctor.Sandbox
	}{
		{"disabled", doctor.CheckSandbox(t.Context(), nil, 0), doctor.Sandbox{Layers: []sandbox.Layer{}, Missing: []string{}, Fixes: []string{}}},
		{"usable", check(backend{}, &sandbox.Report{Tier: 3, Layers: []sandbox.Layer{layer}}, nil),
			doctor.Sandbox{Enabled: true, Backend: "test", Tier: 3, Layers: []sandbox.Layer{layer}, Missing: []string{}, Fixes: []string{}}},
		{"failed", check(nil, nil, errors.New("no kernel")), doctor.Sandbox{Enabled: true, Layers: []sandbox.Layer{}, Missing: []string{"no kernel"}, Fixes: []string{}}},
	} {
		if diff := cmp.Diff(tt.want, tt.got); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
	none := &selection.NoBackendError{Outcomes: []selection.Outcome{{Backend: backend{}, Err: &sandbox.UnavailableError{Backend: "test", Missing: "no kernel", Fix: "install one"}}}}
	if got := check(nil, nil, none); len(got.Missing) != 1 || !strings.Contains(got.Missing[0], "no kernel") || len(got.Fixes) != 1 || !strings.Contains(got.Fixes[0], "install one") {
		t.Errorf("%+v", got)
	}
	if got := check(nil, nil, &selection.NoBackendError{}); len(got.Missing) != 1 || !strings.Contains(got.Missing[0], "sandbox.min_tier") {
		t.Errorf("%+v", got)
	}
}

func TestCheckServers(t *testing.T) {
	env := map[string]string{"TOKEN": "${TOKEN}"}
	v := upstream.Variables{Env: func(name string) (string, bool) { return "v", name == "TOKEN" }}
	got := doctor.CheckServers([]*upstream.Config{
		{Name: "mine", Command: "x", Env: env, File: "a"},
		{Name: "unset", Command: "x", Env: map[string]string{"A": "${NONE}"}, File: "a"},
		{Name: "off", Command: "x", Env: map[string]string{"A": "${NONE}"}, File: "b", Disabled: true},
		{Name: "project", Command: "x", Env: env, File: "b", Owner: "project"},
	}, []string{"problem"}, v)
	if diff := cmp.Diff([]doctor.ServerFile{{Path: "a", Servers: 2}, {Path: "b", Servers: 2}}, got.Files); diff != "" || got.Count != 4 || len(got.Problems) != 1 {
		t.Errorf("%+v %s", got, diff)
	}
	var names []string
	for _, s := range got.NotConfigured {
		names = append(names, s.Name)
	}
	if diff := cmp.Diff([]string{"unset", "project"}, names); diff != "" {
		t.Error(diff)
	}
}

func TestCheckSecrets(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s := secrets.New(filepath.Join(dir, "secrets"))
	if err := s.Set(t.Context(), "A", "value"); err != nil {
		t.Fatal(err)
	}
	if got := doctor.CheckSecrets(s); got.Count != 1 || got.Problem != "" {
		t.Errorf("%+v", got)
	}
	if err := os.WriteFile(filepath.Join(dir, "secrets"), []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := doctor.CheckSecrets(s); got.Count != 0 || !strings.Contains(got.Problem, "cannot decode JSON") {
		t.Errorf("%+v", got)
	}
}

// A skill at both limits is portable, and one beyond either of them is not.
func TestLimitsOfPortableSkills(t *testing.T) {
	files := fstest.MapFS{}
	skillFile := func(name string) int {
		data := []byte("---\nname: " + name + "\ndescription: Has files.\n---\n")
		files[name+"/SKILL.md"] = &fstest.MapFile{Data: data}
		return len(data)
	}
	for name, n := range map[string]int{"most-files": skillfile.PortableFiles, "one-file-more": skillfile.PortableFiles + 1} {
		skillFile(name)
		for i := range n - 1 {
			files[fmt.Sprintf("%s/%d.txt", name, i)] = &fstest.MapFile{Data: []byte("x")}
		}
	}
	for name, n := range map[string]int{"most-bytes": skillfile.PortableBytes, "one-byte-more": skillfile.PortableBytes + 1} {
		files[name+"/data"] = &fstest.MapFile{Data: make([]byte, n-skillFile(name))}
	}
	c, err := catalog.New([]catalog.Source{catalog.NewFS("mine", catalog.User, files)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range doctor.OversizedSkills(t.Context(), c, nil) {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	if !slices.Equal(names, []string{"one-byte-more", "one-file-more"}) {
		t.Errorf("too large: %v", names)
	}
}
