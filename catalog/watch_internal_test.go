package catalog

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
)

// A source whose first read takes long is watched after it, and does not keep
// others from being watched.
func TestWatchOfABusySource(t *testing.T) {
	busy := NewDir("busy", Project, t.TempDir(), nil).(*dirSource)
	free := NewDir("free", Project, t.TempDir(), nil).(*dirSource)
	for _, d := range []*dirSource{busy, free} {
		if _, err := d.List(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	busy.mu.Lock()
	ctx, cancel := context.WithCancel(t.Context())
	changed, done := make(chan int, 100), make(chan struct{})
	failed := make(chan error, 2) // the system may have no watches left
	go func() {
		defer close(done)
		watchDirs(ctx, []*dirSource{busy, free}, func(which []int) {
			for _, i := range which {
				changed <- i
			}
		}, func(_ int, err error) { failed <- err })
	}()
	defer func() { cancel(); <-done }()
	waitFor := func(want int) {
		t.Helper()
		for {
			select {
			case i := <-changed:
				if i == want {
					return
				}
			case err := <-failed:
				t.Fatalf("waiting for source %d: %v", want, err)
			}
		}
	}
	waitFor(1) // newly watched
	busy.mu.Unlock()
	waitFor(0)
	if err := os.WriteFile(filepath.Join(busy.root, "SKILL.md"), []byte("---\nname: a\n---\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	waitFor(0)
}

// quietNotifier is a notifier whose events come from the test.
type quietNotifier struct{}

func (quietNotifier) Add(string) error    { return nil }
func (quietNotifier) Remove(string) error { return nil }

// The catalog has a change two seconds after it, even if changes do not stop. Results
// of the MCP server rely on this bound; see docs/mcp.md.
func TestChangeIsReadWithinTwoSeconds(t *testing.T) {
	for name, test := range map[string]struct {
		events  int
		changed bool
	}{
		"no event": {0, false},
		"one":      {1, true},
		"no end":   {1_000, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := NewDir("dir", User, t.TempDir(), nil).(*dirSource)
				file := filepath.Join(dir.root, "SKILL.md")
				write := func(text string) {
					if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				write("---\nname: a\ndescription: Before.\n---\n")
				c, err := New([]Source{dir}, nil)
				if err != nil {
					t.Fatal(err)
				}
				if err := c.Reload(t.Context()); err != nil {
					t.Fatal(err)
				}
				events, done := make(chan fsnotify.Event, 1), make(chan struct{})
				ctx, cancel := context.WithCancel(t.Context())
				go func() {
					defer close(done)
					x := newWatching(quietNotifier{}, []*dirSource{dir}, func(_ int, err error) { t.Error(err) })
					x.run(ctx, events, nil, func([]int) { _ = c.refresh(ctx, c.sources.Load().all) })
				}()
				defer func() { cancel(); <-done }()
				time.Sleep(maxQuietWait) // newly watched, it is read again
				write("---\nname: a\ndescription: After.\n---\n")
				edited := time.Now()
				for range test.events {
					if events <- (fsnotify.Event{Name: file, Op: fsnotify.Write}); time.Since(edited) >= 2*time.Second {
						break
					}
					time.Sleep(quietTime / 2)
				}
				time.Sleep(time.Until(edited.Add(2 * time.Second)))
				synctest.Wait()
				e, err := c.Snapshot().Get("a")
				if err != nil || (e.Description == "After.") != test.changed {
					t.Errorf("two seconds later, the skill is %+v (%v)", e, err)
				}
			})
		})
	}
}
