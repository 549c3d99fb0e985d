package installed

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
)

// Change is a transaction that installs and removes skills. Other processes see
// no changes until [Change.Commit]. The caller must call Close. A Change is not
// safe for concurrent use.
type Change struct {
	dir         *Dir
	root        *os.Root
	lockFile    *os.File // lock file of the directory; nil once closed
	createdDirs []string // directories that startChange created

	lock, next *Lockfile
	variants   map[string]string // existing names by their folded form, if the two differ
	steps      map[string]step   // by skill name
	closed     bool
	unreverted bool // a failed step could not be reverted
}

// Begin starts a change, creating the directory if necessary. It first finishes
// or reverts a change whose process was killed. While another process changes
// the directory, Begin waits until ctx is done. On file systems without locks,
// changes are not synchronized.
func (d *Dir) Begin(ctx context.Context) (_ *Change, err error) {
	c, err := d.startChange(ctx)
	if err != nil {
		return nil, fmt.Errorf("change %s: %w", d.path, err)
	}
	defer func() {
		if err != nil {
			c.Close()
			err = fmt.Errorf("change %s: %w", d.path, err)
		}
	}()
	if err := c.recover(); err != nil {
		return nil, fmt.Errorf("finish interrupted change: %w (to discard the change, remove %s)", err, staging)
	}
	names, err := listNames(c.root)
	if err != nil {
		return nil, err
	}
	for _, n := range names {
		if folded := foldName(n); folded != n {
			c.variants[folded] = n
		}
	}
	if c.lock, _, err = d.readLock(c.root); err != nil {
		return nil, err
	}
	c.next, c.steps = c.lock.clone(), map[string]step{}
	return c, nil
}

// checkFault returns the error that a test injects for a step, or nil.
func (c *Change) checkFault(step string) error {
	if c.dir.fault == nil {
		return nil
	}
	return c.dir.fault(step)
}

// Lockfile returns a copy of the lockfile as Commit will write it.
func (c *Change) Lockfile() *Lockfile { return c.next.clone() }

// Put copies the files of a skill to the staging directory. Commit moves them
// to the skill's directory. An installed skill with that name is replaced if it
// matches the lockfile. Put returns the entry with the Digest and Files of the
// copied files. If e.Digest is set and differs, Put returns a [*DigestError].
//
// For an invalid name, the error is a [*NameError]; for a conflicting file or
// directory, a [*ConflictError]; and for an invalid entry, a [*LockfileError].
// If files is not a skill, or a file cannot be stored on every system, the
// error is a [*skill.RefusedError]. If the files exceed [skillfile.MaxBytes], it is
// [skill.ErrTooLarge]. A failed Put leaves the change as it was.
func (c *Change) Put(ctx context.Context, name string, e Entry, files fs.FS) (Entry, error) {
	return c.storeSkill(ctx, name, e, files, false)
}

// Replace is like [Change.Put], but also replaces modified skills and
// directories that are not in the lockfile. It does not replace symlinks or
// files.
func (c *Change) Replace(ctx context.Context, name string, e Entry, files fs.FS) (Entry, error) {
	return c.storeSkill(ctx, name, e, files, true)
}

func (c *Change) storeSkill(ctx context.Context, name string, e Entry, files fs.FS, force bool) (Entry, error) {
	if c.closed {
		return Entry{}, ErrChangeEnded
	}
	if err := checkName(name); err != nil {
		return Entry{}, err
	}
	if other, ok := c.variants[name]; ok {
		return Entry{}, &NameError{Name: name, Other: other, Reason: fmt.Sprintf("%q exists, which differs only in letter case", other)}
	}
	there, err := c.checkReplaceable(name, force)
	if err != nil {
		return Entry{}, err
	}
	want := e.Digest
	if e.Files, err = c.copySkill(ctx, files); err != nil {
		return Entry{}, fmt.Errorf("copy %s: %w", name, err)
	}
	if e.Digest = computeDigest(e.Files); want != "" && want != e.Digest {
		return Entry{}, &DigestError{Name: name, Want: want, Got: e.Digest}
	}
	// Reject an invalid entry here, not at the commit.
	if _, err := (&Lockfile{map[string]Entry{name: e}}).Encode(); err != nil {
		return Entry{}, err
	}
	if err := c.stage(name); err != nil {
		return Entry{}, fmt.Errorf("copy %s: %w", name, err)
	}
	c.next.Skills[name] = e
	c.steps[name] = step{Name: name, Digest: e.Digest, Was: there}
	return e, nil
}

