package overlay

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/internal/steering"
)

// Limits on the changes made by an untrusted command.
const (
	maxChanges = 1_000_000
	maxDepth   = 100
)

// errTooMany is returned if a command changed too many files.
var errTooMany = fmt.Errorf("too many changes (limit %d)", maxChanges)

// Set is the set of changes between two directories. It is not safe for
// concurrent use. The caller must close it.
type Set struct {
	// List holds the changes in the order in which they can be applied.
	List []Change

	lower, upper *os.Root
	unlinked     map[inode]bool // hard-linked files of which Apply removed a name
}

// Read returns the changes to the lower directory that the upper directory
// contains. The caller must ensure that no process changes the upper directory
// anymore. Read refuses the change to a file that another program changed or
// moved in the lower directory after the time start, so that the other
// program's change is not overwritten.
func Read(lower, upper string, start time.Time) (*Set, error) {
	s := &Set{}
	var err error
	if s.lower, err = os.OpenRoot(lower); err == nil {
		s.upper, err = os.OpenRoot(upper)
	}
	if err == nil {
		r := &comparer{set: s, top: newTop(lower), since: start, now: time.Now()}
		err = r.readRoot()
	}
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("read changes of %s: %w", lower, err)
	}
	return s, nil
}

// Close closes both directories.
func (s *Set) Close() {
	if s.lower != nil {
		s.lower.Close()
	}
	if s.upper != nil {
		s.upper.Close()
	}
}

// comparer compares the upper and the lower directory, and adds the changes to
// a set.
type comparer struct {
	set        *Set
	top        top
	since, now time.Time
}

// pair is a directory in the upper directory and its counterpart in the lower
// one.
type pair struct {
	path  string // "" for the top
	at    steering.Position
	upper *os.Root
	lower *os.Root // nil if the lower directory has no such directory
	depth int
	// hides is set if the entries of lower are deleted unless they are in
	// upper.
	hides bool
	moved bool // another program moved lower, or a directory above
}

func (r *comparer) readRoot() error {
	top := &pair{at: r.top.at, upper: r.set.upper, lower: r.set.lower}
	names, err := readNames(top.upper)
	if err != nil || len(names) == 0 {
		return err
	}
	if err := r.readDir(top); err != nil {
		return err
	}
	r.holdAliases()
	return nil
}

func (p *pair) child(name string) string { return path.Join(p.path, name) }

func (r *comparer) add(c Change) error {
	if len(r.set.List) >= maxChanges {
		return errTooMany
	}
	r.set.List = append(r.set.List, c)
	return nil
}

// refuse adds a change that is never applied.
func (r *comparer) refuse(p string, op Op, mode fs.FileMode, reason string) error {
	return r.add(Change{Path: p, Op: op, Mode: mode, Refused: reason})
}

// readDir adds the changes in a directory: first the deletions of hidden
// entries, then the other changes in order of name.
func (r *comparer) readDir(p *pair) error {
	names, err := readNames(p.upper)
	if err != nil {
		return err
	}
	var old []string
	if p.lower != nil {
		if old, err = readNames(p.lower); err != nil {
			return r.refuse(dotIfEmpty(p.path), Modify, fs.ModeDir, unreadable)
		}
	}
	p.at = r.top.position(p.at, p.path, old, slices.Concat(names, old))
	if p.hides && p.lower != nil && !p.moved {
		if err := r.deleteOthers(p, old, names); err != nil {
			return err
		}
	}
	for _, name := range names {
		if err := r.readEntry(p, name); err != nil {
			return err
		}
	}
	return nil
}

// deleteOthers adds the deletions of the entries that an opaque directory
// hides.
func (r *comparer) deleteOthers(p *pair, old, names []string) error {
	for _, name := range old {
		if !slices.Contains(names, name) {
			if _, err := r.deleteEntry(p.lower, name, p.child(name), p.at.Child(name), p.depth); err != nil {
				return err
			}
		}
	}
	return nil
}

