package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/loadout-dev/loadout/internal/fileerror"
	"github.com/loadout-dev/loadout/skill"
)

// DirOptions configures a directory source. The zero value is ready to use.
type DirOptions struct {
	// MaxDepth is the maximum search depth below the root, in directories;
	// default 6. Deeper directories are skipped and reported as a problem.
	MaxDepth int
	// MaxDirs is the maximum number of directories to search; default 250,000,
	// or 50,000 if Within is set. Further directories are skipped and reported
	// as a problem.
	MaxDirs int
	// MaxEntries is the maximum number of names to read from directories;
	// default 1,000,000, or 200,000 if Within is set. Further names are skipped
	// and reported as a problem.
	MaxEntries int
	// MaxTime is the maximum duration of a scan; default 30 seconds, or 5
	// seconds if Within is set. When it has passed, the scan stops and reports
	// a problem. Directories that were not reached keep the result of the
	// previous scan. If a system call blocks, listing fails two seconds later
	// and continues in the background.
	MaxTime time.Duration
	// Within, if set, is an absolute path, such as that of a project. Symlinks
	// to directories and archives outside of it are reported as problems and
	// not followed. The check applies to the root of the source and to each
	// read. During a reload, the sources that set Within share the limits
	// above; the highest of each applies.
	Within string
	// IndexFile, if set, is the file in which the result of a scan is stored.
	// The next process then compares file stamps instead of reading the files.
	// A missing or damaged index is ignored. Missing parent directories are
	// created. [Catalog.Warm] stores the words of the skills for searches in
	// two more files, whose names start with that of IndexFile.
	IndexFile string
	// Optional means that the directory need not exist, as for default
	// locations. Otherwise, listing a missing directory fails.
	Optional bool
}

// dirSource is a source that lists the skills in a directory tree.
type dirSource struct {
	origin string
	scope  Scope
	root   string
	opts   DirOptions
	onDir  func(at string) // called after a directory was inspected; set only by tests

	guard   scanGuard
	mu      sync.Mutex // held while listing; guards the fields below
	tree    *node
	indexed bool // whether the index was read or is missing
}

var _ Watcher = (*dirSource)(nil)

// NewDir returns a source that lists the skills in a directory tree. root must
// be an absolute path and may be a symlink. Every SKILL.md in the tree is a
// skill, even below another skill. Every .skill file outside a skill is an
// archive. NewDir skips version control data, caches and installed packages. It
// also skips the directories scripts, references and assets of a skill.
//
// The source is a [Watcher]. A tree of more than 4,000 directories is polled
// instead of watched. opts may be nil. The source is safe for concurrent use and
// does not need to be closed.
func NewDir(origin string, scope Scope, root string, opts *DirOptions) Source {
	d := &dirSource{origin: origin, scope: scope, root: filepath.Clean(root)}
	if opts != nil {
		d.opts = *opts
	}
	limits := DirOptions{MaxDirs: 250_000, MaxEntries: 1_000_000, MaxTime: 30 * time.Second}
	if d.opts.Within != "" {
		limits = DirOptions{MaxDirs: 50_000, MaxEntries: 200_000, MaxTime: 5 * time.Second}
		d.opts.Within = filepath.Clean(d.opts.Within)
	}
	d.opts.MaxDepth = cmp.Or(d.opts.MaxDepth, 6)
	d.opts.MaxDirs = cmp.Or(d.opts.MaxDirs, limits.MaxDirs)
	d.opts.MaxEntries = cmp.Or(d.opts.MaxEntries, limits.MaxEntries)
	d.opts.MaxTime = cmp.Or(d.opts.MaxTime, limits.MaxTime)
	return d
}

// Origin returns the label of the source.
func (d *dirSource) Origin() string { return d.origin }

// Scope returns the scope of the skills.
func (d *dirSource) Scope() Scope { return d.scope }

// Root returns the path of the directory.
func (d *dirSource) Root() string { return d.root }

// List scans the directory tree. It reads only the files that changed since the
// last scan.
func (d *dirSource) List(ctx context.Context) (Listing, error) { return d.list(ctx, nil) }