// Remove removes an installed skill. If its directory is missing, only the
// lockfile entry is removed. If the skill is not installed, the error is a
// [*NotInstalledError]. If the skill differs from the lockfile, it is a
// [*ConflictError].
func (c *Change) Remove(ctx context.Context, name string) error {
	return c.remove(ctx, name, false)
}

// ForceRemove is like [Change.Remove], but also removes modified skills. It
// does not remove symlinks or files.
func (c *Change) ForceRemove(ctx context.Context, name string) error {
	return c.remove(ctx, name, true)
}

func (c *Change) remove(ctx context.Context, name string, force bool) error {
	switch {
	case c.closed:
		return ErrChangeEnded
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	if err := checkName(name); err != nil {
		return err
	}
	if _, ok := c.next.Skills[name]; !ok {
		return notInstalled(c.next, name)
	}
	if _, ok := c.lock.Skills[name]; !ok { // installed by this change
		delete(c.steps, name)
		delete(c.next.Skills, name)
		return c.unstage(name)
	}
	there, err := c.checkReplaceable(name, force)
	if err != nil {
		return err
	}
	if err := c.unstage(name); err != nil {
		return err
	}
	delete(c.next.Skills, name)
	c.steps[name] = step{Name: name, Was: there}
	return nil
}

// checkReplaceable reports whether a directory with the given name exists. It
// returns an error if the directory must not be replaced or removed.
func (c *Change) checkReplaceable(name string, force bool) (there bool, err error) {
	info, err := c.root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	}
	e, locked := c.lock.Skills[name]
	conflict := &ConflictError{Name: name, InLockfile: locked}
	if !info.IsDir() {
		conflict.Differences = []Difference{{Name: name, Kind: NotPlain}}
		return true, conflict
	}
	if force {
		return true, nil
	}
	if locked {
		conflict.Differences = compare(c.root, name, e)
	}
	if !locked || len(conflict.Differences) > 0 {
		return true, conflict
	}
	return true, nil
}

// Commit applies the change atomically: if it returns an error, the directory
// is unchanged. Once Commit has started to move skills, it ignores cancellation
// of ctx. If the process is killed, the next Begin finishes or reverts the
// change. Commit syncs the disk, so this also holds after a power failure. A
// change can be committed only once.
func (c *Change) Commit(ctx context.Context) error {
	if c.closed {
		return ErrChangeEnded
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if len(c.steps) == 0 {
		return nil
	}
	c.closed = true
	if err := c.commit(ctx); err != nil {
		return fmt.Errorf("change %s: %w", c.dir.path, err)
	}
	return nil
}

// Close discards an uncommitted change and unlocks the directory. It may be
// called after Commit, and more than once.
func (c *Change) Close() error {
	c.closed = true
	if c.lockFile == nil {
		return nil
	}
	err := c.removeStaging()
	c.lockFile = nil
	if err != nil {
		return fmt.Errorf("remove staging directory in %s: %w", c.dir.path, err)
	}
	return nil
}

// sortedSteps returns the steps in execution order.
func (c *Change) sortedSteps() []step {
	out := make([]step, 0, len(c.steps))
	for _, name := range slices.Sorted(maps.Keys(c.steps)) {
		out = append(out, c.steps[name])
	}
	return out
}
