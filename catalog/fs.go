package catalog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/skill"
)

// fsSource is a source that lists the skills in an [fs.FS].
type fsSource struct {
	origin string
	scope  Scope
	fsys   fs.FS
	limits DirOptions

	guard scanGuard
	mu    sync.Mutex          // held while listing; guards the fields below
	known map[string]*fsSkill // skills by directory, from the last listing
}

// fsSkill is a listed skill with the hash of the bytes that it was parsed from.
type fsSkill struct {
	sum      string
	entry    *Entry
	problems []Problem
}

var _ Watcher = (*fsSource)(nil)

// NewFS returns a source that lists the skills in a file system, such as
// embedded skills or files in memory. Every directory with a SKILL.md is a
// skill, except those that [NewDir] skips. A listing stops and reports a
// problem after 200,000 files and directories or 30 seconds, and does not go
// deeper than 32 directories. If fsys blocks, listing fails two seconds after
// the limit and continues in the background. The file system is not watched:
// only [Catalog.Reload] reads the files again. fsys must be safe for concurrent
// use. The source is also safe for concurrent use, and does not need to be
// closed.
func NewFS(origin string, scope Scope, fsys fs.FS) Source {
	return &fsSource{origin: origin, scope: scope, fsys: fsys, limits: DirOptions{MaxDepth: 32, MaxEntries: 200_000, MaxTime: 30 * time.Second}}
}

// Origin returns the label of the source.
func (f *fsSource) Origin() string { return f.origin }

// Scope returns the scope of the skills.
func (f *fsSource) Scope() Scope { return f.scope }

// List reads all skills in the file system.
func (f *fsSource) List(ctx context.Context) (Listing, error) {
	return f.guard.run(ctx, f.limits.MaxTime, func() (Listing, error) { return f.scan(ctx) })
}

func (f *fsSource) scan(ctx context.Context) (Listing, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w := fsWalk{fsSource: f, known: map[string]*fsSkill{}, inside: map[string]bool{}, deadline: time.Now().Add(f.limits.MaxTime)}
	err := fs.WalkDir(f.fsys, ".", func(p string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return w.visit(p, d, err)
	})
	if err != nil {
		return Listing{}, fmt.Errorf("read skills from %s: %w", f.origin, err)
	}
	f.known = w.known
	return w.listing, nil
}

// fsWalk holds the state of a single walk of the file system.
type fsWalk struct {
	*fsSource
	listing Listing
	known   map[string]*fsSkill
	inside  map[string]bool // directories that belong to a skill

	deadline time.Time
	names    int // files and directories visited
	tooDeep  bool
}

func (w *fsWalk) visit(p string, d fs.DirEntry, err error) error {
	switch {
	case err != nil && p == ".":
		return err
	case w.stop(p):
		return fs.SkipAll
	case err != nil:
		w.problem(p, unreadable(err))
		return fs.SkipDir
	case !d.IsDir():
		return nil
	case p != "." && (isSkippedDir(d.Name()) || w.inside[path.Dir(p)] && isReservedDir(d.Name())):
		return fs.SkipDir
	case strings.Count(p, "/") >= w.limits.MaxDepth:
		if !w.tooDeep {
			w.tooDeep = true
			w.problem(p, depthLimit(w.limits.MaxDepth, "this one is the first"))
		}
		return fs.SkipDir
	}
	w.inside[p] = w.skill(p) || w.inside[path.Dir(p)]
	return nil
}

// stop reports whether the walk reached a limit at p.
func (w *fsWalk) stop(p string) bool {
	limit := stopTime
	if w.names++; w.names > w.limits.MaxEntries {
		limit = stopNames
	} else if !time.Now().After(w.deadline) {
		return false
	}
	w.problem(".", stop{limit: limit, at: w.path(p)}.diagnostic(&w.limits))
	return true
}

// skill reads the skill in dir. It reports whether dir contains one.
func (w *fsWalk) skill(dir string) bool {
	b, err := w.open(dir)
	if err != nil {
		return false // the walk reports the error
	}
	src, file, err := readSkill(b.FS, "")
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false
	case err != nil:
		w.problem(dir, unreadable(err))
		return true
	}
	sum := skillfile.Hash(src)
	s := w.fsSource.known[dir]
	if s == nil || s.sum != sum {
		s = w.parse(src, file, dir, b.Folder)
		s.sum = sum
	}
	w.known[dir] = s
	w.listing.Problems = append(w.listing.Problems, s.problems...)
	if s.entry != nil {
		w.listing.Entries = append(w.listing.Entries, s.entry)
	}
	return true
}

func (w *fsWalk) problem(dir string, d skill.Diagnostic) {
	p := Problem{Path: w.path(dir), Origin: w.origin, Diagnostic: d}
	if !slices.Contains(w.listing.Problems, p) { // a directory may fail twice with the same error
		w.listing.Problems = append(w.listing.Problems, p)
	}
}

func (f *fsSource) parse(src []byte, file, dir, folder string) *fsSkill {
	out := &fsSkill{}
	s, ds, _ := skill.ParseHead(src, true, file, folder)
	for _, d := range ds.Problems() {
		out.problems = append(out.problems, Problem{Path: f.path(dir), Origin: f.origin, Diagnostic: d})
	}
	if s != nil && ds.Loads() {
		e := newEntry(s, ds)
		e.Origin, e.Scope, e.Dir, e.Path, e.file = f.origin, f.scope, dir, f.path(dir), file
		out.entry = e
	}
	return out
}

func (f *fsSource) path(dir string) string { return f.origin + ":" + dir }

// Watch waits until ctx is done, because the file system does not change.
func (f *fsSource) Watch(ctx context.Context, _ func()) error {
	<-ctx.Done()
	return nil
}

// Open returns the files of the skill.
func (f *fsSource) Open(_ context.Context, e *Entry) (*skill.Bundle, error) { return f.open(e.Dir) }

func (f *fsSource) open(dir string) (*skill.Bundle, error) {
	sub, err := fs.Sub(f.fsys, dir)
	if err != nil {
		return nil, err
	}
	folder := path.Base(dir)
	if dir == "." {
		folder = ""
	}
	return skill.NewBundle(sub, folder, nil), nil
}
