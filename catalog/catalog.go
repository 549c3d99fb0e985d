// Package catalog knows which skills there are: it lists sources, decides
// what every name stands for, and publishes the result as one immutable
// [Snapshot] at a time.
//
// It keeps level 1 of each skill only, never a body: instructions and files
// are read from their source when they are asked for, as they are then. It
// executes nothing and sends nothing to a model.
package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loadout-dev/loadout/skill"
)

// Options adjust a catalog. The zero value is ready to use.
type Options struct {
	Filter Filter
	// Poll is how often sources that cannot be watched are read again;
	// default 1.5 seconds, and at least twenty times what reading took.
	Poll time.Duration
	// Search, where set, ranks skills in place of an index of the catalog's own where
	// there are more than [MaxIndexed]: it returns their names, the best first, at most
	// as many as limit. Those that the catalog does not show are passed over.
	Search func(ctx context.Context, query string, limit int) ([]string, error)
	// Logger receives what goes on in the background; nil discards it.
	Logger *slog.Logger
}

// Catalog is a set of sources and what they offer. It is safe for concurrent
// use.
type Catalog struct {
	sources []Source
	filter  atomic.Pointer[filter]
	poll    time.Duration
	rank    func(ctx context.Context, query string, limit int) ([]string, error)
	log     *slog.Logger
	current atomic.Pointer[Snapshot]

	reload   sync.Mutex // held while building a snapshot; guards what follows
	listings []Listing  // by source, of the last good read
	failed   []error    // by source
	took     []time.Duration

	mu          sync.Mutex // guards what follows; never held while calling out
	subscribers map[int]func(old, new *Snapshot)
	nextID      int
	hashers     map[*Entry]*skill.Hasher

	index searchCache
}

// New returns a catalog of the sources, which are in order of preference
// within each scope. It reads nothing yet: call [Catalog.Reload].
func New(sources []Source, opts *Options) (*Catalog, error) {
	if opts == nil {
		opts = &Options{}
	}
	f, err := opts.Filter.compile()
	if err != nil {
		return nil, err
	}
	origins := map[string]bool{}
	for _, s := range sources {
		if !isLabel(s.Origin()) {
			return nil, fmt.Errorf("a skill source has the label %q; make it of lower-case letters, digits, dots and hyphens", s.Origin())
		}
		if origins[s.Origin()] {
			return nil, fmt.Errorf("two skill sources have the label %s; give one another name", s.Origin())
		}
		origins[s.Origin()] = true
	}
	c := &Catalog{
		sources:     slices.Clone(sources),
		poll:        opts.Poll,
		rank:        opts.Search,
		log:         opts.Logger,
		listings:    make([]Listing, len(sources)),
		failed:      make([]error, len(sources)),
		took:        make([]time.Duration, len(sources)),
		subscribers: map[int]func(old, new *Snapshot){},
		hashers:     map[*Entry]*skill.Hasher{},
	}
	if c.poll == 0 {
		c.poll = 1500 * time.Millisecond
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	c.filter.Store(f)
	c.current.Store(newSnapshot(nil, nil, f))
	return c, nil
}

// isLabel reports whether a label can be part of a reference and of a URI.
func isLabel(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '.' && r != '-'
	})
}

// Snapshot returns the current state, empty before the first reload.
func (c *Catalog) Snapshot() *Snapshot { return c.current.Load() }

// Sources returns the sources in order.
func (c *Catalog) Sources() []Source { return slices.Clone(c.sources) }

// Reload reads all sources and publishes what they offer. A source that
// cannot be read keeps what it last offered and becomes a problem of the
// snapshot. The error is that of ctx; nothing is published then.
func (c *Catalog) Reload(ctx context.Context) error {
	all := make([]int, len(c.sources))
	for i := range all {
		all[i] = i
	}
	return c.refresh(ctx, all)
}

