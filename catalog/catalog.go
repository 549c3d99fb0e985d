// Package catalog finds the available skills. It lists sources, resolves names
// to skills, and publishes the result as an immutable [Snapshot].
//
// A catalog stores only the frontmatter of each skill. Instructions and files
// are read from their source on demand, in their current version. The package
// executes nothing and sends nothing to a model. Start with [Catalog] and
// [Source].
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

	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/skill"
)

// Options configures a catalog. The zero value is ready to use.
type Options struct {
	Filter Filter
	// Poll is the interval at which sources that cannot be watched are read
	// again; default 1.5 seconds. A source that is slow to read is polled less
	// often: the interval is at least twenty times the duration of a read.
	Poll time.Duration
	// Wait is how long a reload waits for slow sources; 0 means until all are
	// read. A reload then publishes what was read, with a problem for each
	// source that is still being read. The skills of these sources are
	// published as soon as they are found, even after the reload's context is
	// done.
	Wait time.Duration
	// Search, if set, ranks skills instead of the catalog's own index if there
	// are more than 200 skills. It returns up to limit matches, best first.
	// Names of skills that the catalog does not show are ignored. Search must
	// be safe for concurrent use. [Catalog.Search] returns its errors.
	Search func(ctx context.Context, query string, limit int) ([]Match, error)
	// Confirm, if set, decides whether a project's skill is available. If it
	// returns a reason, the skill is pending, which means that it is not
	// available. References then resolve to the skill of a lower scope that it
	// would replace, and loading that skill reports the reason as a problem.
	// manifest returns the files of the project's skill. The catalog calls
	// Confirm at each publication. While [Catalog.Run] is running, the catalog
	// also calls it once per Poll for skills that are pending or replace
	// another. Confirm must be safe for concurrent use and must not call
	// methods of the catalog.
	Confirm func(r ProjectSkill, manifest func() (skill.Manifest, error)) (reason string)
	// Logger receives log messages from background work; nil discards them.
	Logger *slog.Logger
}

// Catalog combines the skills of several sources. It is safe for concurrent
// use. Use [New] to create a Catalog. It does not need to be closed.
type Catalog struct {
	sources atomic.Pointer[sourceSet]
	filter  atomic.Pointer[filter]
	poll    time.Duration
	wait    time.Duration
	rank    func(ctx context.Context, query string, limit int) ([]Match, error)
	confirm func(ProjectSkill, func() (skill.Manifest, error)) string // may be nil
	log     *slog.Logger
	current atomic.Pointer[Snapshot]

	reload sync.Mutex // held during a reload; locked before state

	state   sync.Mutex // held while building a snapshot, and while sources is replaced; guards started and the fields of each sourceState
	started bool       // whether a reload has begun

	mu          sync.Mutex // guards the fields below; never held during callbacks
	subscribers map[int]func(old, new *Snapshot)
	nextID      int
	hashers     map[*Entry]*skill.Hasher
	digests     map[*Entry]knownDigest

	index searchIndex
}

