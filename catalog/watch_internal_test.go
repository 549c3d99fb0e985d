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
	go func() {
		defer close(done)
		watchDirs(ctx, []*dirSource{busy, free}, func(which []int) {
			for _, i := range which {
				changed <- i
			}
		}, func(i int, err error) { t.Errorf("source %d is not watched: %v", i, err) })
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
			case <-t.Context().Done():
				t.Fatalf("no change of source %d", want)
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