// refresh reads the named sources, at most four at a time.
func (c *Catalog) refresh(ctx context.Context, which []int) error {
	c.reload.Lock()
	defer c.reload.Unlock()
	changed := c.current.Load().Version == 0
	if !c.filter.Load().disabled {
		read := c.read(ctx, which)
		if ctx.Err() != nil {
			return fmt.Errorf("read skill sources: %w", context.Cause(ctx))
		}
		for at, i := range which {
			changed = c.take(i, read[at]) || changed
		}
	}
	if changed {
		c.publish(c.build())
	}
	return nil
}

// answer is what a source said.
type answer struct {
	listing Listing
	err     error
	took    time.Duration
}

func (c *Catalog) read(ctx context.Context, which []int) []answer {
	out := make([]answer, len(which))
	gate := make(chan struct{}, 4)
	var wg sync.WaitGroup
	for at, i := range which {
		wg.Go(func() {
			gate <- struct{}{}
			defer func() { <-gate }()
			start := time.Now()
			l, err := c.sources[i].List(ctx)
			out[at] = answer{l, err, time.Since(start)}
		})
	}
	wg.Wait()
	return out
}

// take keeps the answer of source i, and reports whether it differs from what
// is known of it.
func (c *Catalog) take(i int, a answer) bool {
	before, failed := c.listings[i], c.failed[i]
	c.took[i], c.failed[i] = a.took, a.err
	if a.err != nil {
		return failed == nil || failed.Error() != a.err.Error()
	}
	if !slices.IsSortedFunc(a.listing.Entries, byDir) {
		slices.SortStableFunc(a.listing.Entries, byDir)
	}
	c.listings[i] = a.listing
	return failed != nil || !slices.Equal(before.Entries, a.listing.Entries) || !slices.Equal(before.Problems, a.listing.Problems)
}

// byDir orders the skills of one source as a walk over its directories meets
// them, whatever order the source gives them in.
func byDir(a, b *Entry) int {
	x, y := a.Dir, b.Dir
	if x == "." || y == "." {
		return cmp.Compare(len(strings.TrimPrefix(x, ".")), len(strings.TrimPrefix(y, ".")))
	}
	n := min(len(x), len(y))
	for i := range n {
		switch {
		case x[i] == y[i]:
		case x[i] == '/':
			return -1
		case y[i] == '/':
			return 1
		default:
			return cmp.Compare(x[i], y[i])
		}
	}
	return cmp.Compare(len(x), len(y))
}

func (c *Catalog) build() *Snapshot {
	var entries []*Entry
	var problems []Problem
	for i, l := range c.listings {
		entries = append(entries, l.Entries...)
		problems = append(problems, l.Problems...)
		if err := c.failed[i]; err != nil {
			problems = append(problems, Problem{Path: place(c.sources[i]), Origin: c.sources[i].Origin(), Diagnostic: unreadable(err)})
		}
	}
	return newSnapshot(entries, problems, c.filter.Load())
}

// place is where a person finds a source.
func place(s Source) string {
	if at, ok := s.(interface{ Root() string }); ok {
		return at.Root()
	}
	return s.Origin()
}

// SetFilter changes which skills are available, from the next [Catalog.Snapshot]
// on. Subscribers are told. What was never read, as skills were switched off,
// is read by the next [Catalog.Reload]. A pattern that cannot be read is an
// error, and changes nothing.
func (c *Catalog) SetFilter(f Filter) error {
	compiled, err := f.compile()
	if err != nil {
		return err
	}
	c.reload.Lock()
	defer c.reload.Unlock()
	c.filter.Store(compiled)
	c.publish(c.build())
	return nil
}

// publish makes s current and tells subscribers.
func (c *Catalog) publish(s *Snapshot) {
	old := c.current.Load()
	s.Version = old.Version + 1
	c.current.Store(s)
	c.mu.Lock()
	alive := make(map[*Entry]bool, len(s.entries))
	for _, e := range s.entries {
		alive[e] = true
	}
	for e := range c.hashers {
		if !alive[e] {
			delete(c.hashers, e)
		}
	}
	fns := make([]func(old, new *Snapshot), 0, len(c.subscribers))
	for _, id := range slices.Sorted(maps.Keys(c.subscribers)) {
		fns = append(fns, c.subscribers[id])
	}
	c.mu.Unlock()
	for _, fn := range fns {
		fn(old, s)
	}
}

