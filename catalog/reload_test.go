package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/catalog"
)

func TestNewRefusesDuplicateLabels(t *testing.T) {
	c, err := catalog.New([]catalog.Source{source("a", catalog.User), source("b", catalog.User), source("a", catalog.Group)}, nil)
	if c != nil || err == nil || !strings.Contains(err.Error(), "duplicate skill source label a") {
		t.Errorf("got %v", err)
	}
}

func TestNewRefusesInvalidLabels(t *testing.T) {
	for label, ok := range map[string]bool{"a": true, "user.claude-2": true, "": false, "a/b": false, "a@1": false, "A": false, "a b": false, "é": false} {
		if _, err := catalog.New([]catalog.Source{source(label, catalog.User)}, nil); (err == nil) != ok {
			t.Errorf("%q: %v", label, err)
		}
	}
}

func TestCatalogIsEmptyUntilReload(t *testing.T) {
	c, err := catalog.New([]catalog.Source{source("m", catalog.User, "a")}, nil)
	must(t, err)
	s := c.Snapshot()
	if s.Version != 0 || len(s.Skills()) != 0 || len(s.Problems()) != 0 {
		t.Errorf("got %+v", s)
	}
	must(t, c.Reload(t.Context()))
	if s := c.Snapshot(); s.Version != 1 || len(s.Skills()) != 1 {
		t.Errorf("after the first reload: version %d, %q", s.Version, names(s.Skills()))
	}
}

func TestReloadWithoutChangesPublishesNothing(t *testing.T) {
	files := map[string]string{"a/SKILL.md": doc("a", "tags: [x]\n"), "b/SKILL.md": doc("b", "x: y: z\n"), "c.skill": pack(t, map[string]string{"c/SKILL.md": doc("c", "")}), "bad/SKILL.md": ""}
	fsys := fstest.MapFS{"a/SKILL.md": {Data: []byte(doc("a", "version: 1\n"))}, "bad/SKILL.md": {Data: []byte("x")}}
	for _, aged := range []bool{false, true} {
		root := tree(t, files)
		if aged {
			age(t, root)
		}
		c := open(t,
			dir(root), catalog.NewDir("none", catalog.User, filepath.Join(root, "none"), nil),
			catalog.NewArchive("zip", catalog.User, filepath.Join(root, "c.skill")), catalog.NewFS("fs", catalog.Bundled, fsys),
			source("m", catalog.User, "a"))
		c.Subscribe(func(_, _ *catalog.Snapshot) { t.Error("a change is reported") })
		before := c.Snapshot()
		if len(before.Problems()) < 4 || len(before.Skills()) != 3 {
			t.Fatalf("the test has it wrong: %q, %v", names(before.Skills()), before.Problems())
		}
		for range 3 {
			must(t, c.Reload(t.Context()))
		}
		if after := c.Snapshot(); after != before || after.Version != 1 {
			t.Errorf("aged %v: version %d after three reloads", aged, after.Version)
		}
	}
}

