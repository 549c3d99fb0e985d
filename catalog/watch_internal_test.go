package catalog

import (
	"context"
	"os"
	"path/filepath"
	"testing"
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
