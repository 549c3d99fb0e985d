package packages_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/loadout-dev/loadout/internal/packages"
)

func TestChangedCacheIsRebuilt(t *testing.T) {
	f := newFake(t)
	wheel := f.wheel("greeting", "1.0", greeting("hello"))
	s, plan := pythonScene(t, f.index())
	dir := s.ensure(t, greeter, plan).Mounts[0].Host
	source := filepath.Join(dir, "greeting", "__init__.py")
	keepTimes := func(t *testing.T, change func()) {
		info, err := os.Stat(source)
		if err != nil {
			t.Fatal(err)
		}
		change()
		if err := os.Chtimes(source, info.ModTime(), info.ModTime()); err != nil {
			t.Fatal(err)
		}
	}
	write := func(t *testing.T, p, text string) {
		t.Helper()
		os.Chmod(p, 0o600)
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, tamper := range map[string]func(t *testing.T){
		"same size and time": func(t *testing.T) {
			keepTimes(t, func() { write(t, source, "def text():\n    return \"HELLO\"\n") })
		},
		"another file": func(t *testing.T) { write(t, filepath.Join(dir, "sitecustomize.py"), "") },
		"a link": func(t *testing.T) {
			os.Rename(source, source+".old")
			os.Symlink("__init__.py.old", source)
		},
		"a missing file": func(t *testing.T) { os.Remove(source) },
		"no files":       func(t *testing.T) { writable(dir); os.RemoveAll(dir) },
		"the manifest":   func(t *testing.T) { write(t, filepath.Join(filepath.Dir(dir), "manifest.json"), "{}") },
		"no manifest":    func(t *testing.T) { os.Remove(filepath.Join(filepath.Dir(dir), "manifest.json")) },
	} {
		t.Run(name, func(t *testing.T) {
			writable(s.opts.Dir)
			tamper(t)
			var offline *packages.OfflineError
			if _, err := s.Lookup(plan.Needs, greeter, plan); !errors.As(err, &offline) || offline.Err == nil {
				t.Fatalf("found: %v", err)
			}
			before := f.count(wheel)
			if got := s.run(t, greeter, plan, s.ensure(t, greeter, plan)); got != "hello\n" {
				t.Errorf("the script printed %q", got)
			}
			if f.count(wheel) != before+1 {
				t.Error("it was not made again")
			}
			if left := s.cache(t); len(left) != 1 {
				t.Errorf("in the cache: %q", left)
			}
		})
	}
	t.Run("only times differ", func(t *testing.T) {
		writable(s.opts.Dir)
		now := time.Now()
		if err := os.Chtimes(source, now, now); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := s.Lookup(plan.Needs, greeter, plan); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestCancelledBuildLeavesNothing(t *testing.T) {
	f := newFake(t)
	s, plan := pythonScene(t, f.index())
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	f.page["/simple/greeting/"] = func(string) []byte {
		cancel(why)
		<-t.Context().Done() // longer than the installer waits
		return nil
	}
	if _, err := s.Ensure(ctx, plan.Needs, greeter, plan, nil); !errors.Is(err, why) {
		t.Errorf("got %v, want the cause", err)
	}
	if left := s.cache(t); len(left) != 0 {
		t.Errorf("left: %q", left)
	}
}

func TestDifferentRequirementsAreBuiltSeparately(t *testing.T) {
	f := newFake(t)
	f.wheel("greeting", "1.0", greeting("hello"))
	s, plan := pythonScene(t, f.index())
	s.ensure(t, greeter, plan)
	missing := func(what string, b *packages.Builder) {
		t.Helper()
		if _, err := b.Lookup(plan.Needs, greeter, plan); err == nil {
			t.Errorf("the packages of another %s were found", what)
		}
	}
	other := s.opts
	other.PythonIndex = "https://pypi.example/simple"
	missing("index", mustNew(t, other))
	other = s.opts
	other.AllowSource = true
	missing("setting", mustNew(t, other))
	version := plan.Version
	plan.Version = "3.1.4"
	missing("interpreter", s.Builder)
	plan.Version = version
	plan = resolve(t, fstest.MapFS{"run.py": {Data: []byte("# /// script\n# dependencies = [\"greeting>=2\"]\n# ///\n")}}, "run.py")
	missing("set of needs", s.Builder)
}

func TestPruneRemovesUnusedPackages(t *testing.T) {
	f := newFake(t)
	f.wheel("greeting", "1.0", greeting("hello"))
	s, plan := pythonScene(t, f.index())
	s.ensure(t, greeter, plan)
	entry := s.cache(t)[0]
	prune := func(maxBytes int64, keep time.Duration, want int) {
		t.Helper()
		if n, err := s.Prune(t.Context(), maxBytes, keep); err != nil || n != want {
			t.Errorf("removed %d, %v, want %d", n, err, want)
		}
	}
	prune(0, time.Hour, 0)
	prune(1<<30, 0, 0)
	killed := filepath.Join(s.opts.Dir, "build-"+entry+"-123")
	if err := errors.Join(os.Mkdir(killed, 0o700), os.Mkdir(filepath.Join(killed, "files"), 0o555)); err != nil {
		t.Fatal(err)
	}
	prune(1<<30, time.Hour, 1)
	if got := s.cache(t); !slices.Equal(got, []string{entry}) {
		t.Errorf("in the cache: %q", got)
	}
	old := time.Now().Add(-48 * time.Hour)
	if err := os.Chtimes(filepath.Join(s.opts.Dir, entry, "manifest.json"), old, old); err != nil {
		t.Fatal(err)
	}
	prune(0, time.Hour, 1)
	if got := s.cache(t); len(got) != 0 {
		t.Errorf("in the cache: %q", got)
	}
}

func TestInstallationRemovesUnusedPackages(t *testing.T) {
	f := newFake(t)
	f.wheel("greeting", "1.0", greeting("hello"))
	f.wheel("first", "1.0", makeWheel("first", "1.0", member{name: "first/__init__.py"}))
	f.wheel("second", "1.0", makeWheel("second", "1.0", member{name: "second/__init__.py"}))
	s, plan := pythonScene(t, f.index())
	s.opts.MaxStored = 1
	s.Builder = mustNew(t, s.opts)
	install := func(requirement string) []string {
		t.Helper()
		skill := fstest.MapFS{"run.py": {Data: []byte("# /// script\n# dependencies = [\"" + requirement + "\"]\n# ///\n")}}
		s.ensure(t, skill, resolve(t, skill, "run.py"))
		return s.cache(t)
	}
	s.ensure(t, greeter, plan)
	first := s.cache(t)[0]
	if got := install("first"); len(got) != 2 {
		t.Errorf("used packages were removed: %q", got)
	}
	old := time.Now().Add(-8 * 24 * time.Hour)
	if err := os.Chtimes(filepath.Join(s.opts.Dir, first, "manifest.json"), old, old); err != nil {
		t.Fatal(err)
	}
	if got := install("second"); len(got) != 2 || slices.Contains(got, first) {
		t.Errorf("in the cache: %q", got)
	}
}

func TestEmptyRequirements(t *testing.T) {
	b := mustNew(t, packages.Options{Dir: t.TempDir()})
	p, err := b.Ensure(t.Context(), nil, nil, nil, nil)
	if err != nil || len(p.Mounts) != 0 || p.Env == nil {
		t.Errorf("%+v, %v", p, err)
	}
	if n, err := mustNew(t, packages.Options{Dir: filepath.Join(t.TempDir(), "none")}).Prune(t.Context(), 0, 0); n != 0 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for _, c := range []struct {
		opts packages.Options
		want string
	}{
		{packages.Options{Dir: "relative"}, "absolute"},
		{packages.Options{Dir: "/x", PythonIndex: "https://me:hunter2@pypi.example/simple"}, "credentials"},
		{packages.Options{Dir: "/x", NPMRegistry: "file:///x"}, "neither https nor http"},
		{packages.Options{Dir: "/x", NPMRegistry: "https://"}, "host"},
		{packages.Options{Dir: "/x", PythonIndex: "https://pypi.example/simple?token=hunter2"}, "query"},
		{packages.Options{Dir: "/x", PythonIndex: "https://pypi.example/%zz?hunter2"}, "not a URL"},
	} {
		_, err := packages.New(c.opts)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%+v: %v, want %q", c.opts, err, c.want)
		}
	}
}
