package catalog_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/catalog"
)

// following is a catalog that keeps itself up to date.
type following struct {
	*catalog.Catalog
	change chan struct{}
}

func follow(t *testing.T, opts *catalog.Options, sources ...catalog.Source) *following {
	t.Helper()
	c, err := catalog.New(sources, opts)
	must(t, err)
	must(t, c.Reload(t.Context()))
	f := &following{c, make(chan struct{}, 1)}
	c.Subscribe(func(_, _ *catalog.Snapshot) {
		select {
		case f.change <- struct{}{}:
		default:
		}
	})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := c.Run(ctx); err != nil {
			t.Errorf("Run returns %v", err)
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	return f
}

// until waits for a state of the catalog; how long that takes is not the
// subject of a test.
func (f *following) until(t *testing.T, what string, ok func(*catalog.Snapshot) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for !ok(f.Snapshot()) {
		select {
		case <-f.change:
		case <-ctx.Done():
			t.Fatalf("%s is not noticed; there are %v and problems %v", what, keys(f.Snapshot().Skills()), f.Snapshot().Problems())
		}
	}
}

func (f *following) untilNames(t *testing.T, what string, want ...string) {
	t.Helper()
	f.until(t, what, func(s *catalog.Snapshot) bool { return strings.Join(names(s.Skills()), " ") == strings.Join(want, " ") })
}

func TestChangesAppearWithoutRestart(t *testing.T) {
	t.Parallel()
	root := tree(t, map[string]string{"a/SKILL.md": doc("a", "")})
	f := follow(t, nil, dir(root))
	write(t, root, map[string]string{"b/SKILL.md": doc("b", "")})
	f.untilNames(t, "a new skill", "a", "b")
	write(t, root, map[string]string{"b/SKILL.md": doc("bb", "")})
	f.untilNames(t, "a change", "a", "bb")
	write(t, root, map[string]string{"g/h/i/c/SKILL.md": doc("c", "")})
	f.untilNames(t, "a skill in new directories", "a", "bb", "c")
	write(t, root, map[string]string{"g/h/i/c/sub/d/SKILL.md": doc("d", "")})
	f.untilNames(t, "a skill below a skill", "a", "bb", "c", "d")
	must(t, os.Rename(filepath.Join(root, "g"), filepath.Join(root, "k")))
	f.until(t, "a renamed directory", func(s *catalog.Snapshot) bool { _, err := s.Get("dir/k/h/i/c"); return err == nil })
	write(t, root, map[string]string{"k/h/i/c/SKILL.md": doc("cc", "")})
	f.untilNames(t, "a change in a renamed directory", "a", "bb", "cc", "d")
	must(t, os.RemoveAll(filepath.Join(root, "a")))
	f.untilNames(t, "a skill that is gone", "bb", "cc", "d")
	write(t, root, map[string]string{"a/SKILL.md": doc("a", "")})
	f.untilNames(t, "a skill that came back", "a", "bb", "cc", "d")
	write(t, root, map[string]string{"a/SKILL.md": doc("aa", "")})
	f.untilNames(t, "a change in a directory that came back", "aa", "bb", "cc", "d")
	write(t, root, map[string]string{"x.skill": pack(t, map[string]string{"x/SKILL.md": doc("x", "")})})
	f.untilNames(t, "an archive", "aa", "bb", "cc", "d", "x")
	write(t, root, map[string]string{"bad/SKILL.md": "x"})
	f.until(t, "a broken skill", func(s *catalog.Snapshot) bool {
		return slices.Contains(codes(root, s.Problems()), "bad/SKILL.md frontmatter-missing")
	})
	before := f.Snapshot()
	e := get(t, before, "aa")
	write(t, root, map[string]string{"a/SKILL.md": doc("aa", "") + "more\n"})
	f.until(t, "an edit of the instructions", func(s *catalog.Snapshot) bool { now, err := s.Get("aa"); return err == nil && now != e })
}

// What comes into a new directory after it was listed, and before it is
// watched, counts too.
func TestFileCreatedBetweenListingAndWatch(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	d := dir(root)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	found := make(chan struct{})
	calls := 0
	changed := func() {
		l, err := d.List(ctx)
		if len(l.Entries) > 0 || err != nil {
			close(found)
			cancel()
			return
		}
		if calls++; calls == 1 {
			write(t, root, map[string]string{"new/": ""})
		} else if calls == 2 { // it has seen the directory, and does not watch it yet
			write(t, root, map[string]string{"new/SKILL.md": doc("new", "")})
		}
	}
	if err := d.Watch(ctx, changed); err != nil {
		t.Fatal(err)
	}
	select {
	case <-found:
	default:
		t.Errorf("it was not found in %d listings", calls)
	}
}

func TestDirectoryCreatedLater(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	root := filepath.Join(home, ".claude", "skills")
	for _, optional := range []bool{true, false} {
		f := follow(t, nil, catalog.NewDir("user.claude", catalog.User, root, &catalog.DirOptions{Optional: optional}))
		write(t, home, map[string]string{"other/x": "", ".claude/settings.json": "{}"})
		write(t, root, map[string]string{"pdf/SKILL.md": doc("pdf", "")})
		f.untilNames(t, "a directory that came to be", "pdf")
		write(t, root, map[string]string{"csv/SKILL.md": doc("csv", "")})
		f.untilNames(t, "a new skill in it", "csv", "pdf")
		must(t, os.RemoveAll(filepath.Join(home, ".claude")))
		if optional {
			f.untilNames(t, "a directory that went")
		} else {
			f.until(t, "a directory that went", func(s *catalog.Snapshot) bool { return len(s.Problems()) == 1 })
		}
		write(t, root, map[string]string{"pdf/SKILL.md": doc("pdf2", "")})
		f.untilNames(t, "a directory that came back", "pdf2")
		must(t, os.RemoveAll(filepath.Join(home, ".claude")))
	}
}

func TestRetargetedSymlink(t *testing.T) {
	t.Parallel()
	root := tree(t, map[string]string{"v1/pdf/SKILL.md": doc("pdf", "version: 1.0.0\n"), "v2/pdf/SKILL.md": doc("pdf", "version: 2.0.0\n"), "now": "-> v1"})
	f := follow(t, nil, catalog.NewDir("now", catalog.User, filepath.Join(root, "now"), nil))
	for i, to := range []string{"v2", "v1", "v2"} {
		must(t, os.Symlink(to, filepath.Join(root, "next")))
		must(t, os.Rename(filepath.Join(root, "next"), filepath.Join(root, "now")))
		version := []string{"2.0.0", "1.0.0"}[i%2]
		f.until(t, "the link", func(s *catalog.Snapshot) bool { return get(t, s, "pdf").Version == version })
	}
}

// Two sources that reach one directory both hear of it.
func TestDirectoryOfTwoSources(t *testing.T) {
	t.Parallel()
	root := tree(t, map[string]string{"store/a/SKILL.md": doc("a", ""), "x": "-> store", "y": "-> store"})
	f := follow(t, nil, catalog.NewDir("x", catalog.User, filepath.Join(root, "x"), nil), catalog.NewDir("y", catalog.Project, filepath.Join(root, "y"), nil))
	want := "y/a"
	for _, name := range []string{"b", "c", "d"} {
		write(t, root, map[string]string{"store/" + name + "/SKILL.md": doc(name, "")})
		want += " y/" + name
		f.until(t, "a new skill", func(s *catalog.Snapshot) bool { return strings.Join(keys(s.Skills()), " ") == want })
		f.until(t, "it by the other way", func(s *catalog.Snapshot) bool { return len(s.Explain(name)) == 2 })
	}
	for i := range 3 { // no new directory is a reason to look again
		version := fmt.Sprintf("%d.0.0", i)
		write(t, root, map[string]string{"store/a/SKILL.md": doc("a", "version: "+version+"\n")})
		f.until(t, "an edit", func(s *catalog.Snapshot) bool { e := get(t, s, "a"); return e.Origin == "y" && e.Version == version })
	}
}

func TestAllDirectoriesShareOneWatcher(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("instances are counted by /proc")
	}
	count := func() (n int) {
		fds, err := os.ReadDir("/proc/self/fd")
		must(t, err)
		for _, fd := range fds {
			if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.Contains(to, "inotify") {
				n++
			}
		}
		return n
	}
	before := count()
	root := t.TempDir()
	var sources []catalog.Source
	for i := range 30 {
		sources = append(sources, catalog.NewDir(fmt.Sprint("d", i), catalog.User, filepath.Join(root, fmt.Sprint("d", i)), &catalog.DirOptions{Optional: true}))
	}
	f := follow(t, nil, sources...)
	write(t, root, map[string]string{"d7/a/SKILL.md": doc("a", ""), "d29/b/SKILL.md": doc("b", "")})
	f.untilNames(t, "new skills", "a", "b")
	if n := count() - before; n != 1 {
		t.Errorf("%d instances for 30 directories, want 1: a user has 128 for all programs", n)
	}
}