func TestK6ReloadNeedsNoRestart(t *testing.T) {
	root := tree(t, map[string]string{"a/SKILL.md": doc("a", ""), "b/SKILL.md": doc("b", "")})
	fsys := fstest.MapFS{"f/SKILL.md": {Data: []byte(doc("f", ""))}}
	write(t, root, map[string]string{"../z.skill": pack(t, map[string]string{"z/SKILL.md": doc("z", "")})})
	archive := filepath.Join(root, "..", "z.skill")
	c := open(t, dir(root), catalog.NewFS("fs", catalog.Bundled, fsys), catalog.NewArchive("zip", catalog.User, archive))
	for i, tt := range []struct {
		what   string
		change func()
		want   []string
	}{
		{"new", func() { write(t, root, map[string]string{"c/SKILL.md": doc("c", "")}) }, []string{"a", "b", "c", "f", "z"}},
		{"gone", func() { must(t, os.RemoveAll(filepath.Join(root, "a"))) }, []string{"b", "c", "f", "z"}},
		{"renamed", func() { write(t, root, map[string]string{"b/SKILL.md": doc("bb", "")}) }, []string{"bb", "c", "f", "z"}},
		{"broken", func() { write(t, root, map[string]string{"c/SKILL.md": "---\n"}) }, []string{"bb", "f", "z"}},
		{"mended", func() { write(t, root, map[string]string{"c/SKILL.md": doc("c", "")}) }, []string{"bb", "c", "f", "z"}},
		{"moved", func() { must(t, os.Rename(filepath.Join(root, "c"), filepath.Join(root, "d"))) }, []string{"bb", "c", "f", "z"}},
		{"in memory", func() { fsys["f/SKILL.md"] = &fstest.MapFile{Data: []byte(doc("ff", ""))} }, []string{"bb", "c", "ff", "z"}},
		{"in an archive", func() {
			write(t, root, map[string]string{"../z.skill": pack(t, map[string]string{"z/SKILL.md": doc("zz", "")})})
		}, []string{"bb", "c", "ff", "zz"}},
		{"only the body", func() { write(t, root, map[string]string{"d/SKILL.md": doc("c", "") + "more\n"}) }, []string{"bb", "c", "ff", "zz"}},
		{"only the body in memory", func() { fsys["f/SKILL.md"] = &fstest.MapFile{Data: []byte(doc("ff", "") + "more\n")} }, []string{"bb", "c", "ff", "zz"}},
	} {
		var reported []string
		before := c.Snapshot()
		cancel := c.Subscribe(func(old, new *catalog.Snapshot) {
			if old != before || new != c.Snapshot() {
				t.Errorf("%s: not told of the states before and after", tt.what)
			}
			reported = names(new.Skills())
		})
		tt.change()
		must(t, c.Reload(t.Context()))
		cancel()
		if diff := cmp.Diff(tt.want, reported); diff != "" {
			t.Errorf("%s (-want +told):\n%s", tt.what, diff)
		}
		if v := c.Snapshot().Version; v != uint64(i)+2 {
			t.Errorf("%s: version %d, want %d", tt.what, v, i+2)
		}
	}
}

func TestSubscribersAreNotifiedInOrderUntilTheyCancel(t *testing.T) {
	m := source("m", catalog.User)
	c := open(t, m)
	var reported []int
	var cancels []func()
	for i := range 5 {
		cancels = append(cancels, c.Subscribe(func(_, _ *catalog.Snapshot) { reported = append(reported, i) }))
	}
	m.add("a")
	must(t, c.Reload(t.Context()))
	cancels[1]()
	cancels[1]() // twice is once
	cancels[3]()
	m.add("b")
	must(t, c.Reload(t.Context()))
	if want := []int{0, 1, 2, 3, 4, 0, 2, 4}; !slices.Equal(reported, want) {
		t.Errorf("got %v, want %v", reported, want)
	}
}

func TestFailedSourceKeepsItsSkills(t *testing.T) {
	var fault error
	m := source("m", catalog.User, "a")
	entries := m.entries
	m.list = func(context.Context) (catalog.Listing, error) {
		return catalog.Listing{Entries: slices.Clone(entries)}, fault
	}
	other := source("o", catalog.User, "b")
	c := open(t, m, other)
	state := func() string {
		s := c.Snapshot()
		return fmt.Sprint(s.Version, names(s.Skills()), len(s.Problems()))
	}
	for _, step := range []struct {
		fault error
		want  string
	}{
		{nil, "1 [a b] 0"},
		{errors.New("down"), "2 [a b] 1"},
		{errors.New("down"), "2 [a b] 1"}, // nothing new
		{errors.New("still down"), "3 [a b] 1"},
		{nil, "4 [a b] 0"},
	} {
		fault = step.fault
		must(t, c.Reload(t.Context()))
		if got := state(); got != step.want {
			t.Errorf("with %v: %s, want %s", step.fault, got, step.want)
		}
		if fault != nil {
			p := c.Snapshot().Problems()[0]
			if p.Origin != "m" || p.Path != "m" || p.Severity != "error" || p.Code != "unreadable" || !strings.Contains(p.Message, fault.Error()) || p.Fix == "" {
				t.Errorf("problem %+v", p)
			}
		}
	}
}

