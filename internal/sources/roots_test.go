package sources_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/sources"
)

func TestRoots(t *testing.T) {
	base := t.TempDir()
	base, err := filepath.EvalSymlinks(base)
	if err != nil {
		t.Fatal(err)
	}
	files{"repo/.git/HEAD": "", "repo/pkg/x": "", "api/.git/HEAD": "", "api/cmd/x": "", "api/node_modules/dep/x": "", "plain/x": "", "file": "", "home/proj/x": "", "home/skills/x": ""}.write(t, base)
	if err := os.Symlink("api", filepath.Join(base, "alias")); err != nil {
		t.Skip(err)
	}
	at := func(p string) string { return filepath.Join(base, filepath.FromSlash(p)) }
	project := func(label, dir string) []string {
		return slices.Concat([]string{label + ".skills project " + dir + "/skills"}, under(label+".", dir, "project"))
	}
	for _, tt := range []struct {
		what    string
		dirs    []string
		want    []string
		skipped int
	}{
		{"the project itself", []string{at("repo"), at("repo/pkg")}, nil, 0},
		{"two projects, and one of them again", []string{at("api"), at("plain"), at("api"), at("alias")}, slices.Concat(project("root", "api"), project("root2", "plain")), 0},
		{"below a repository root", []string{at("api/cmd")}, slices.Concat(project("root", "api/cmd"), project("root.up1", "api")), 0},
		{"above another root", []string{at("api/cmd"), at("api")}, slices.Concat(project("root", "api/cmd"), project("root.up1", "api")), 0},
		{"a symlink", []string{at("alias")}, project("root", "api"), 0},
		{"a directory of dependencies", []string{at("api/node_modules/dep")}, project("root.up2", "api"), 0},
		{"below the home directory", []string{at("home/proj")}, project("root", "home/proj"), 0},
		{"the home directory and those above", []string{at("home"), base, "/"}, nil, 3},
		{"missing, a file, relative", []string{at("none"), at("file"), "api", ""}, nil, 4},
	} {
		t.Run(tt.what, func(t *testing.T) {
			o := &sources.Options{WorkDir: at("repo/pkg"), Home: at("home"), NoBundled: true}
			known, err := sources.New(o)
			if err != nil {
				t.Fatal(err)
			}
			roots, skipped := sources.NewRoots(o, known, nil, tt.dirs)
			var got []string
			for _, r := range roots {
				for _, s := range r.Sources {
					rel, err := filepath.Rel(base, s.(interface{ Root() string }).Root())
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, s.Origin()+" "+s.Scope().String()+" "+filepath.ToSlash(rel))
					known = append(known, s)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || len(skipped) != tt.skipped {
				t.Errorf("skipped %v (-want +got):\n%s", skipped, diff)
			}
			if _, err := catalog.New(known, nil); err != nil {
				t.Errorf("not a catalog together with the known sources: %v", err)
			}
		})
	}
}

// A home directory that is a repository is not a project, but the projects in it are.
func TestRootInHomeRepository(t *testing.T) {
	base := t.TempDir()
	files{"home/.git/HEAD": "", "home/proj/skills/pdf/SKILL.md": skillText("pdf", ""), "home/skills/no/SKILL.md": skillText("no", "")}.write(t, base)
	if err := os.Symlink("../../skills/no", filepath.Join(base, "home", "proj", "skills", "out")); err != nil {
		t.Skip(err)
	}
	roots, skipped := sources.NewRoots(&sources.Options{WorkDir: base, Home: filepath.Join(base, "home")}, nil, nil, []string{filepath.Join(base, "home", "proj")})
	if len(roots) != 1 || len(skipped) > 0 {
		t.Fatalf("roots %v, skipped %v", roots, skipped)
	}
	c, err := catalog.New(roots[0].Sources, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range c.Snapshot().Skills() {
		got = append(got, e.Key()+" "+sources.ProjectKey(e))
	}
	if !slices.Equal(got, []string{"root.skills/pdf project.skills/pdf"}) {
		t.Errorf("skills %q", got)
	}
	if p := c.Snapshot().Problems(); len(p) != 1 || p[0].Code != "outside-project" {
		t.Errorf("problems %v, want the symlink out of the project", p)
	}
}

// A root that stays keeps its sources, and the labels of those that left are not used
// again at once.
func TestRootsThatChange(t *testing.T) {
	base := t.TempDir()
	files{"a/x": "", "b/x": "", "c/x": ""}.write(t, base)
	o := &sources.Options{WorkDir: filepath.Join(base, "none"), Home: filepath.Join(base, "home")}
	find := func(current []sources.Root, names ...string) []sources.Root {
		var dirs []string
		for _, name := range names {
			dirs = append(dirs, filepath.Join(base, name))
		}
		roots, skipped := sources.NewRoots(o, nil, current, dirs)
		if len(roots) != len(names) || len(skipped) > 0 {
			t.Fatalf("%v: roots %v, skipped %v", names, roots, skipped)
		}
		return roots
	}
	labels := func(roots []sources.Root) (out []string) {
		for _, r := range roots {
			out = append(out, r.Sources[0].Origin())
		}
		return out
	}
	before := find(nil, "a", "b")
	now := find(before, "c", "b")
	if got := labels(now); !slices.Equal(got, []string{"root3.skills", "root2.skills"}) || now[1].Sources[0] != before[1].Sources[0] {
		t.Errorf("labels %q, b %v, was %v", got, now[1].Sources[0], before[1].Sources[0])
	}
	if got := labels(find(now, "a", "c")); !slices.Equal(got, []string{"root.skills", "root3.skills"}) {
		t.Errorf("labels %q", got)
	}
}

// A client cannot make a catalog search any number of directories.
func TestManyRoots(t *testing.T) {
	base := t.TempDir()
	var dirs []string
	for i := range 100 {
		dirs = append(dirs, filepath.Join(base, fmt.Sprint(i)))
		files{fmt.Sprintf("%d/x", i): ""}.write(t, base)
	}
	roots, skipped := sources.NewRoots(&sources.Options{WorkDir: base, NoProject: true, Home: filepath.Join(base, "home")}, nil, nil, dirs)
	n := 0
	for _, r := range roots {
		n += len(r.Sources)
	}
	if n > 512 || len(roots)+len(skipped) != len(dirs) || !strings.Contains(fmt.Sprint(skipped), "limit 512") {
		t.Errorf("%d sources in %d roots, %d skipped", n, len(roots), len(skipped))
	}
}