// Subscribe calls fn after every change, with the state before and after it,
// until cancel is called; a call that has begun may outlast cancel. Calls come
// one at a time, to subscribers in the order they came. fn must not block and
// must not call [Catalog.Reload].
func (c *Catalog) Subscribe(fn func(old, new *Snapshot)) (cancel func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := c.nextID
	c.nextID++
	c.subscribers[id] = fn
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.subscribers, id)
	}
}

// Run keeps the catalog up to date until ctx ends: sources that can tell are
// watched, the others polled. It returns nil when ctx ends, and blocks until
// everything it started has ended.
func (c *Catalog) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	poll := func(i int, reason error) {
		c.log.Info("polling a skill source that cannot be watched", "origin", c.sources[i].Origin(), "reason", reason)
		wg.Go(func() { c.pollSource(ctx, i) })
	}
	var dirs []*Dir
	var at []int // their places among the sources
	for i, s := range c.sources {
		switch s := s.(type) {
		case *Dir:
			dirs, at = append(dirs, s), append(at, i)
		case Watcher:
			wg.Go(func() {
				if err := s.Watch(ctx, func() { _ = c.refresh(ctx, []int{i}) }); err != nil { // fails with ctx only
					poll(i, err)
				}
			})
		default:
			wg.Go(func() { c.pollSource(ctx, i) })
		}
	}
	if len(dirs) > 0 && !c.filter.Load().disabled {
		wg.Go(func() {
			watchDirs(ctx, dirs, func(which []int) {
				changed := make([]int, len(which))
				for j, i := range which {
					changed[j] = at[i]
				}
				_ = c.refresh(ctx, changed) // fails with ctx only
			}, func(i int, err error) { poll(at[i], err) })
		})
	}
	wg.Wait()
	<-ctx.Done()
	return nil
}

func (c *Catalog) pollSource(ctx context.Context, i int) {
	for !c.filter.Load().disabled {
		c.reload.Lock()
		wait := max(c.poll, 20*c.took[i])
		c.reload.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		if err := c.refresh(ctx, []int{i}); err != nil {
			return // ctx ended
		}
	}
}

// source returns the source of an entry.
func (c *Catalog) source(e *Entry) (Source, error) {
	for _, s := range c.sources {
		if s.Origin() == e.Origin {
			return s, nil
		}
	}
	return nil, fmt.Errorf("skill %s: its source %s is not in this catalog", e.Name, e.Origin)
}

// Open returns the files of a skill as they are now. The caller closes the
// bundle.
func (c *Catalog) Open(ctx context.Context, e *Entry) (*skill.Bundle, error) {
	s, err := c.source(e)
	if err != nil {
		return nil, err
	}
	b, err := s.Open(ctx, e)
	if err != nil {
		return nil, fmt.Errorf("skill %s: %w", e.Name, err)
	}
	return b, nil
}

// Read returns the skill and the bytes of its SKILL.md as they are now, which
// may be newer than the entry. The error is a [*BrokenError] where it does not
// load any more, and a [*NotFoundError] where the filter hides it now.
func (c *Catalog) Read(ctx context.Context, e *Entry) (*skill.Skill, []byte, error) {
	src, ok := readDirect(e)
	file, folder := e.file, path.Base(filepath.ToSlash(e.Path))
	if !ok {
		b, err := c.Open(ctx, e)
		if err != nil {
			return nil, nil, err
		}
		defer b.Close()
		folder = b.Folder
		if src, file, err = readSkill(b.FS, file); err != nil {
			return nil, nil, fmt.Errorf("skill %s: %w", e.Name, err)
		}
	}
	s, ds, _ := skill.ParseHead(src, true, file, folder)
	if s == nil || !ds.Loads() {
		return nil, nil, &BrokenError{Name: e.Name, Path: e.Path, Diagnostics: ds}
	}
	if f := c.filter.Load(); e.file != "" && f.selects() { // what the entry says was read from there, and may have changed
		if why := f.hides(&Entry{Name: s.Name, Version: s.Version, BindShells: s.BindShells}); why != "" {
			return nil, nil, &NotFoundError{Ref: e.Name, Reason: "it has changed, and is " + why}
		}
	}
	return s, src, nil
}