// readEntry compares an entry of the upper directory with the lower one and records
// its changes.
func (r *comparer) readEntry(p *pair, name string) error {
	is, err := p.upper.Lstat(name)
	if err != nil {
		return err
	}
	var was fs.FileInfo
	if p.lower != nil {
		if was, err = p.lower.Lstat(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return r.refuse(p.child(name), Modify, 0, unreadable)
		}
	}
	at, full := p.at.Child(name), p.child(name)
	if isWhiteout(is) {
		switch {
		case was == nil:
			return nil
		case p.moved:
			return r.refuse(full, Delete, was.Mode(), changedNow)
		}
		_, err := r.deleteEntry(p.lower, name, full, at, p.depth)
		return err
	}
	if was == nil && (!utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl)) {
		return r.refuse(full, Create, is.Mode(), hostileName)
	}
	if was != nil && was.Mode().Type() != is.Mode().Type() {
		if p.moved {
			return r.refuse(full, Modify, is.Mode(), changedNow)
		}
		if _, err := r.deleteEntry(p.lower, name, full, at, p.depth); err != nil {
			return err
		}
		was = nil
	}
	switch {
	case is.IsDir():
		return r.readSubdir(p, name, is, was, at)
	case is.Mode().IsRegular():
		return r.readFile(p, name, is, was, at)
	case is.Mode().Type() == fs.ModeSymlink:
		return r.readSymlink(p, name, is, was, at)
	}
	return r.refuse(full, Create, is.Mode(), special)
}

func (r *comparer) readSubdir(p *pair, name string, is, was fs.FileInfo, at steering.Position) error {
	full := p.child(name)
	if p.depth >= maxDepth {
		return r.refuse(full, Create, is.Mode(), tooDeep)
	}
	sub := &pair{path: full, at: at, depth: p.depth + 1}
	c := Change{Path: full, Op: Create, Mode: fs.ModeDir | is.Mode().Perm(), Class: at.DirClass(), Reader: at.Reader(), was: was}
	if c.Class != steering.Steering {
		c.Reader = ""
	}
	if was != nil {
		c.Op = Mode
	}
	changed := was == nil || was.Mode().Perm() != is.Mode().Perm()
	late := was != nil && c.Mode&0o700 != 0o700 // entries must change first
	if changed && !late {
		if err := r.add(c); err != nil {
			return err
		}
	}
	var err error
	if is.Mode().Perm()&0o700 != 0o700 { // a command may remove its own permissions
		if err := p.upper.Chmod(name, is.Mode().Perm()|0o700); err != nil {
			return err
		}
	}
	if sub.upper, err = openSubdir(p.upper, name); err != nil {
		return err
	}
	defer sub.upper.Close()
	if was != nil {
		if sub.lower, err = openSubdir(p.lower, name); err != nil {
			return r.refuse(full, Modify, is.Mode(), unreadable)
		}
		defer sub.lower.Close()
		sub.moved = p.moved || r.isMoved(was)
		if sub.hides, err = isOpaque(sub.upper); err != nil {
			return err
		}
	}
	if err := r.readDir(sub); err != nil {
		return err
	}
	if changed && (late || was == nil && c.Mode&0o700 != 0o700) {
		c.Op = Mode
		return r.add(c)
	}
	return nil
}

func (r *comparer) readFile(p *pair, name string, is, was fs.FileInfo, at steering.Position) error {
	full := p.child(name)
	c := Change{Path: full, Op: Create, Mode: is.Mode().Perm(), Class: at.Class(), Reader: at.Reader(), was: was}
	if was != nil {
		same, err := sameContent(p, name, is, was)
		switch {
		case err != nil:
			return r.refuse(full, Modify, is.Mode(), unreadable)
		case same && was.Mode().Perm() == is.Mode().Perm():
			return nil // only times changed
		case same:
			c.Op = Mode
		default:
			c.Op = Modify
		}
		if p.moved || r.isNewer(was) {
			return r.refuse(full, c.Op, is.Mode(), changedNow)
		}
	}
	if c.Class == steering.Steering && was == nil && p.lower == nil && isNewRepository(p, name) {
		c.Class, c.Reader = steering.Ordinary, ""
	}
	return r.add(c)
}