func TestCancelledReloadChangesNothing(t *testing.T) {
	root := tree(t, map[string]string{"a/SKILL.md": doc("a", "")})
	m := source("m", catalog.User, "m")
	c := open(t, dir(root), m)
	before := c.Snapshot()
	write(t, root, map[string]string{"b/SKILL.md": doc("b", "")})
	cause := errors.New("the person left")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if err := c.Reload(ctx); !errors.Is(err, cause) {
		t.Errorf("reload: %v, want the cause", err)
	}
	if c.Snapshot() != before {
		t.Error("something was published")
	}
	// The next successful reload does not contain it.
	m.entries = source("m", catalog.User, "n").entries
	must(t, c.Reload(t.Context()))
	if s := c.Snapshot(); len(s.Problems()) > 0 || !slices.Equal(names(s.Skills()), []string{"a", "b", "n"}) {
		t.Errorf("problems %v, skills %q", s.Problems(), names(s.Skills()))
	}
}

// A reload that is cut short must not be remembered as the failure of its
// sources by one that reads only others of them.
func TestCancelledReloadReportsNoSourceFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := source("slow", catalog.User, "slow")
		entries := slow.entries
		slow.list = func(ctx context.Context) (catalog.Listing, error) {
			return catalog.Listing{Entries: slices.Clone(entries)}, ctx.Err()
		}
		quick := &watched{memory: source("quick", catalog.User, "quick"), change: make(chan struct{})}
		c := open(t, slow, quick)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { c.Run(ctx) })
		synctest.Wait()
		cut, cancelCut := context.WithCancel(t.Context())
		cancelCut()
		if err := c.Reload(cut); err == nil {
			t.Error("the reload is not cut short")
		}
		quick.add("more")
		quick.change <- struct{}{}
		synctest.Wait()
		if s := c.Snapshot(); len(s.Problems()) > 0 || !slices.Equal(names(s.Skills()), []string{"more", "quick", "slow"}) {
			t.Errorf("problems %v, skills %q", s.Problems(), names(s.Skills()))
		}
		cancel()
		running.Wait()
	})
}

// watched is a source that can tell.
type watched struct {
	*memory
	change chan struct{}
	fail   error
}

func (w *watched) Watch(ctx context.Context, changed func()) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.change:
			if w.fail != nil {
				return w.fail
			}
			changed()
		}
	}
}

// Readers see one state or the other, never a mixture, however often the
// catalog is read again meanwhile.
func TestReadersDuringReloads(t *testing.T) {
	var turn atomic.Int64
	sets := [][]string{{"a@1.0.0", "b@1.0.0", "c@1.0.0"}, {"a@2.0.0", "b@2.0.0", "d@2.0.0", "e@2.0.0"}}
	m := &memory{origin: "m", list: func(context.Context) (catalog.Listing, error) {
		return catalog.Listing{Entries: source("m", catalog.User, sets[turn.Add(1)%2]...).entries}, nil
	}}
	root := tree(t, map[string]string{"pdf/SKILL.md": doc("pdf", "")})
	c := open(t, m, dir(root))
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for range 3 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				s := c.Snapshot()
				version := ""
				for _, e := range s.Skills() {
					if e.Origin != "m" {
						continue
					}
					if version == "" {
						version = e.Version
					}
					if e.Version != version {
						t.Errorf("a mixture: %v", names(s.Skills()))
					}
				}
				s.Explain("a")
				s.Shadowed()
				if hits, err := c.Search(t.Context(), "does pdf things", catalog.SearchOptions{}); err != nil || len(hits) == 0 {
					t.Errorf("search: %v, %v", hits, err)
				}
				if _, _, err := c.Read(t.Context(), get(t, s, "pdf")); err != nil {
					t.Error(err)
				}
				if _, err := c.Manifest(t.Context(), get(t, s, "pdf")); err != nil {
					t.Error(err)
				}
				c.Subscribe(func(_, _ *catalog.Snapshot) {})()
			}
		})
	}
	for range 100 {
		must(t, c.Reload(t.Context()))
	}
	close(stop)
	wg.Wait()
	if v := c.Snapshot().Version; v != 101 {
		t.Errorf("version %d after 101 changes", v)
	}
}

