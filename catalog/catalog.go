// Package catalog knows which skills there are: it lists sources, decides
// what every name stands for, and publishes the result as one immutable
// [Snapshot] at a time.
//
// It keeps level 1 of each skill only, never a body: instructions and files
// are read from their source when they are asked for, as they are then. It
// executes nothing and sends nothing to a model.
package catalog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path"
	"path/filepath"
	"slices"
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
	// Logger receives what goes on in the background; nil discards it.
	Logger *slog.Logger
}

// Catalog is a set of sources and what they offer. It is safe for concurrent
// use.
type Catalog struct {
	sources []Source
	filter  *filter
	poll    time.Duration
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
		if origins[s.Origin()] {
			return nil, fmt.Errorf("two skill sources have the label %s; give one another name", s.Origin())
		}
		origins[s.Origin()] = true
	}
	c := &Catalog{
		sources:     slices.Clone(sources),
		filter:      f,
		poll:        opts.Poll,
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
	c.current.Store(newSnapshot(nil, nil, f))
	return c, nil
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
	if !c.filter.disabled {
		var wg sync.WaitGroup
		gate := make(chan struct{}, 4)
		for _, i := range which {
			wg.Go(func() {
				gate <- struct{}{}
				defer func() { <-gate }()
				start := time.Now()
				l, err := c.sources[i].List(ctx)
				if c.took[i], c.failed[i] = time.Since(start), err; err == nil {
					c.listings[i] = l
				}
			})
		}
		wg.Wait()
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("read skill sources: %w", context.Cause(ctx))
		}
	}
	c.publish(c.build())
	return nil
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
	return newSnapshot(entries, problems, c.filter)
}

// place is where a person finds a source.
func place(s Source) string {
	if at, ok := s.(interface{ Root() string }); ok {
		return at.Root()
	}
	return s.Origin()
}

// publish makes s current if it differs from what is, and tells subscribers.
func (c *Catalog) publish(s *Snapshot) {
	old := c.current.Load()
	if old.Version > 0 && slices.Equal(old.entries, s.entries) && slices.Equal(old.problems, s.problems) {
		return
	}
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
	for _, fn := range c.subscribers {
		fns = append(fns, fn)
	}
	c.mu.Unlock()
	for _, fn := range fns {
		fn(old, s)
	}
}

// Subscribe calls fn after every change, with the state before and after it,
// until cancel is called. Calls come one at a time; fn must not block and must
// not call [Catalog.Reload].
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
	for i, s := range c.sources {
		wg.Go(func() {
			if w, ok := s.(Watcher); ok {
				err := w.Watch(ctx, func() {
					if err := c.refresh(ctx, []int{i}); err != nil && ctx.Err() == nil {
						c.log.Warn("reading a skill source again", "origin", s.Origin(), "error", err)
					}
				})
				if err == nil {
					return
				}
				c.log.Info("polling a skill source that cannot be watched", "origin", s.Origin(), "reason", err)
			}
			c.pollSource(ctx, i)
		})
	}
	wg.Wait()
	return nil
}

func (c *Catalog) pollSource(ctx context.Context, i int) {
	for {
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
// may be newer than the entry.
func (c *Catalog) Read(ctx context.Context, e *Entry) (*skill.Skill, []byte, error) {
	src, ok := readDirect(e)
	folder := path.Base(filepath.ToSlash(e.Path))
	if !ok {
		b, err := c.Open(ctx, e)
		if err != nil {
			return nil, nil, err
		}
		defer b.Close()
		folder = b.Folder
		if src, err = readFile(b.FS, e.file); err != nil {
			return nil, nil, fmt.Errorf("skill %s: %w", e.Name, err)
		}
	}
	s, ds, _ := skill.ParseHead(src, true, e.file, folder)
	if s == nil || !ds.Loads() {
		return nil, nil, &BrokenError{Name: e.Name, Path: e.Path, Diagnostics: ds}
	}
	return s, src, nil
}

func readFile(fsys fs.FS, name string) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size := 0
	if fi, err := f.Stat(); err == nil {
		size = int(min(fi.Size(), skill.MaxFileBytes))
	}
	buf := make([]byte, 0, size+512)
	for {
		n, err := f.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case errors.Is(err, io.EOF):
			return buf, nil
		case err != nil:
			return nil, err
		case len(buf) > skill.MaxFileBytes:
			return nil, fmt.Errorf("%s has more than %d bytes", name, skill.MaxFileBytes)
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
// reading only files that changed since it was last asked.
func (c *Catalog) Manifest(ctx context.Context, e *Entry) (skill.Manifest, error) {
	b, err := c.Open(ctx, e)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	c.mu.Lock()
	h := c.hashers[e]
	if h == nil {
		h = &skill.Hasher{}
		c.hashers[e] = h
	}
	c.mu.Unlock()
	m, _, err := h.Manifest(b.FS)
	if err != nil {
		return nil, fmt.Errorf("skill %s: %w", e.Name, err)
	}
	return m, nil
}

// Resolve is [Snapshot.Get], and also finds a skill by the exact digest of its
// files, which reads all skills the first time.
func (c *Catalog) Resolve(ctx context.Context, ref string) (*Entry, error) {
	s := c.Snapshot()
	if len(ref) != len("sha256:")+64 || ref[:7] != "sha256:" {
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