// isNewRepository reports whether the entry is the configuration of a Git
// directory and contains nothing but what git init and git clone write. The
// caller must ensure that the command created the directory.
func isNewRepository(p *pair, name string) bool {
	if name != "config" || !p.at.InGit() {
		return false
	}
	f, err := openUpper(p.upper, name)
	if err != nil {
		return false
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, steering.MaxGitConfig+1))
	return err == nil && steering.IsPlainGitConfig(data)
}

func (r *comparer) readSymlink(p *pair, name string, is, was fs.FileInfo, at steering.Position) error {
	full := p.child(name)
	target, err := p.upper.Readlink(name)
	if err != nil {
		return err
	}
	c := Change{Path: full, Op: Create, Mode: fs.ModeSymlink | 0o777, Class: at.Class(), Reader: at.Reader(), was: was}
	if was != nil {
		if old, err := p.lower.Readlink(name); err == nil && old == target {
			return nil
		}
		c.Op = Modify
		if p.moved || r.isNewer(was) {
			return r.refuse(full, c.Op, is.Mode(), changedNow)
		}
	}
	switch to, ok := resolve(p.path, target); {
	case c.Class == steering.Dependency: // environments have symlinks to interpreters
	case !ok:
		return r.refuse(full, c.Op, is.Mode(), leadsOut)
	case c.Class == steering.Ordinary && (addsSkills(full) || isInDependencies(to)):
		c.Class, c.Reader = steering.Steering, "coding agents"
	}
	return r.add(c)
}

// fate describes whether a deletion is applied.
type fate int

const (
	deleteNow     fate = iota // no agreement is needed
	deleteHeld                // the user must agree
	deleteRefused             // refused
)

// deleteEntry adds the deletion of an entry of a lower directory and of
// everything below it.
func (r *comparer) deleteEntry(in *os.Root, name, full string, at steering.Position, depth int) (fate, error) {
	was, err := in.Lstat(name)
	if err != nil {
		return deleteRefused, r.refuse(full, Delete, 0, unreadable)
	}
	c := Change{Path: full, Op: Delete, Mode: was.Mode(), Class: at.Class(), Reader: at.Reader(), was: was}
	switch {
	case !was.IsDir() && r.isNewer(was):
		return deleteRefused, r.refuse(full, Delete, was.Mode(), changedNow)
	case !was.IsDir() && c.Class == steering.Steering:
		return deleteHeld, r.add(c)
	case !was.IsDir():
		return deleteNow, r.add(c)
	case r.isMoved(was):
		return deleteRefused, r.refuse(full, Delete, was.Mode(), changedNow)
	case depth >= maxDepth:
		return deleteRefused, r.refuse(full, Delete, was.Mode(), tooDeep)
	}
	all, err := r.deleteBelow(in, name, full, at, depth)
	if err != nil {
		return deleteRefused, err
	}
	switch all { // a directory follows its content
	case deleteRefused:
		return deleteRefused, r.refuse(full, Delete, was.Mode(), notEmpty)
	case deleteHeld:
		c.Class = steering.Steering
	case deleteNow:
		c.Class, c.Reader = steering.Ordinary, ""
	}
	return all, r.add(c)
}

// deleteBelow adds the deletions of the entries of a lower directory, and
// returns the most restrictive fate among them.
func (r *comparer) deleteBelow(in *os.Root, name, full string, at steering.Position, depth int) (fate, error) {
	dir, err := openSubdir(in, name)
	if err != nil {
		return deleteRefused, r.refuse(full, Delete, fs.ModeDir, unreadable)
	}
	defer dir.Close()
	names, err := readNames(dir)
	if err != nil {
		return deleteRefused, r.refuse(full, Delete, fs.ModeDir, unreadable)
	}
	at = r.top.position(at, full, names, names)
	all := deleteNow
	for _, n := range names {
		f, err := r.deleteEntry(dir, n, path.Join(full, n), at.Child(n), depth+1)
		if err != nil {
			return deleteRefused, err
		}
		all = max(all, f)
	}
	return all, nil
}

// isNewer reports whether another program changed or replaced a file in the
// lower directory while the command ran. Programs can set the modification time
// to any value, as cp -p does, but not the change time. A modification time in
// the future is ignored.
func (r *comparer) isNewer(was fs.FileInfo) bool {
	mod := was.ModTime()
	return changeTime(was).After(r.since) || mod.After(r.since) && !mod.After(r.now)
}

