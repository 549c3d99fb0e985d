package catalog

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// maxWatched bounds the directories that are watched; a source with more
	// is polled, as the system's watches are shared by all its programs.
	maxWatched = 4_000
	// settle is how long a source must be quiet before it is read again, so
	// that a checkout is one change and no file is read half written.
	settle = 150 * time.Millisecond
	// settleMost bounds the wait where changes never stop.
	settleMost = time.Second
)

// errPoll says that a source cannot be watched and has to be polled.
var errPoll = errors.New("the source has to be polled")

// Watch calls changed after changes in the tree until ctx ends.
func (d *Dir) Watch(ctx context.Context, changed func()) error {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("%w: %w", errPoll, err)
	}
	defer w.Close()
	if err := d.watchAll(w); err != nil {
		return err
	}
	changed() // what happened between the scan and the watch
	var quiet <-chan time.Time
	var first time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-w.Errors:
			return fmt.Errorf("%w: %w", errPoll, err)
		case _, ok := <-w.Events:
			if !ok {
				return errPoll
			}
			if quiet == nil {
				first = time.Now()
			}
			if quiet == nil || time.Since(first) < settleMost {
				quiet = time.After(settle)
			}
		case <-quiet:
			quiet = nil
			changed()
			if err := d.watchAll(w); err != nil {
				return err
			}
		}
	}
}

// watchAll watches the root, or the nearest directory above it that exists,
// and every directory of the last scan. Watching one twice is harmless.
func (d *Dir) watchAll(w *fsnotify.Watcher) error {
	var dirs []string
	d.mu.Lock()
	if d.tree != nil {
		dirs = d.tree.paths(dirs, d.root)
	}
	d.mu.Unlock()
	if len(dirs) > maxWatched {
		return fmt.Errorf("%w: it has more than %d directories", errPoll, maxWatched)
	}
	if len(dirs) == 0 {
		return d.watchAbove(w)
	}
	for i, dir := range dirs {
		if err := w.Add(dir); err != nil && i == 0 {
			return fmt.Errorf("%w: %w", errPoll, err)
		}
	}
	return nil
}

// watchAbove waits for a root that does not exist yet.
func (d *Dir) watchAbove(w *fsnotify.Watcher) error {
	for dir := d.root; ; dir = filepath.Dir(dir) {
		if err := w.Add(dir); err == nil || dir == filepath.Dir(dir) {
			return nil
		}
	}
}

func (n *node) paths(dirs []string, path string) []string {
	dirs = append(dirs, path)
	for _, s := range n.subs {
		if len(dirs) > maxWatched {
			break
		}
		dirs = s.paths(dirs, filepath.Join(path, s.name))
	}
	return dirs
}
