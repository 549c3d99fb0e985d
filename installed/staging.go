package installed

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/loadout-dev/loadout/internal/filelock"
)

// What is below a directory of skills while it is changed:
//
//	.staging~/lock           who changes it
//	.staging~/.gitignore     keeps all of this out of repositories
//	.staging~/part           the skill that is being copied
//	.staging~/new/NAME       skills that are copied
//	.staging~/old/NAME       skills that were replaced or removed
//	.staging~/loadout.lock   the lock after the change
//	.staging~/journal.json   what a commit does; while it is there, the commit counts
//
// [skill.Ignored] has names that end in ~, so that no catalog takes what is in there
// for skills.
const (
	staging     = ".staging~"
	lockPath    = staging + "/lock"
	ignorePath  = staging + "/.gitignore"
	partPath    = staging + "/part"
	newPath     = staging + "/new"
	oldPath     = staging + "/old"
	nextPath    = staging + "/" + LockFile
	draftPath   = staging + "/journal.tmp"
	journalPath = staging + "/journal.json"
)

// errGone says that another process removed the directory for staging, as it had ended
// its change.
var errGone = errors.New("it was removed meanwhile")

// enter takes the directory for one change. It comes and goes with the changes of
// others, but hardly a thousand times while this one looks.
func (d *Dir) enter(ctx context.Context) (c *Change, err error) {
	for range 1000 {
		if c, err = d.tryEnter(ctx); !errors.Is(err, errGone) {
			return c, err
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	return nil, err
}

func (d *Dir) tryEnter(ctx context.Context) (_ *Change, err error) {
	c := &Change{dir: d, variants: map[string]string{}}
	defer func() {
		if err != nil {
			c.letGo()
		}
	}()
	if c.made, err = makeDirs(d.path); err != nil {
		return nil, gone(err)
	}
	if c.root, err = os.OpenRoot(d.path); err != nil {
		return nil, gone(err)
	}
	if err := c.root.Mkdir(staging, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, gone(err)
	}
	if info, err := c.root.Lstat(staging); err != nil {
		return nil, gone(err)
	} else if !info.IsDir() { // a link could lead into one of the skills
		return nil, fmt.Errorf("%s is not a plain directory: move it away", staging)
	}
	if c.held, err = c.root.OpenFile(lockPath, os.O_RDWR|os.O_CREATE, 0o644); err != nil {
		return nil, gone(err)
	}
	if err := filelock.Wait(ctx, c.held); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return nil, fmt.Errorf("wait for another change to end: %w", err)
	}
	return c, c.stillThere()
}

// Recover finishes, or takes back, a change whose process was killed, as the next
// [Dir.Begin] would. It waits for one that is under way, until ctx ends, and touches
// nothing where there is none.
func (d *Dir) Recover(ctx context.Context) error {
	unfinished := false
	err := d.with(func(root *os.Root) error {
		_, err := root.Lstat(staging)
		unfinished = err == nil
		return nil
	})
	if err != nil || !unfinished {
		return err
	}
	c, err := d.Begin(ctx)
	if err != nil {
		return err
	}
	return c.Close()
}

// stillThere checks that the lock that is held is the one that others find: who had
// it before has removed it, if it was the last one there.
func (c *Change) stillThere() error {
	mine, err := c.held.Stat()
	if err != nil {
		return err
	}
	now, err := c.root.Lstat(lockPath)
	switch {
	case err != nil:
		return gone(err)
	case !now.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file: move it away", lockPath)
	case !os.SameFile(mine, now):
		return errGone
	}
	return nil
}

// gone is err, or errGone where it says that something is missing.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", errGone, err)
	}
	return err
}

// leave ends a change. What a commit could not finish stays for the next one.
func (c *Change) leave() error {
	var err error
	if !c.stuck {
		err = c.clean()
		c.root.Remove(ignorePath)
		// While it is held: who has it open meanwhile finds that it is gone. What
		// others have put there since keeps the directory.
		c.root.Remove(lockPath)
		c.root.Remove(staging)
	}
	c.letGo()
	return err
}

// letGo closes what is open, and removes the directories that were made for a change
// that put nothing into them.
func (c *Change) letGo() {
	if c.held != nil {
		c.held.Close()
	}
	if c.root != nil {
		c.root.Close()
	}
	for _, dir := range slices.Backward(c.made) {
		os.Remove(dir)
	}
}

// makeDirs makes a directory, with those above it, and returns what it made.
func makeDirs(path string) (made []string, err error) {
	if info, err := os.Stat(path); err == nil {
		if !info.IsDir() {
			return nil, fmt.Errorf("%s is not a directory", path)
		}
		return nil, nil
	}
	if up := filepath.Dir(path); up != path {
		if made, err = makeDirs(up); err != nil {
			return made, err
		}
	}
	if err := os.Mkdir(path, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return made, err
	} else if err == nil {
		made = append(made, path)
	}
	return made, nil
}
