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

// Change is a set of skills to put and to remove. Until [Change.Commit] nothing of
// it is seen by others. It is not safe for concurrent use; close it when done.
type Change struct {
	dir  *Dir
	root *os.Root
	held *os.File // the lock of the directory, nil once closed
	made []string // directories that were made for it

	lock, next *Lock
	variants   map[string]string // what no skill can be beside, by its folded name
	steps      map[string]step   // by the name of the skill
	ended      bool
	stuck      bool // what was begun could not be taken back
}

// Begin begins a change. It waits for other processes that change the directory,
// until ctx ends, and finishes or takes back what one that was killed has left.
// The directory is made where it is missing. Where the file system has no locks,
// two changes at once are not kept apart.
func (d *Dir) Begin(ctx context.Context) (_ *Change, err error) {
	c, err := d.enter(ctx)
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
		return nil, fmt.Errorf("finish what was interrupted (to give it up, remove %s): %w", staging, err)
	}
	names, err := listNames(c.root)
	if err != nil {
		return nil, err
	}
	for _, n := range names {
		if folded := fold(n); folded != n {
			c.variants[folded] = n
		}
	}
	if c.lock, _, err = d.readLock(c.root); err != nil {
		return nil, err
	}
	c.next, c.steps = c.lock.clone(), map[string]step{}
	return c, nil
}

// reach tells tests where the change is.
func (c *Change) reach(step string) error {
	if c.dir.at == nil {
		return nil
	}
	return c.dir.at(step)
}

// Lock returns the lock as it will be after the commit. It is the caller's.
func (c *Change) Lock() *Lock { return c.next.clone() }

// Put copies the files of a skill, to be in the directory name after the commit,
// where there may be an installed skill that is as the lock has it. It returns the
// entry with the Digest and Files of what was copied. If e.Digest is set, the files
// must have it, or the error is a [*DigestError].
//
// A name that no directory should have is a [*NameError], something in the way a
// [*ConflictError], an entry that no lock can have a [*LockError], and files that are
// no skill, or that not every system can store, are a [*skill.RefusedError]; more
// than [skill.MaxBytes] of them are a [skill.ErrTooLarge]. After an error the change
// is as it was.
func (c *Change) Put(ctx context.Context, name string, e Entry, files fs.FS) (Entry, error) {
	return c.put(ctx, name, e, files, false)
}

// Replace is [Change.Put] that replaces also an installed skill that was edited,
// and a directory that the lock does not know, but no link and no file.
func (c *Change) Replace(ctx context.Context, name string, e Entry, files fs.FS) (Entry, error) {
	return c.put(ctx, name, e, files, true)
}

func (c *Change) put(ctx context.Context, name string, e Entry, files fs.FS, force bool) (Entry, error) {
	if c.ended {
		return Entry{}, ErrEnded
	}
	if err := checkName(name); err != nil {
		return Entry{}, err
	}
	if other, ok := c.variants[name]; ok {
		return Entry{}, &NameError{Name: name, Other: other, Reason: fmt.Sprintf("there is %q, which differs in case only", other)}
	}
	there, err := c.yields(name, force)
	if err != nil {
		return Entry{}, err
	}
	want := e.Digest
	if e.Files, err = c.copy(ctx, files); err != nil {
		return Entry{}, fmt.Errorf("copy %s: %w", name, err)
	}
	if e.Digest = digestOf(e.Files); want != "" && want != e.Digest {
		return Entry{}, &DigestError{Name: name, Want: want, Got: e.Digest}
	}
	// An entry that no lock can have fails here, not at the commit of all.
	if _, err := (&Lock{map[string]Entry{name: e}}).Encode(); err != nil {
		return Entry{}, err
	}
	if err := c.stage(name); err != nil {
		return Entry{}, fmt.Errorf("copy %s: %w", name, err)
	}
	c.next.Skills[name] = e
	c.steps[name] = step{Name: name, Digest: e.Digest, Was: there}
	return e, nil
}

// Remove takes an installed skill out. A name that the lock does not know is a
// [*NotInstalledError], and a skill that is not as the lock has it a
// [*ConflictError]. One whose directory is gone already leaves the lock.
func (c *Change) Remove(ctx context.Context, name string) error {
	return c.remove(ctx, name, false)
}

// Discard is [Change.Remove] that removes also an installed skill that was edited,
// but no link and no file.
func (c *Change) Discard(ctx context.Context, name string) error {
	return c.remove(ctx, name, true)
}

func (c *Change) remove(ctx context.Context, name string, force bool) error {
	switch {
	case c.ended:
		return ErrEnded
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	if err := checkName(name); err != nil {
		return err
	}
	if _, ok := c.next.Skills[name]; !ok {
		return notInstalled(c.next, name)
	}
	if _, ok := c.lock.Skills[name]; !ok { // only put by this change
		delete(c.steps, name)
		delete(c.next.Skills, name)
		return c.unstage(name)
	}
	there, err := c.yields(name, force)
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

// yields reports whether there is a directory of that name, and fails where it is
// not to be replaced or removed.
func (c *Change) yields(name string, force bool) (there bool, err error) {
	info, err := c.root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	}
	e, locked := c.lock.Skills[name]
	conflict := &ConflictError{Name: name, Locked: locked}
	if !info.IsDir() {
		conflict.Differences = []Difference{{Name: name, What: NotPlain}}
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

// Commit makes the change: all of it, or on an error nothing. Once it has begun to
// move skills it goes on when ctx ends. If the process is killed meanwhile, the
// next Begin finishes it or takes it back. What the disk did is awaited, so that
// this holds also where the power fails. A change is committed once.
func (c *Change) Commit(ctx context.Context) error {
	if c.ended {
		return ErrEnded
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if len(c.steps) == 0 {
		return nil
	}
	c.ended = true
	if err := c.commit(ctx); err != nil {
		return fmt.Errorf("change %s: %w", c.dir.path, err)
	}
	return nil
}

// Close takes back what was not committed, and lets others change the directory.
// It may be called after Commit, and twice.
func (c *Change) Close() error {
	c.ended = true
	if c.held == nil {
		return nil
	}
	err := c.leave()
	c.held = nil
	if err != nil {
		return fmt.Errorf("remove what was staged in %s: %w", c.dir.path, err)
	}
	return nil
}

// sorted are the steps in the order in which they are made.
func (c *Change) sorted() []step {
	out := make([]step, 0, len(c.steps))
	for _, name := range slices.Sorted(maps.Keys(c.steps)) {
		out = append(out, c.steps[name])
	}
	return out
}