// isMoved reports whether another program moved a directory in the lower
// directory while the command ran. A move sets only the change time of the
// directory, unlike adding or removing entries. The files in it keep their
// times.
func (r *comparer) isMoved(was fs.FileInfo) bool {
	at := changeTime(was)
	return at.After(r.since) && at.After(was.ModTime())
}

// resolve returns the path to which a symlink in dir points. It returns false
// if the path is outside of the overlay's directory, or if it depends on other
// symlinks.
func resolve(dir, target string) (string, bool) {
	if target == "" || path.IsAbs(target) || strings.Contains(target, `\`) {
		return "", false
	}
	down := false
	for part := range strings.SplitSeq(target, "/") {
		if part == ".." && down {
			return "", false
		}
		down = down || part != ".." && part != "." && part != ""
	}
	to := path.Join(dir, target)
	return to, to != ".." && !strings.HasPrefix(to, "../")
}

// addsSkills reports whether a symlink at p would add another directory's
// skills to a directory that agents search.
func addsSkills(p string) bool {
	return slices.ContainsFunc(strings.Split(p, "/"), func(name string) bool { return strings.EqualFold(name, "skills") })
}

// isInDependencies reports whether a path is in a dependency directory. Changes
// there need no agreement.
func isInDependencies(p string) bool {
	return slices.ContainsFunc(strings.Split(p, "/"), func(name string) bool { return steering.IsDependencyDir(strings.ToLower(name)) })
}

func dotIfEmpty(p string) string {
	if p == "" {
		return "."
	}
	return p
}

// sameContent reports whether a file has the same content in both directories.
func sameContent(p *pair, name string, is, was fs.FileInfo) (bool, error) {
	if is.Size() != was.Size() {
		return false, nil
	}
	a, err := openUpper(p.upper, name)
	if err != nil {
		return false, err
	}
	defer a.Close()
	b, err := openFile(p.lower, name)
	if err != nil {
		return false, nil // the command could write what cannot be read
	}
	defer b.Close()
	bufA, bufB := make([]byte, 32<<10), make([]byte, 32<<10)
	for {
		n, errA := io.ReadFull(a, bufA)
		m, errB := io.ReadFull(b, bufB)
		if !bytes.Equal(bufA[:n], bufB[:m]) {
			return false, nil
		}
		if errA != nil || errB != nil {
			return errors.Is(errA, io.EOF) || errors.Is(errA, io.ErrUnexpectedEOF), nil
		}
	}
}

// openFile opens a regular file. It does not follow symlinks and does not
// block.
func openFile(in *os.Root, name string) (*os.File, error) {
	f, err := in.OpenFile(name, os.O_RDONLY|noFollow, 0)
	if err != nil {
		return nil, err
	}
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		f.Close()
		return nil, errors.Join(err, syscall.EINVAL)
	}
	return f, nil
}

// openUpper is like openFile, but for the upper directory, where a command may
// have removed its own permissions.
func openUpper(in *os.Root, name string) (*os.File, error) {
	f, err := openFile(in, name)
	if !errors.Is(err, fs.ErrPermission) {
		return f, err
	}
	fi, err := in.Lstat(name)
	if err != nil || !fi.Mode().IsRegular() {
		return nil, errors.Join(err, syscall.EINVAL)
	}
	if err := in.Chmod(name, 0o600); err != nil {
		return nil, err
	}
	f, err = openFile(in, name)
	return f, errors.Join(err, in.Chmod(name, fi.Mode().Perm()))
}

// openSubdir opens a directory. It does not follow symlinks.
func openSubdir(in *os.Root, name string) (*os.Root, error) {
	before, err := in.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !before.IsDir() {
		return nil, fmt.Errorf("%s: %w", name, syscall.ENOTDIR)
	}
	sub, err := in.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	if now, err := sub.Stat("."); err != nil || !os.SameFile(before, now) {
		sub.Close()
		return nil, fmt.Errorf("%s: %w", name, syscall.ENOTDIR)
	}
	return sub, nil
}

// readNames returns the names in a directory, sorted.
func readNames(dir *os.Root) ([]string, error) {
	f, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}