func TestTooManyDirectoriesArePolled(t *testing.T) {
	t.Parallel()
	root := tree(t, map[string]string{"small/a/SKILL.md": doc("a", "")})
	for i := range 4001 {
		must(t, os.MkdirAll(filepath.Join(root, "large", fmt.Sprint(i/100), fmt.Sprint(i)), 0o755))
	}
	var log lines
	opts := &catalog.Options{Poll: 10 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	f := follow(t, opts, catalog.NewDir("small", catalog.User, filepath.Join(root, "small"), nil), catalog.NewDir("large", catalog.User, filepath.Join(root, "large"), nil))
	write(t, root, map[string]string{"large/3/305/b/SKILL.md": doc("b", "")})
	f.untilNames(t, "a skill among many directories", "a", "b")
	write(t, root, map[string]string{"small/c/SKILL.md": doc("c", "")})
	f.untilNames(t, "a skill among few", "a", "b", "c")
	if got := log.String(); !strings.Contains(got, "origin=large") || strings.Contains(got, "origin=small") {
		t.Errorf("log: %s", got)
	}
}

// lines is a log that may be written while it is read.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestWatchEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	changed := make(chan struct{}, 100)
	ended := make(chan error, 1)
	root := t.TempDir()
	d := dir(root)
	go func() { ended <- d.Watch(ctx, func() { d.List(ctx); changed <- struct{}{} }) }()
	wait := func() {
		t.Helper()
		select {
		case <-changed:
		case err := <-ended: // the system may have no watches left
			t.Fatalf("Watch returns %v", err)
		}
	}
	wait() // for what happened before it was watched
	write(t, root, map[string]string{"a/SKILL.md": doc("a", "")})
	wait()
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Watch returns %v", err)
	}
}