// list is like List, but its scan also counts against the budget shared, which
// may be nil.
func (d *dirSource) list(ctx context.Context, shared *sharedBudget) (Listing, error) {
	limit := d.opts.MaxTime
	if shared != nil {
		limit = min(limit, max(0, time.Until(shared.end())))
	}
	return d.guard.run(ctx, limit, func() (Listing, error) { return d.scan(ctx, shared) })
}

func (d *dirSource) scan(ctx context.Context, shared *sharedBudget) (Listing, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	b, err := openBoundary(d.opts.Within)
	if err != nil {
		return d.unavailable(err)
	}
	defer b.close()
	fd, err := b.openDir(d.root)
	if err != nil {
		return d.unavailable(err)
	}
	defer fd.close()
	if !d.indexed {
		d.indexed = true
		d.tree = readIndex(d.opts.IndexFile, d.root, d.origin, d.scope)
	}
	s := &scan{ctx: ctx, opts: &d.opts, within: b, shared: shared, deadline: time.Now().Add(d.opts.MaxTime), onDir: d.onDir, origin: d.origin, scope: d.scope,
		head: make([]byte, fullHead), dirents: make([]byte, 32<<10), visited: make(map[fileID]bool)}
	if shared != nil && shared.end().Before(s.deadline) {
		s.deadline = shared.end()
	}
	tree, err := s.visit(fd, d.tree, filepath.Base(d.root), ".", level{})
	if err != nil {
		return Listing{}, fmt.Errorf("read skill directory: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return Listing{}, err
	}
	s.reportLimits(d.root)
	changed := d.tree == nil || s.parsed+s.settled > 0
	d.tree = tree
	if changed && d.opts.IndexFile != "" {
		if err := writeIndex(d.opts.IndexFile, d.root, tree); err != nil {
			s.problem(d.opts.IndexFile, skill.Diagnostic{Severity: skill.Warning, Code: "index-not-saved",
				Message: "cannot save the index, so the next start scans again: " + fileerror.Cause(err).Error(),
				Fix:     "free some space or grant write permission, or set LOADOUT_CACHE to another directory"})
		}
	}
	return d.listing(tree, s.problems), nil
}

// unavailable returns the listing of a source whose root cannot be opened.
func (d *dirSource) unavailable(err error) (Listing, error) {
	if out, ok := errors.AsType[*outsideError](err); ok {
		d.tree = nil
		return Listing{Problems: []Problem{{Path: d.root, Origin: d.origin, Diagnostic: outsideProblem(out)}}}, nil
	}
	if d.opts.Optional && d.absent() {
		d.tree = nil
		return Listing{}, nil
	}
	return Listing{}, fmt.Errorf("read skill directory: %w", err)
}

// absent reports whether the root does not exist or is a regular file. A
// dangling symlink does not count as absent, because it was probably meant to
// point to a directory of skills.
func (d *dirSource) absent() bool {
	fi, err := os.Lstat(d.root)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
	}
	return fi.Mode().IsRegular()
}

// listing returns the skills and problems of the tree in path order.
func (d *dirSource) listing(tree *node, problems []Problem) Listing {
	l := Listing{Problems: problems}
	take := func(f *found) {
		l.Problems = append(l.Problems, f.problems...)
		if f.entry != nil {
			l.Entries = append(l.Entries, f.entry)
		}
	}
	var visit func(n *node)
	visit = func(n *node) {
		if n == nil {
			return
		}
		l.Problems = append(l.Problems, n.other()...)
		if n.skill != nil {
			take(n.skill)
		}
		packs := n.packs()
		for _, sub := range n.subs {
			for len(packs) > 0 && packs[0].file < sub.name {
				take(packs[0])
				packs = packs[1:]
			}
			visit(sub)
		}
		for _, p := range packs {
			take(p)
		}
	}
	visit(tree)
	for i := range l.Problems {
		l.Problems[i].Origin = d.origin
	}
	return l
}

