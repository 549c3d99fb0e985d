package catalog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// maxWatched is the maximum number of watched directories in a source.
	// Larger sources are polled, because all programs share the system's
	// watches.
	maxWatched = 4_000
	// quietTime is how long a source must be unchanged before it is read
	// again. It makes a checkout a single change and avoids reading files
	// while they are written.
	quietTime = 150 * time.Millisecond
	// maxQuietWait is the maximum wait if changes do not stop.
	maxQuietWait = time.Second
)

// errPoll is returned for a source that cannot be watched and must be polled.
var errPoll = errors.New("cannot watch source")

// Watch calls changed after changes in the directory tree until ctx is done.
func (d *dirSource) Watch(ctx context.Context, changed func()) error {
	var failed error
	watchDirs(ctx, []*dirSource{d}, func([]int) { changed() }, func(_ int, err error) { failed = err })
	return failed
}

// watchDirs watches several directory sources until ctx is done. It calls
// changed with the sources that may have changed. It calls giveUp once for a
// source that can no longer be watched. The sources share an inotify instance,
// because Linux allows a user only 128.
func watchDirs(ctx context.Context, dirs []*dirSource, changed func(which []int), giveUp func(i int, err error)) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		for i := range dirs {
			giveUp(i, fmt.Errorf("%w: %w", errPoll, err))
		}
		return
	}
	defer w.Close()
	newWatching(w, dirs, giveUp).run(ctx, w.Events, w.Errors, changed)
}

// watching holds the state of watchDirs.
type watching struct {
	w      notifier
	giveUp func(i int, err error)
	trees  []*watchedTree
	at     map[string][]watcher // watchers by the path of the watched directory
	have   map[string]bool      // watched paths
	gone   map[string]bool      // watched paths that were removed or renamed
	busy   bool                 // whether a source was being read during the last update
}

// notifier is the part of [fsnotify.Watcher] that selects the watched paths.
type notifier interface {
	Add(path string) error
	Remove(path string) error
}

func newWatching(w notifier, dirs []*dirSource, giveUp func(i int, err error)) *watching {
	x := &watching{w: w, giveUp: giveUp, have: map[string]bool{}, gone: map[string]bool{}}
	for _, d := range dirs {
		x.trees = append(x.trees, &watchedTree{dir: d})
	}
	return x
}

// run handles the notifier's events until ctx is done or no source is watched.
func (x *watching) run(ctx context.Context, events <-chan fsnotify.Event, failures <-chan error, changed func(which []int)) {
	x.update()
	for x.left() {
		var due, retry <-chan time.Time
		if x.busy {
			retry = time.After(maxQuietWait)
		}
		if at := x.nextDue(); !at.IsZero() {
			due = time.After(time.Until(at))
		}
		select {
		case <-ctx.Done():
			return
		case err, ok := <-failures:
			if ok && errors.Is(err, fsnotify.ErrEventOverflow) {
				x.markAll()
				continue
			}
			x.end(err)
		case ev, ok := <-events:
			if !ok {
				x.end(fsnotify.ErrClosed)
				continue
			}
			x.event(ev)
		case <-due:
			changed(x.popDue())
			x.update()
		case <-retry:
			x.update()
		}
	}
}

// watchedTree holds the state of watching a source.
type watchedTree struct {
	dir        *dirSource
	failed     bool      // whether giveUp was called
	first, due time.Time // when the pending changes began, and when to read the source; zero if there are none
}

// watcher is a source that watches a directory. If above is set, the directory
// is a parent of the source's root, and only events on the path to the root
// matter.
type watcher struct {
	tree  int
	above bool
}

func (x *watching) left() bool {
	for _, t := range x.trees {
		if !t.failed {
			return true
		}
	}
	return false
}

func (x *watching) nextDue() time.Time {
	var first time.Time
	for _, t := range x.trees {
		if !t.due.IsZero() && (first.IsZero() || t.due.Before(first)) {
			first = t.due
		}
	}
	return first
}

// popDue returns the sources that are due to be read again, and clears their
// pending changes.
func (x *watching) popDue() []int {
	now := time.Now()
	var which []int
	for i, t := range x.trees {
		if !t.due.IsZero() && !t.due.After(now) {
			t.first, t.due = time.Time{}, time.Time{}
			which = append(which, i)
		}
	}
	return which
}

func (x *watching) mark(i int) {
	t, now := x.trees[i], time.Now()
	if t.failed {
		return
	}
	if t.first.IsZero() {
		t.first = now
	}
	t.due = now.Add(quietTime)
	if most := t.first.Add(maxQuietWait); t.due.After(most) {
		t.due = most
	}
}

func (x *watching) markAll() {
	for i := range x.trees {
		x.mark(i)
	}
}

