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

// Change is a set of skills to install and remove. Others see nothing of it
// until [Change.Commit]. It is not safe for concurrent use. Close it when done.
type Change struct {
	dir         *Dir
	root        *os.Root
	lockFile    *os.File // locked file of the directory, nil once closed
	createdDirs []string // directories that were created for it

	lock, next *Lockfile
	variants   map[string]string // existing names by their folded form, where these differ
	steps      map[string]step   // by skill name
	closed     bool
	unreverted bool // a step could not be reverted
}

// Begin starts a change and creates the directory if necessary. It waits until
// ctx ends for other processes that change the directory. It finishes or
// reverts the change of a process that was killed. Changes are not synchronised
// on file systems without locks.
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
		return nil, fmt.Errorf("finish the interrupted change (to discard it, remove %s): %w", staging, err)
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

// reach lets tests fail a step.
func (c *Change) checkFault(step string) error {
	if c.dir.fault == nil {
		return nil
	}
	return c.dir.fault(step)
}

// Lockfile returns a copy of the lockfile as it will be after the commit.
func (c *Change) Lockfile() *Lockfile { return c.next.clone() }

// Put copies the files of a skill, which the commit will move to the directory
// name. An installed skill of that name is replaced if it matches the lockfile.
// Put returns the entry with Digest and Files of the copied files. If e.Digest
// is set and the files have another digest, Put returns a [*DigestError].
//
// An invalid name is a [*NameError], a conflicting file or directory a
// [*ConflictError], and an invalid entry a [*LockfileError]. Files that are not
// a skill, or that not every system can store, are a [*skill.RefusedError].
// More than [skill.MaxBytes] are a [skill.ErrTooLarge]. After an error the
// change is as before.
func (c *Change) Put(ctx context.Context, name string, e Entry, files fs.FS) (Entry, error) {
	return c.storeSkill(ctx, name, e, files, false)
}

// Replace works like [Change.Put], but also replaces an edited skill and a
// directory that is not in the lockfile. It does not replace a symlink or a
// file.
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
	if e.Digest = digestOf(e.Files); want != "" && want != e.Digest {
		return Entry{}, &DigestError{Name: name, Want: want, Got: e.Digest}
	}
	// An invalid entry fails here, not at the commit.
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

// Remove removes an installed skill. An unknown name is a [*NotInstalledError].
// A skill that differs from the lockfile is a [*ConflictError]. A skill whose
// directory is missing is removed from the lockfile.
func (c *Change) Remove(ctx context.Context, name string) error {
	return c.remove(ctx, name, false)
}

// ForceRemove works like [Change.Remove], but also removes an edited skill. It
// does not remove a symlink or a file.
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
	if _, ok := c.lock.Skills[name]; !ok { // only installed by this change
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

// checkReplaceable reports whether a directory with that name exists. It
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

// Commit applies the change atomically: after an error, nothing has changed.
// Once it has started to move skills, it continues even if ctx ends. If the
// process is killed, the next Begin finishes or reverts the change. Commit
// syncs the disk, so that this also holds after a power failure. A change can
// be committed once.
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

// Close discards what was not committed and unlocks the directory. It may be
// called after Commit, and more than once.
func (c *Change) Close() error {
	c.closed = true
	if c.lockFile == nil {
		return nil
	}
	err := c.removeStaging()
	c.lockFile = nil
	if err != nil {
		return fmt.Errorf("remove the staging directory in %s: %w", c.dir.path, err)
	}
	return nil
}

// sorted returns the steps in the order of execution.
func (c *Change) sortedSteps() []step {
	out := make([]step, 0, len(c.steps))
	for _, name := range slices.Sorted(maps.Keys(c.steps)) {
		out = append(out, c.steps[name])
	}
	return out
}