func TestConcurrentReloadsAreSerialized(t *testing.T) {
	var listing atomic.Int64
	m := &memory{origin: "m", list: func(context.Context) (catalog.Listing, error) {
		if listing.Add(1) > 1 {
			t.Error("List is called while it is running")
		}
		defer listing.Add(-1)
		return catalog.Listing{}, nil
	}}
	c := open(t, m)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				if err := c.Reload(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func TestPolling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Int64
		var slow atomic.Int64
		var entries atomic.Pointer[[]*catalog.Entry]
		entries.Store(&source("m", catalog.User, "a").entries)
		m := &memory{origin: "m", list: func(context.Context) (catalog.Listing, error) {
			reads.Add(1)
			time.Sleep(time.Duration(slow.Load()))
			return catalog.Listing{Entries: slices.Clone(*entries.Load())}, nil
		}}
		c, err := catalog.New([]catalog.Source{m}, nil)
		must(t, err)
		must(t, c.Reload(t.Context()))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- c.Run(ctx) }()

		reads.Store(0)
		time.Sleep(15*time.Second + time.Millisecond)
		if n := reads.Load(); n != 10 {
			t.Errorf("%d reads in 15 seconds, want one every 1.5", n)
		}
		slow.Store(int64(time.Second)) // then it takes its time
		time.Sleep(3 * time.Second)
		reads.Store(0)
		time.Sleep(210 * time.Second)
		if n := reads.Load(); n < 9 || n > 11 {
			t.Errorf("%d reads in 210 seconds of a source that takes one, want 10", n)
		}
		entries.Store(&source("m", catalog.User, "b").entries)
		slow.Store(0)
		time.Sleep(time.Minute)
		get(t, c.Snapshot(), "b")
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run returns %v", err)
		}
	})
}

func TestSourceIsPolledWhenItsWatchFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &watched{memory: source("w", catalog.User, "a"), change: make(chan struct{}), fail: errors.New("no more")}
		c := open(t, w)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- c.Run(ctx) }()
		synctest.Wait()
		w.add("b")
		time.Sleep(time.Hour)
		if _, err := c.Snapshot().Get("b"); err == nil {
			t.Error("it is polled while it is watched")
		}
		w.change <- struct{}{}
		time.Sleep(2 * time.Second)
		get(t, c.Snapshot(), "b")
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run returns %v", err)
		}
	})
}

func TestImmutableSourcesAreNotPolled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := fstest.MapFS{"f/SKILL.md": {Data: []byte(doc("f", ""))}}
		c := open(t, catalog.NewFS("fs", catalog.Bundled, fsys))
		before := c.Snapshot()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- c.Run(ctx) }()
		synctest.Wait()
		fsys["g/SKILL.md"] = fsys["f/SKILL.md"] // not how it is meant to be used
		time.Sleep(time.Hour)
		if c.Snapshot() != before {
			t.Error("it was read again")
		}
		cancel()
		<-ended
	})
}

// Switched off, nothing is read at all.
func TestK2DisabledCatalogReadsNothing(t *testing.T) {
	root := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		m := &memory{origin: "m", list: func(context.Context) (catalog.Listing, error) {
			t.Error("it is read")
			return catalog.Listing{}, nil
		}}
		w := &watched{memory: m, change: make(chan struct{})}
		for _, s := range []catalog.Source{m, w} {
			c := filtered(t, catalog.Filter{Disabled: true}, s, dir(root))
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- c.Run(ctx) }()
			synctest.Wait()
			if s == catalog.Source(w) {
				w.change <- struct{}{}
			}
			time.Sleep(time.Hour)
			must(t, c.Reload(t.Context()))
			if s := c.Snapshot(); !s.Disabled || s.Version != 1 {
				t.Errorf("got %+v", s)
			}
			cancel()
			<-ended
		}
	})
}

func TestRunWithoutSourcesWaitsForContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t)
		ctx, cancel := context.WithCancel(t.Context())
		var ended atomic.Bool
		go func() { c.Run(ctx); ended.Store(true) }()
		time.Sleep(time.Hour)
		if ended.Load() {
			t.Error("it has ended by itself")
		}
		cancel()
		synctest.Wait()
		if !ended.Load() {
			t.Error("it has not ended")
		}
	})
}