func (x *watching) fail(i int, err error) {
	if t := x.trees[i]; !t.failed {
		t.failed, t.first, t.due = true, time.Time{}, time.Time{}
		x.giveUp(i, fmt.Errorf("%w: %w", errPoll, err))
	}
}

func (x *watching) end(err error) {
	for i := range x.trees {
		x.fail(i, err)
	}
}

func (x *watching) event(ev fsnotify.Event) {
	if ev.Name == "" {
		return
	}
	if x.have[ev.Name] && (ev.Has(fsnotify.Remove) || ev.Has(fsnotify.Rename)) {
		x.gone[ev.Name] = true
	}
	for _, p := range []string{ev.Name, filepath.Dir(ev.Name)} {
		for _, w := range x.at[p] {
			if !w.above || leadsTo(ev.Name, x.trees[w.tree].dir.root) {
				x.mark(w.tree)
			}
		}
	}
}

// leadsTo reports whether path is target or one of its parents.
func leadsTo(path, target string) bool {
	const sep = string(filepath.Separator)
	return path == target || strings.HasPrefix(target, strings.TrimSuffix(path, sep)+sep)
}

// update watches the directories of the last scans and stops watching others.
// Newly watched directories may have changed since the scan, so their sources
// are read again.
func (x *watching) update() {
	wanted := x.wanted()
	for p := range x.have {
		if x.wasRemoved(p) {
			delete(x.have, p) // the system removed the watch
		} else if x.at[p] == nil {
			_ = x.w.Remove(p) // an error means that the watch no longer exists
			delete(x.have, p)
		}
	}
	clear(x.gone)
	for _, p := range wanted {
		err := x.w.Add(p)
		for _, w := range x.at[p] {
			switch {
			case err == nil && !x.have[p], errors.Is(err, fs.ErrNotExist):
				x.mark(w.tree)
			case err != nil && !errors.Is(err, fs.ErrPermission):
				x.fail(w.tree, err)
			}
		}
		if err == nil {
			x.have[p] = true
		}
	}
}

// wasRemoved reports whether path or one of its parents was removed or renamed.
func (x *watching) wasRemoved(path string) bool {
	for len(x.gone) > 0 {
		if x.gone[path] {
			return true
		}
		if path == filepath.Dir(path) {
			break
		}
		path = filepath.Dir(path)
	}
	return false
}

// wanted computes x.at, the directories to watch, and returns its keys in
// insertion order.
func (x *watching) wanted() []string {
	x.at = map[string][]watcher{}
	var order []string
	byID := map[fileID]string{}
	x.busy = false
	want := func(p string, id fileID, w watcher) {
		if id != (fileID{}) { // a directory with two paths is watched through the first
			first, ok := byID[id]
			if !ok {
				first, byID[id] = p, p
			}
			w.above = w.above && first == p // otherwise events would have other paths
			p = first
		}
		if x.at[p] == nil {
			order = append(order, p)
		}
		x.at[p] = append(x.at[p], w)
	}
	for i, t := range x.trees {
		if t.failed {
			continue
		}
		if !t.dir.mu.TryLock() { // reading may take long
			x.busy = true
			continue
		}
		places := t.dir.watched(maxWatched - len(order))
		t.dir.mu.Unlock()
		if places == nil {
			x.fail(i, fmt.Errorf("too many directories (limit %d)", maxWatched))
			continue
		}
		for _, p := range places {
			want(p.path, p.id, watcher{tree: i, above: p.above})
		}
	}
	return order
}

// watchedDir is a directory to be watched for a source.
type watchedDir struct {
	path  string
	id    fileID
	above bool
}

// watched returns the directories to watch: those of the last scan or, if the
// root does not exist, the nearest existing parent. It returns nil if there are
// more directories than limit. It must be called with d.mu held.
func (d *dirSource) watched(limit int) []watchedDir {
	var out []watchedDir
	fi, err := os.Lstat(d.root)
	if err == nil && d.tree != nil {
		out = d.tree.watched(out, d.root, limit)
	}
	if out == nil || fi.Mode()&fs.ModeSymlink != 0 {
		out = append(out, above(d.root))
	}
	if len(out) > limit {
		return nil
	}
	return out
}

// above returns the nearest existing parent of path.
func above(path string) watchedDir {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if fi, err := os.Stat(dir); err == nil && fi.IsDir() || dir == filepath.Dir(dir) {
			w := watchedDir{path: dir, above: true}
			if err == nil {
				w.id = stampOfInfo(fi).id
			}
			return w
		}
	}
}

func (n *node) watched(out []watchedDir, path string, limit int) []watchedDir {
	if n.stamp == (stamp{}) || len(out) > limit {
		return out // not searched, or too many directories
	}
	out = append(out, watchedDir{path: path, id: n.stamp.id})
	for _, s := range n.subs {
		out = s.watched(out, filepath.Join(path, s.name), limit)
	}
	return out
}