// Open opens a skill's directory or archive.
func (d *dirSource) Open(_ context.Context, e *Entry) (*skill.Bundle, error) {
	b, err := openBoundary(d.opts.Within)
	if err != nil {
		return nil, fmt.Errorf("open skill: %w", err)
	}
	defer b.close()
	if e.archive {
		return openArchive(e.Path, b)
	}
	root, err := b.openRoot(e.Path)
	if err != nil {
		return nil, fmt.Errorf("open skill directory: %w", err)
	}
	return skill.NewBundle(root.FS(), filepath.Base(e.Path), root.Close), nil
}

// openArchive opens the skill archive with the path file. If b is not nil, the
// archive must be inside that boundary. Closing the bundle closes the file.
func openArchive(file string, b *boundary) (*skill.Bundle, error) {
	stat, open, name := os.Stat, os.Open, file
	if b != nil {
		rel, err := b.resolve(file)
		if err != nil {
			return nil, fmt.Errorf("open skill archive: %w", err)
		}
		stat, open, name = b.root.Stat, b.root.Open, rel
	}
	fi, err := stat(name)
	if err != nil {
		return nil, fmt.Errorf("open skill archive: %w", err)
	}
	if !fi.Mode().IsRegular() { // opening a pipe would block
		return nil, fmt.Errorf("open skill archive %s: not a regular file", file)
	}
	f, err := open(name)
	if err != nil {
		return nil, fmt.Errorf("open skill archive: %w", err)
	}
	if fi, err = f.Stat(); err != nil {
		f.Close()
		return nil, fmt.Errorf("open skill archive: %w", err)
	}
	z, err := skill.OpenZIP(f, fi.Size(), file, skill.Limits{AllowFolderMismatch: true})
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("open %s: %w", file, err)
	}
	return skill.NewBundle(z.FS, z.Folder, f.Close), nil
}

// readPack reads the frontmatter from the archive that f describes. If the
// archive is unchanged, it returns f.
func (s *scan) readPack(d *dirfd, f *found, rel string) *found {
	st, _, err := s.stat(d, f.file)
	if err == nil && st == f.stamp && f.seen != 0 && !f.stamp.racy(f.seen) {
		return f
	}
	fresh := readArchive(d.path+"/"+f.file, s.within)
	if fresh.seen != 0 || !slices.Equal(fresh.problems, f.problems) {
		s.parsed++
	}
	fresh.file, fresh.stamp = f.file, st
	if e := fresh.entry; e != nil {
		e.Origin, e.Scope, e.Dir, e.id = s.origin, s.scope, path.Join(rel, f.file), st.id
		e.change = st.hash(fresh.seen)
	}
	fresh.reuseEntry(f)
	return fresh
}

// readArchive reads the frontmatter from an archive. If within is not nil, the
// archive must be inside that boundary.
func readArchive(file string, within *boundary) *found {
	f := &found{seen: time.Now().UnixNano()}
	b, err := openArchive(file, within)
	if err != nil {
		if refused, ok := errors.AsType[*skill.RefusedError](err); ok {
			for _, r := range refused.Refusals {
				f.problems = append(f.problems, Problem{Path: file, Diagnostic: skill.Diagnostic{Severity: skill.Error, Code: r.Code,
					Message: r.String(), Fix: "pack the skill again"}})
			}
			return f
		}
		f.seen, f.problems = 0, []Problem{{Path: file, Diagnostic: unreadable(err)}}
		return f
	}
	defer b.Close()
	src, name, err := readSkill(b.FS, "")
	if err != nil {
		f.problems = []Problem{{Path: file, Diagnostic: unreadable(err)}}
		return f
	}
	sk, ds, _ := skill.ParseHead(src, true, name, b.Folder)
	for _, diag := range ds.Problems() {
		f.problems = append(f.problems, Problem{Path: file, Diagnostic: diag})
	}
	if sk != nil && ds.Loads() {
		f.entry = newEntry(sk, ds)
		f.entry.Path, f.entry.archive, f.entry.file = file, true, name
	}
	return f
}
