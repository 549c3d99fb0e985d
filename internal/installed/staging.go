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

// Files below a directory of skills during a change:
//
//	.staging~/lock           locked by the process that makes the change
//	.staging~/.gitignore     keeps these files out of repositories
//	.staging~/part           the skill that is being copied
//	.staging~/new/NAME       copied skills
//	.staging~/old/NAME       replaced and removed skills
//	.staging~/loadout.lock   the lockfile after the change
//	.staging~/journal.json   the steps of the commit; while it exists, the commit is valid
//
// skillpath.IsIgnored covers names that end in ~, so catalogs do not find skills
// in there.
const (
	staging     = ".staging~"
	lockPath    = staging + "/lock"
	ignorePath  = staging + "/.gitignore"
	partPath    = staging + "/part"
	newPath     = staging + "/new"
	oldPath     = staging + "/old"
	nextPath    = staging + "/" + LockfileName
	draftPath   = staging + "/journal.tmp"
	journalPath = staging + "/journal.json"
)

// errStagingRemoved is returned if another process removed the staging
// directory at the end of its change.
var errStagingRemoved = errors.New("staging directory was removed")

// startChange locks the directory for a change. If another process removes the
// staging directory at the same time, it retries up to a thousand times.
func (d *Dir) startChange(ctx context.Context) (c *Change, err error) {
	for range 1000 {
		if c, err = d.tryStartChange(ctx); !errors.Is(err, errStagingRemoved) {
			return c, err
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	return nil, err
}

func (d *Dir) tryStartChange(ctx context.Context) (_ *Change, err error) {
	c := &Change{dir: d, variants: map[string]string{}}
	defer func() {
		if err != nil {
			c.release()
		}
	}()
	if c.createdDirs, err = makeDirs(d.path); err != nil {
		return nil, missingError(err)
	}
	if c.root, err = os.OpenRoot(d.path); err != nil {
		return nil, missingError(err)
	}
	if err := c.root.Mkdir(staging, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, missingError(err)
	}
	if info, err := c.root.Lstat(staging); err != nil {
		return nil, missingError(err)
	} else if !info.IsDir() { // a symlink could lead into one of the skills
		return nil, fmt.Errorf("%s is not a directory (symbolic links are not allowed); move it away", staging)
	}
	if c.lockFile, err = c.root.OpenFile(lockPath, os.O_RDWR|os.O_CREATE, 0o644); err != nil {
		return nil, missingError(err)
	}
	if err := filelock.Lock(ctx, c.lockFile); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return nil, fmt.Errorf("wait for another change to finish: %w", err)
	}
	return c, c.checkLock()
}

// Recover finishes or reverts a change whose process was killed, as the next
// [Dir.Begin] would do. While a change is in progress, Recover waits until ctx
// is done. If there is no unfinished change, it does nothing.
func (d *Dir) Recover(ctx context.Context) error {
	unfinished := false
	err := d.withRoot(func(root *os.Root) error {
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

// checkLock returns an error if the locked file is no longer at its path,
// because the previous holder removed it.
func (c *Change) checkLock() error {
	mine, err := c.lockFile.Stat()
	if err != nil {
		return err
	}
	now, err := c.root.Lstat(lockPath)
	switch {
	case err != nil:
		return missingError(err)
	case !now.Mode().IsRegular():
		return fmt.Errorf("not a regular file: %s; move it away", lockPath)
	case !os.SameFile(mine, now):
		return errStagingRemoved
	}
	return nil
}

// missingError adds errStagingRemoved to err if err reports a missing file. It
// returns other errors unchanged.
func missingError(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", errStagingRemoved, err)
	}
	return err
}

// removeStaging removes the staging directory, unless the next change needs it
// to finish this commit.
func (c *Change) removeStaging() error {
	var err error
	if !c.unreverted {
		err = c.removeStaged()
		c.root.Remove(ignorePath)
		// Remove the lock file while it is locked, so that processes that have
		// opened it notice. Files created by others since then prevent the
		// removal of the directory.
		c.root.Remove(lockPath)
		c.root.Remove(staging)
	}
	c.release()
	return err
}

// release closes open files. If no skill was installed, it also removes the
// directories that the change created.
func (c *Change) release() {
	if c.lockFile != nil {
		c.lockFile.Close()
	}
	if c.root != nil {
		c.root.Close()
	}
	for _, dir := range slices.Backward(c.createdDirs) {
		os.Remove(dir)
	}
}

// makeDirs creates a directory and its parents. It returns the directories that
// it created.
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