// New returns a catalog of sources, which are in order of preference within
// each scope. opts may be nil. The catalog reads nothing until [Catalog.Reload]
// is called. New returns an error if a filter pattern is invalid, or if the
// label of a source is invalid or not unique.
func New(sources []Source, opts *Options) (*Catalog, error) {
	if opts == nil {
		opts = &Options{}
	}
	f, err := opts.Filter.compile()
	if err != nil {
		return nil, err
	}
	if err := checkLabels(sources); err != nil {
		return nil, err
	}
	c := &Catalog{
		poll:        opts.Poll,
		wait:        opts.Wait,
		rank:        opts.Search,
		confirm:     opts.Confirm,
		log:         opts.Logger,
		subscribers: map[int]func(old, new *Snapshot){},
		hashers:     map[*Entry]*skill.Hasher{},
		digests:     map[*Entry]knownDigest{},
	}
	if c.poll == 0 {
		c.poll = 1500 * time.Millisecond
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	c.filter.Store(f)
	c.sources.Store(newSourceSet(sources, nil))
	c.current.Store(newSnapshot(nil, nil, f, true, nil))
	return c, nil
}

// Snapshot returns the current snapshot, which is empty before the first
// reload. It never returns nil and does not block.
func (c *Catalog) Snapshot() *Snapshot { return c.current.Load() }

// Reload reads all sources, up to four at a time unless [Options.Wait] is set.
// At any time, it reads at most one source with [DirOptions.Within] per CPU. It
// publishes a new snapshot if anything changed or none was published yet. If a
// source cannot be read, its previous skills are kept and the snapshot contains
// a problem. If skills are disabled, no source is read. Concurrent calls are
// serialized. Reload returns an error only if ctx is done. The error wraps the
// cause. In that case it publishes nothing, unless [Options.Wait] is set and a
// snapshot was published before; then it publishes what it has read.
func (c *Catalog) Reload(ctx context.Context) error {
	return c.refresh(ctx, c.sources.Load().all)
}

// reuse replaces entries with equal ones from old. Both slices are sorted by
// directory.
func reuse(old, entries []*Entry) {
	for i, j := 0, 0; i < len(old) && j < len(entries); {
		switch c := byDir(old[i], entries[j]); {
		case c < 0:
			i++
		case c > 0:
			j++
		default:
			if old[i].equal(entries[j]) {
				entries[j] = old[i]
			}
			i, j = i+1, j+1
		}
	}
}

// byDir compares skills of a source by directory, in the order of a directory
// tree walk.
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

// build returns a snapshot of the latest listings. It must be called with
// c.state held.
func (c *Catalog) build() *Snapshot {
	var layers []*Layer
	var problems []Problem
	keep := true
	for _, s := range c.sources.Load().all {
		layers = append(layers, s.listing.layers...)
		problems = append(problems, s.listing.problems...)
		keep = keep && !s.listing.isShared
		if s.failed != nil {
			problems = append(problems, Problem{Path: sourcePath(s.source), Origin: s.source.Origin(), Diagnostic: unreadable(s.failed)})
		}
		if s.duration == 0 && !c.filter.Load().disabled {
			problems = append(problems, Problem{Path: sourcePath(s.source), Origin: s.source.Origin(), Diagnostic: s.unreadProblem(c.wait)})
		}
	}
	var confirm func(ProjectSkill) string
	if c.confirm != nil {
		confirm = c.confirmProjectSkill
	}
	return newSnapshot(layers, problems, c.filter.Load(), keep, confirm)
}

// sourcePath returns the path of a source for messages, or its label if it has
// no path.
func sourcePath(s Source) string {
	if at, ok := s.(interface{ Root() string }); ok {
		return at.Root()
	}
	return s.Origin()
}

// SetFilter replaces the filter, publishes a new snapshot and notifies
// subscribers. It does not wait for a reload in progress. If skills were disabled, the
// next [Catalog.Reload] reads the sources that were never read. If a pattern is
// invalid, SetFilter returns an error and changes nothing.
func (c *Catalog) SetFilter(f Filter) error {
	compiled, err := f.compile()
	if err != nil {
		return err
	}
	c.state.Lock()
	defer c.state.Unlock()
	c.filter.Store(compiled)
	c.publish(c.build())
	return nil
}

// publish makes s the current snapshot and notifies subscribers. It must be
// called with c.state held.
func (c *Catalog) publish(s *Snapshot) {
	old := c.current.Load()
	s.Version = old.Version + 1
	c.current.Store(s)
	c.mu.Lock()
	for e := range c.hashers {
		if s.byKey(e.Key()) != e {
			delete(c.hashers, e)
		}
	}
	for e := range c.digests {
		if s.byKey(e.Key()) != e {
			delete(c.digests, e)
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

// Subscribe calls fn with the old and the new snapshot after each publication,
// until cancel is called. A call in progress may continue after cancel returns.
// Calls never overlap, and subscribers are called in the order of their
// subscriptions. fn must not block and must not call [Catalog.Reload] or
// [Catalog.SetFilter]. cancel may be called more than once.
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

// Run keeps the catalog up to date until ctx is done. It watches the sources
// that support watching and polls the others. Call [Catalog.Reload] first,
// because Run may not read a source until it changes. Run returns nil once ctx
// is done and all its goroutines have stopped.
func (c *Catalog) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	if c.confirm != nil {
		wg.Go(func() { c.recheckProjectSkills(ctx) })
	}
	for replaced := false; ctx.Err() == nil; replaced = true {
		c.watch(ctx, c.sources.Load(), replaced)
	}
	wg.Wait()
	return nil
}

// watch keeps the skills of sources up to date until ctx is done or the sources
// are replaced. again means that set replaced an earlier set.
func (c *Catalog) watch(ctx context.Context, set *sourceSet, again bool) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	poll := func(s *sourceState, reason error) {
		c.log.Info("polling a skill source that cannot be watched", "origin", s.source.Origin(), "reason", reason)
		wg.Go(func() { c.pollSource(ctx, s) })
	}
	var dirs []*dirSource
	var states []*sourceState // of dirs
	for _, s := range set.all {
		switch src := s.source.(type) {
		case *dirSource:
			dirs, states = append(dirs, src), append(states, s)
		case Watcher:
			refresh := func() { _ = c.refresh(ctx, []*sourceState{s}) } // fails only if ctx is done
			wg.Go(func() {
				if again { // it may have changed while it was not watched
					refresh()
				}
				if err := src.Watch(ctx, refresh); err != nil {
					poll(s, err)
				}
			})
		default:
			wg.Go(func() { c.pollSource(ctx, s) })
		}
	}
	if len(dirs) > 0 && !c.filter.Load().disabled {
		wg.Go(func() {
			watchDirs(ctx, dirs, func(which []int) {
				changed := make([]*sourceState, len(which))
				for j, i := range which {
					changed[j] = states[i]
				}
				_ = c.refresh(ctx, changed) // fails only if ctx is done
			}, func(i int, err error) { poll(states[i], err) })
		})
	}
	select {
	case <-ctx.Done():
	case <-set.replaced:
	}
	cancel()
	wg.Wait()
}

func (c *Catalog) pollSource(ctx context.Context, s *sourceState) {
	for !c.filter.Load().disabled {
		c.state.Lock()
		wait := max(c.poll, 20*s.duration)
		c.state.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		if err := c.refresh(ctx, []*sourceState{s}); err != nil {
			return // ctx is done
		}
	}
}

// source returns the source that lists e.
func (c *Catalog) source(e *Entry) (Source, error) {
	for _, s := range c.sources.Load().all {
		if s.source.Origin() == e.Origin {
			return s.source, nil
		}
	}
	return nil, fmt.Errorf("skill %s: source %s is not in this catalog", e.Name, e.Origin)
}

// Open returns the current files of a skill. The caller must close the bundle.
// Open returns an error if the skill's source is not in the catalog. It also
// returns any error from [Source.Open]. If the skill no longer exists, the
// error of Open or of reading its SKILL.md wraps [fs.ErrNotExist].
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

// Read returns the current skill and the content of its SKILL.md, which may be
// newer than the entry. It reads them from the source in each call. As with
// [skill.ParseHead], the skill aliases the content, which must not be modified,
// and the instructions are not checked.
//
// Read returns a [*BrokenError] if the skill no longer loads, and a
// [*NotFoundError] if the filter now hides it. It also returns an error if
// SKILL.md exceeds 10 MiB, and any error from [Catalog.Open].
func (c *Catalog) Read(ctx context.Context, e *Entry) (*skill.Skill, []byte, error) {
	l, err := c.load(ctx, e, false)
	if err != nil {
		return nil, nil, err
	}
	return l.Skill, l.Source, nil
}

// load implements Read. If list is set, it also lists the files.
func (c *Catalog) load(ctx context.Context, e *Entry, list bool) (*Loaded, error) {
	l := &Loaded{Entry: e}
	read, ok := c.readDirect(e, list)
	l.Source = read.source
	file, folder := e.file, path.Base(filepath.ToSlash(e.Path))
	if !ok {
		b, err := c.Open(ctx, e)
		if err != nil {
			return nil, err
		}
		defer b.Close()
		folder = b.Folder
		if l.Source, file, err = readSkill(b.FS, file); err != nil {
			return nil, fmt.Errorf("skill %s: %w", e.Name, err)
		}
	}
	s, ds, _ := skill.ParseHead(l.Source, true, file, folder)
	if s == nil || !ds.Loads() {
		return nil, &BrokenError{Name: e.Name, Path: e.Path, Diagnostics: ds}
	}
	if e.Server != "" {
		ignoreRequests(s)
	}
	if f := c.filter.Load(); e.file != "" && f.selects() { // the file may have changed since the entry was read
		if why := f.reason(&Entry{Name: s.Name, Version: s.Version, BindShells: s.BindShells}); why != "" {
			return nil, &NotFoundError{Ref: e.Name, Reason: "changed, and now " + why}
		}
	}
	l.Skill = s
	switch {
	case read.listed:
		l.Files = read.files
	case list:
		l.Files, l.FilesError = c.ListFiles(ctx, e)
	}
	return l, nil
}

// readSkill reads the SKILL.md of a skill. name is the expected file name. If
// it is empty or no such file exists, readSkill accepts any spelling of
// SKILL.md.
func readSkill(fsys fs.FS, name string) (src []byte, file string, err error) {
	if name != "" {
		if src, err = readFile(fsys, name); !errors.Is(err, fs.ErrNotExist) {
			return src, name, err
		}
	}
	if file, err = skillfile.Find(fsys); err != nil {
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
	if !fi.Mode().IsRegular() { // opening a pipe would block
		return nil, fmt.Errorf("not a regular file: %s", name)
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	buf := make([]byte, 0, min(fi.Size(), skillfile.MaxFileBytes)+512)
	for {
		n, err := f.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case len(buf) > skillfile.MaxFileBytes:
			return nil, fmt.Errorf("%s too large (limit %d bytes)", name, skillfile.MaxFileBytes)
		case errors.Is(err, io.EOF):
			return buf, nil
		case err != nil:
			return nil, err
		case len(buf) == cap(buf):
			buf = slices.Grow(buf, len(buf))
		}
	}
}

// BrokenError is returned by [Catalog.Read] for a listed skill that no longer
// loads.
type BrokenError struct {
	Name, Path  string            // as in [Entry]
	Diagnostics skill.Diagnostics // all findings, with at least one error
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

// Manifest returns the current files of a skill with their hashes. It hashes
// only the files that changed since the last call and omits unreadable files.
// The error wraps [skill.ErrTooLarge] if the skill exceeds a limit. Manifest
// also returns any error from [Catalog.Open] or from listing the files.
func (c *Catalog) Manifest(ctx context.Context, e *Entry) (skill.Manifest, error) {
	m, _, err := c.manifest(ctx, e)
	return m, err
}

// CompleteManifest is like [Catalog.Manifest], but fails if a file cannot be
// read. Use it if the digest must cover all files.
func (c *Catalog) CompleteManifest(ctx context.Context, e *Entry) (skill.Manifest, error) {
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

// Resolve is like [Snapshot.Get], but also accepts the digest of a skill's
// files, as in [skill.Manifest.Digest]. A lookup by digest hashes the files of
// all visible skills until one matches; later lookups use cached hashes. For a
// reference "origin/path" or "origin/URI" of a [ServerSource], Resolve also asks
// the server for skills that it did not list. Resolve returns a
// [*NotFoundError], or the context's error if ctx is done.
func (c *Catalog) Resolve(ctx context.Context, ref string) (*Entry, error) {
	s := c.Snapshot()
	ref = strings.TrimSpace(ref)
	if s.Disabled || len(ref) != len("sha256:")+64 || ref[:7] != "sha256:" {
		e, err := s.Get(ref)
		if err != nil && !s.Disabled {
			return c.findOnServer(ctx, ref, err)
		}
		return e, err
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
