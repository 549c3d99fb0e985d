package catalog_test

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/loadout-dev/loadout/catalog"
)

// slow returns a source that is read once release is closed.
func slow(origin string, release <-chan struct{}, refs ...string) *memory {
	m := source(origin, catalog.Project, refs...)
	m.list = func(context.Context) (catalog.Listing, error) {
		<-release
		return catalog.Listing{Entries: slices.Clone(m.entries)}, nil
	}
	return m
}

// problemCodes returns "origin code" of the problems.
func problemCodes(s *catalog.Snapshot) []string {
	out := []string{}
	for _, p := range s.Problems() {
		out = append(out, p.Origin+" "+p.Code)
	}
	return out
}

func TestReloadDoesNotWaitForSlowSources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		sources := []catalog.Source{source("fast", catalog.User, "pdf")}
		for _, o := range []string{"a", "b", "c", "d", "e"} { // more than are read at a time
			sources = append(sources, slow(o, release, o))
		}
		sources = append(sources, source("last", catalog.Bundled, "csv"))
		c, err := catalog.New(sources, &catalog.Options{Wait: time.Second})
		must(t, err)
		start := time.Now()
		must(t, c.Reload(t.Context()))
		if took := time.Since(start); took != time.Second {
			t.Errorf("reload took %v, want the wait of a second", took)
		}
		if got := names(c.Snapshot().Skills()); !slices.Equal(got, []string{"csv", "pdf"}) {
			t.Errorf("skills %q, want those that were read", got)
		}
		if got := problemCodes(c.Snapshot()); !slices.Equal(got, []string{"a still-reading", "b still-reading", "c still-reading", "d still-reading", "e still-reading"}) {
			t.Errorf("problems %q", got)
		}
		// The kill switch does not wait.
		must(t, c.SetFilter(catalog.Filter{Disabled: true}))
		if !c.Snapshot().Disabled {
			t.Error("skills are not disabled while a source is read")
		}
		must(t, c.SetFilter(catalog.Filter{}))
		must(t, c.Reload(t.Context()))
		close(release)
		synctest.Wait()
		if got := names(c.Snapshot().Skills()); !slices.Equal(got, []string{"a", "b", "c", "csv", "d", "e", "pdf"}) {
			t.Errorf("skills %q, want all", got)
		}
		if got := problemCodes(c.Snapshot()); len(got) > 0 {
			t.Errorf("problems %q", got)
		}
	})
}

// A change during a slow read is not lost.
func TestSlowSourceIsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := source("slow", catalog.Project, "one")
		var mu sync.Mutex // guards m.entries and reads
		reads := 0
		m.list = func(context.Context) (catalog.Listing, error) {
			mu.Lock()
			reads++
			entries := slices.Clone(m.entries)
			mu.Unlock()
			time.Sleep(time.Minute)
			return catalog.Listing{Entries: entries}, nil
		}
		c, err := catalog.New([]catalog.Source{m}, &catalog.Options{Wait: time.Second})
		must(t, err)
		must(t, c.Reload(t.Context()))
		mu.Lock()
		m.add("two")
		mu.Unlock()
		must(t, c.Reload(t.Context())) // also returns at once, and does not start another read
		mu.Lock()
		defer mu.Unlock()
		if reads != 1 {
			t.Errorf("%d concurrent reads", reads)
		}
		mu.Unlock()
		time.Sleep(time.Hour)
		mu.Lock()
		if got := names(c.Snapshot().Skills()); !slices.Equal(got, []string{"one", "two"}) || reads != 2 {
			t.Errorf("skills %q after %d reads", got, reads)
		}
	})
}

// Without a wait, a reload is complete. With one, it ends with its context.
func TestReloadEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		c, err := catalog.New([]catalog.Source{slow("slow", release, "pdf")}, &catalog.Options{Wait: time.Hour})
		must(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.Reload(ctx); err == nil {
			t.Error("no error")
		}
		if v := c.Snapshot().Version; v != 0 {
			t.Errorf("published version %d", v)
		}
		close(release)
		synctest.Wait()
		if got := names(c.Snapshot().Skills()); !slices.Equal(got, []string{"pdf"}) {
			t.Errorf("skills %q", got)
		}
	})
}

// blockingFS blocks while release is open.
type blockingFS struct {
	fs.FS
	release <-chan struct{}
}

func (b blockingFS) Open(name string) (fs.File, error) {
	if strings.HasPrefix(name, "stuck") {
		<-b.release
	}
	return b.FS.Open(name)
}

// A system call that blocks, as on a dead network mount, delays a reload only
// until the time limit of its source.
func TestReloadGoesOnIfFileSystemBlocks(t *testing.T) {
	for _, wait := range []time.Duration{0, 400 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			release := make(chan struct{})
			files := fstest.MapFS{"stuck/SKILL.md": {Data: []byte(doc("stuck", ""))}}
			sources := []catalog.Source{catalog.NewFS("mount", catalog.User, blockingFS{files, release}), source("own", catalog.User, "pdf")}
			c, err := catalog.New(sources, &catalog.Options{Wait: wait})
			must(t, err)
			start := time.Now()
			must(t, c.Reload(t.Context()))
			if took, most := time.Since(start), 32*time.Second; took > most {
				t.Errorf("wait %v: reload took %v, want at most %v", wait, took, most)
			}
			time.Sleep(time.Minute)
			for range 3 { // further reloads do not wait for it
				start = time.Now()
				must(t, c.Reload(t.Context()))
				if took := time.Since(start); took > 0 {
					t.Errorf("wait %v: another reload took %v", wait, took)
				}
				if got := names(c.Snapshot().Skills()); !slices.Equal(got, []string{"pdf"}) {
					t.Errorf("wait %v: skills %q", wait, got)
				}
				if got := problemCodes(c.Snapshot()); !slices.Equal(got, []string{"mount not-responding"}) {
					t.Errorf("wait %v: problems %q", wait, got)
				}
			}
			close(release)
			synctest.Wait()
			if got := names(c.Snapshot().Skills()); !slices.Equal(got, []string{"pdf", "stuck"}) {
				t.Errorf("wait %v: skills %q after the file system responded", wait, got)
			}
			if got := problemCodes(c.Snapshot()); len(got) > 0 {
				t.Errorf("wait %v: problems %q after the file system responded", wait, got)
			}
		})
	}
}

// A reload ends with its context even if a system call blocks.
func TestReloadOfBlockedFileSystemEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		files := fstest.MapFS{"stuck/SKILL.md": {Data: []byte(doc("stuck", ""))}}
		c, err := catalog.New([]catalog.Source{catalog.NewFS("mount", catalog.User, blockingFS{files, release})}, nil)
		must(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.Reload(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		close(release)
		must(t, c.Reload(t.Context()))
		if got := names(c.Snapshot().Skills()); !slices.Equal(got, []string{"stuck"}) {
			t.Errorf("skills %q", got)
		}
	})
}
