package loadout_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/session"
	"github.com/loadout-dev/loadout/skill"
)

func TestNewWithoutOptionsHasTheBundledSkills(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("HOME", t.TempDir())
	rt, err := loadout.New(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	skills := rt.Catalog().Snapshot().Skills()
	if len(skills) == 0 {
		t.Fatal("no skills")
	}
	for _, e := range skills {
		if e.Scope != catalog.Bundled {
			t.Errorf("%s is of scope %s, in a place without skills", e.Name, e.Scope)
		}
	}
}

func TestNewDeniesByDefault(t *testing.T) {
	dir := t.TempDir()
	files{"pdf/SKILL.md": skillText("pdf", "x"), "csv/SKILL.md": skillText("csv", "x")}.write(t, dir)
	source := func() []catalog.Source { return []catalog.Source{catalog.NewDir("local", catalog.User, dir, nil)} }
	for _, tt := range []struct {
		name string
		opts loadout.Options
		want []string
	}{
		{"no sources: nothing", loadout.Options{Sources: []catalog.Source{}}, nil},
		{"switched off: nothing", loadout.Options{Sources: source(), Filter: catalog.Filter{Disabled: true}}, nil},
		{"an allowlist: what it names", loadout.Options{Sources: source(), Filter: catalog.Filter{Allow: []string{"csv"}}}, []string{"csv"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rt, err := loadout.New(t.Context(), &tt.opts)
			if err != nil {
				t.Fatal(err)
			}
			defer rt.Close()
			var got []string
			for _, e := range rt.Catalog().Snapshot().Skills() {
				got = append(got, e.Name)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("skills %q, want %q", got, tt.want)
			}
			if text := rt.CatalogText(0); (text == "") != (tt.want == nil) {
				t.Errorf("catalog text %q", text)
			}
			if _, err := rt.Fetch(t.Context(), "pdf"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("fetching a skill that is not available: %v", err)
			}
		})
	}
}

func TestNewRefusesUnreadableFiles(t *testing.T) {
	if _, err := loadout.New(t.Context(), &loadout.Options{Sources: []catalog.Source{}, Filter: catalog.Filter{Allow: []string{"[x"}}}); err == nil {
		t.Error("an allowlist that cannot be read lets everything through")
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	errGone := errors.New("gone")
	cancel(errGone)
	if _, err := loadout.New(ctx, &loadout.Options{Sources: []catalog.Source{}}); !errors.Is(err, errGone) {
		t.Errorf("with a context that has ended: %v, want its cause", err)
	}
}

func TestFetch(t *testing.T) {
	rt, dir := runtimeOf(t, files{
		"base/SKILL.md":    skillText("base", "# Base\n"),
		"report/SKILL.md":  "---\nname: report\ndescription: Reports.\nversion: 1.2.0\ndisplayName: Reports\ndependencies: [base]\n---\n\n# Report\n",
		"report/a.md":      "a",
		"report/run.sh":    "echo",
		"lost/SKILL.md":    "---\nname: lost\ndescription: Needs what is not there.\ndependencies: [nowhere]\n---\nx",
		"one/SKILL.md":     "---\nname: one\ndescription: A circle.\ndependencies: [two]\n---\nx",
		"two/SKILL.md":     "---\nname: two\ndescription: A circle.\ndependencies: [one]\n---\nx",
		"empty/SKILL.md":   skillText("empty", "\n \n"),
		"spoilt/SKILL.md":  skillText("spoilt", "x"),
		"removed/SKILL.md": skillText("removed", "x"),
	})
	t.Run("after its current dependencies", func(t *testing.T) {
		all, err := rt.Fetch(t.Context(), "report")
		if err != nil {
			t.Fatal(err)
		}
		if len(all) != 2 || all[0].ID.Name != "base" || all[1].ID.Name != "report" {
			t.Fatalf("got %d skills", len(all))
		}
		m := all[1]
		src, _ := os.ReadFile(filepath.Join(dir, "report", "SKILL.md"))
		if m.Title != "Reports" || m.Version != "1.2.0" || m.Instructions != "\n# Report\n" || m.Location != filepath.Join(dir, "report") ||
			m.Digest != "sha256:"+skillfile.Hash(src) || !slices.Equal(m.Needs, []string{"base"}) || len(m.Problems) != 0 || m.Tokens == 0 {
			t.Errorf("got %+v", m)
		}
		if len(m.Files) != 3 || m.Files[2].Path != "run.sh" || !m.Files[2].Script || m.Files[1].Script {
			t.Errorf("files %+v", m.Files)
		}
		files{"report/SKILL.md": strings.Replace(string(src), "# Report", "# Edited", 1)}.write(t, dir)
		all, err = rt.Fetch(t.Context(), "report")
		if err != nil || all[1].Instructions != "\n# Edited\n" || all[1].Digest == m.Digest {
			t.Errorf("after an edit: %+v, %v", all[1], err)
		}
		_, now, err := rt.Catalog().Read(t.Context(), entry(t, rt, "report"))
		if want := "sha256:" + skillfile.Hash(now); err != nil || all[1].Digest != want {
			t.Errorf("the digest of SKILL.md is %s, %v; the load said %s", want, err, all[1].Digest)
		}
	})
	t.Run("no such skill", func(t *testing.T) {
		_, err := rt.Fetch(t.Context(), "reprot")
		var missing *catalog.NotFoundError
		if !errors.As(err, &missing) || !slices.Contains(missing.Suggestions, "report") || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("got %v, want a NotFoundError with what is near", err)
		}
	})
	t.Run("unknown dependency is a problem", func(t *testing.T) {
		all, err := rt.Fetch(t.Context(), "lost")
		if err != nil || len(all) != 1 || !slices.ContainsFunc(all[0].Problems, func(p string) bool { return strings.Contains(p, "nowhere") }) {
			t.Errorf("got %+v, %v, want the skill with the problem", all, err)
		}
	})
	t.Run("cycle", func(t *testing.T) {
		_, err := rt.Fetch(t.Context(), "one")
		var dep *catalog.DependencyError
		if !errors.As(err, &dep) || !slices.Equal(dep.Path, []string{"one", "two", "one"}) {
			t.Errorf("got %v, want a DependencyError with the way", err)
		}
	})
	t.Run("a skill without instructions has a problem", func(t *testing.T) {
		all, err := rt.Fetch(t.Context(), "empty")
		if err != nil || len(all[0].Problems) != 1 || !strings.Contains(all[0].Problems[0], "no instructions") {
			t.Errorf("got %+v, %v", all, err)
		}
	})
	t.Run("broken since", func(t *testing.T) {
		files{"spoilt/SKILL.md": "no frontmatter any more"}.write(t, dir)
		_, err := rt.Fetch(t.Context(), "spoilt")
		var broken *catalog.BrokenError
		if !errors.As(err, &broken) || broken.Name != "spoilt" {
			t.Errorf("got %v, want a BrokenError", err)
		}
	})
	t.Run("removed since", func(t *testing.T) {
		if err := os.RemoveAll(filepath.Join(dir, "removed")); err != nil {
			t.Fatal(err)
		}
		if _, err := rt.Fetch(t.Context(), "removed"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("got %v, want not found", err)
		}
	})
}

func TestSessionOfRuntime(t *testing.T) {
	rt, dir := runtimeOf(t, files{
		"pdf/SKILL.md": skillText("pdf", "# PDF\nRun {baseDir}/scripts/fill.py.\n"), "pdf/scripts/fill.py": "print()",
		"person/SKILL.md": "---\nname: person\ndescription: For people.\ndisable-model-invocation: true\n---\nx",
	})
	l := &session.MemoryLog{}
	s, err := rt.NewSession(t.Context(), &session.Options{Log: l})
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Load(t.Context(), "pdf", nil)
	if err != nil || r.State != session.StateLoaded {
		t.Fatalf("got %+v, %v", r, err)
	}
	if want := "Run " + filepath.Join(dir, "pdf") + "/scripts/fill.py."; !strings.Contains(r.Text, want) {
		t.Errorf("text %q does not contain %q", r.Text, want)
	}
	if r, _ := s.Load(t.Context(), "pfd", nil); !strings.Contains(r.Text, "did you mean pdf?") || !strings.HasSuffix(r.Text, "Available skills: pdf") {
		t.Errorf("a failed load returned %q; want what is near, and what a model may know of", r.Text)
	}
	files{"pdf/SKILL.md": skillText("pdf", "# PDF, edited\n")}.write(t, dir)
	if up, err := s.Refresh(t.Context()); err != nil || len(up) != 1 || up[0].Skill.Name != "pdf" {
		t.Errorf("after an edit: %v, %v", up, err)
	}
	again, err := rt.NewSession(t.Context(), &session.Options{Log: l})
	if err != nil {
		t.Fatal(err)
	}
	if r, _ := again.Load(t.Context(), "pdf", nil); r.State != session.StateLoaded || !strings.Contains(r.Text, "edited") {
		t.Errorf("a conversation that goes on, with a skill that changed: %+v", r)
	}
}

// A session loads the skills marked preload once.
func TestPreload(t *testing.T) {
	rt, _ := runtimeOf(t, files{
		"a/SKILL.md": "---\nname: a\ndescription: A.\npreload: true\n---\nAlways.\n",
		"b/SKILL.md": skillText("b", "Sometimes.\n"),
	})
	s, err := rt.NewSession(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	all, err := rt.Preload(t.Context(), s)
	if err != nil || len(all) != 1 || all[0].Skill.ID.Name != "a" || !strings.Contains(all[0].Text, "Always.") {
		t.Errorf("%+v, %v", all, err)
	}
	if again, err := rt.Preload(t.Context(), s); err != nil || len(again) > 0 {
		t.Errorf("a second time %+v, %v", again, err)
	}
	if active := s.Active(); len(active) != 1 {
		t.Errorf("active skills: %+v", active)
	}
}

// failing is a log that cannot be read.
type failing struct{ session.MemoryLog }

func (*failing) Read(context.Context, int64) ([]session.Event, error) { return nil, fs.ErrPermission }

func TestNewSessionReportsUnreadableLog(t *testing.T) {
	rt, _ := runtimeOf(t, nil)
	if _, err := rt.NewSession(t.Context(), &session.Options{Log: &failing{}}); !errors.Is(err, fs.ErrPermission) || !strings.HasPrefix(err.Error(), "open session") {
		t.Errorf("got %v", err)
	}
}

// A runtime with Watch sees changes. Close ends its background work; TestMain
// checks for leaks.
func TestWatchEndsWithClose(t *testing.T) {
	dir := t.TempDir()
	rt, err := loadout.New(t.Context(), &loadout.Options{Watch: true, Sources: []catalog.Source{
		catalog.NewDir("local", catalog.User, dir, nil),
		catalog.NewFS("memory", catalog.Bundled, fstest.MapFS{"x/SKILL.md": {Data: []byte(skillText("x", "x"))}}),
	}})
	if err != nil {
		t.Fatal(err)
	}
	seen := make(chan struct{}, 16)
	defer rt.Catalog().Subscribe(func(_, now *catalog.Snapshot) {
		if _, err := now.Get("new"); err == nil {
			seen <- struct{}{}
		}
	})()
	files{"new/SKILL.md": skillText("new", "x")}.write(t, dir)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	select {
	case <-seen:
	case <-ctx.Done():
		t.Error("a new skill is not seen")
	}
	for range 2 {
		if err := rt.Close(); err != nil {
			t.Error(err)
		}
	}
}

// bareSource lists only names and omits the fields that decide.
type bareSource fstest.MapFS

func (b bareSource) Origin() string       { return "bare" }
func (b bareSource) Scope() catalog.Scope { return catalog.User }

func (b bareSource) List(context.Context) (catalog.Listing, error) {
	var l catalog.Listing
	for file := range b {
		dir := filepath.Dir(file)
		l.Entries = append(l.Entries, &catalog.Entry{Name: dir, Origin: b.Origin(), Scope: b.Scope(), Dir: dir})
	}
	return l, nil
}

func (b bareSource) Open(_ context.Context, e *catalog.Entry) (*skill.Bundle, error) {
	sub, err := fs.Sub(fstest.MapFS(b), e.Dir)
	return skill.NewBundle(sub, e.Dir, nil), err
}

func TestSourceCannotOmitDecidingFields(t *testing.T) {
	rt, err := loadout.New(t.Context(), &loadout.Options{Sources: []catalog.Source{bareSource{
		"secret/SKILL.md": {Data: []byte("---\nname: secret\ndescription: For users.\ndisable-model-invocation: true\n---\nDo it.\n")},
		"needy/SKILL.md":  {Data: []byte("---\nname: needy\ndescription: Needs more.\ndependencies: [gone, secret]\n---\nDo it.\n")},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	s, err := rt.NewSession(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r, err := s.Load(t.Context(), "secret", &session.LoadOptions{ByModel: true})
	if err != nil || r.State != session.StateFailed {
		t.Errorf("a model loads what is disabled for models: %v, %v", r.State, err)
	}
	all, err := rt.Fetch(t.Context(), "needy")
	if err != nil || len(all) != 2 || all[0].ID.Name != "secret" {
		t.Fatalf("fetched %v, %v", all, err)
	}
	if p := all[1].Problems; len(p) != 1 || !strings.Contains(p[0], `"gone"`) {
		t.Errorf("problems: %q", p)
	}
}