// readSkill reads the SKILL.md of a skill, in the spelling that is known or
// that it has now.
func readSkill(fsys fs.FS, known string) (src []byte, file string, err error) {
	if known != "" {
		if src, err = readFile(fsys, known); !errors.Is(err, fs.ErrNotExist) {
			return src, known, err
		}
	}
	if file, err = skill.FindFile(fsys); err != nil {
		return nil, "", err
	}
	src, err = readFile(fsys, file)
	return src, file, err
}

func readFile(fsys fs.FS, name string) ([]byte, error) {
	fi, err := fs.Stat(fsys, name)
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() { // opening a pipe would wait for a writer
		return nil, fmt.Errorf("%s is not a regular file", name)
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	buf := make([]byte, 0, min(fi.Size(), skill.MaxFileBytes)+512)
	for {
		n, err := f.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case len(buf) > skill.MaxFileBytes:
			return nil, fmt.Errorf("%s has more than %d bytes", name, skill.MaxFileBytes)
		case errors.Is(err, io.EOF):
			return buf, nil
		case err != nil:
			return nil, err
		case len(buf) == cap(buf):
			buf = slices.Grow(buf, len(buf))
		}
	}
}

// BrokenError says that a skill was listed and does not load any more.
type BrokenError struct {
	Name, Path  string
	Diagnostics skill.Diagnostics
}

func (e *BrokenError) Error() string {
	s := fmt.Sprintf("skill %s at %s does not load", e.Name, e.Path)
	for _, d := range e.Diagnostics {
		if d.Severity == skill.Error {
			return s + ": " + d.Message
		}
	}
	return s
}

// Manifest returns the files of a skill with their hashes as they are now,
// reading only files that changed since it was last asked. Files that cannot be
// read are left out.
func (c *Catalog) Manifest(ctx context.Context, e *Entry) (skill.Manifest, error) {
	m, _, err := c.manifest(ctx, e)
	return m, err
}

// WholeManifest is [Catalog.Manifest], and fails where a file cannot be read: for
// those who act on all that a digest stands for.
func (c *Catalog) WholeManifest(ctx context.Context, e *Entry) (skill.Manifest, error) {
	m, ds, err := c.manifest(ctx, e)
	if err != nil {
		return nil, err
	}
	for _, d := range ds {
		if d.Code == "file-unreadable" {
			return nil, fmt.Errorf("skill %s: %s", e.Name, strings.Replace(d.Message, " and is ignored", "", 1))
		}
	}
	return m, nil
}

func (c *Catalog) manifest(ctx context.Context, e *Entry) (skill.Manifest, skill.Diagnostics, error) {
	b, err := c.Open(ctx, e)
	if err != nil {
		return nil, nil, err
	}
	defer b.Close()
	c.mu.Lock()
	h := c.hashers[e]
	if h == nil {
		h = &skill.Hasher{}
		c.hashers[e] = h
	}
	c.mu.Unlock()
	m, ds, err := h.Manifest(b.FS)
	if err != nil {
		return nil, nil, fmt.Errorf("skill %s: %w", e.Name, err)
	}
	return m, ds, nil
}

// Resolve is [Snapshot.Get], and also finds a skill by the exact digest of its
// files, which reads all skills the first time.
func (c *Catalog) Resolve(ctx context.Context, ref string) (*Entry, error) {
	s := c.Snapshot()
	ref = strings.TrimSpace(ref)
	if s.Disabled || len(ref) != len("sha256:")+64 || ref[:7] != "sha256:" {
		return s.Get(ref)
	}
	for e := range s.All() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if m, err := c.Manifest(ctx, e); err == nil && m.Digest() == ref {
			return e, nil
		}
	}
	return nil, &NotFoundError{Ref: ref}
}
