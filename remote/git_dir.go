package remote

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/filelock"
)

const (
	dirPrefix = "loadout-git-"
	// dirLock is the file of a directory that is locked while the directory is in
	// use. It is empty until it was locked for the first time.
	dirLock = "lock"
	// dirFresh is how long a directory is left alone that never was locked: somebody
	// may be making it.
	dirFresh = time.Hour
	// maxSwept is how many names of the temporary directory are looked at.
	maxSwept = 10_000
)

// gitDir is a directory for one trip. While it is not removed no [sweep] removes it.
type gitDir struct {
	path string
	lock *os.File
}

// newGitDir makes a directory in temp, which only this user can read.
func newGitDir(ctx context.Context, temp string) (*gitDir, error) {
	path, err := os.MkdirTemp(temp, dirPrefix)
	if err != nil {
		return nil, err
	}
	d := &gitDir{path: path}
	if err := d.take(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("make a directory for git: %w", err), d.remove())
	}
	return d, nil
}

// take locks the directory. Where there are no locks it is nobody's, and a sweep
// does not find out either.
func (d *gitDir) take(ctx context.Context) (err error) {
	d.lock, err = os.OpenFile(filepath.Join(d.path, dirLock), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := filelock.Wait(ctx, d.lock); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	_, err = d.lock.WriteString("in use\n")
	return err
}

// remove removes the directory. It may be called again.
func (d *gitDir) remove() error {
	if d.lock != nil {
		d.lock.Close() // first, as some systems remove no file that is open
	}
	return os.RemoveAll(d.path)
}

// sweep removes the directories that processes have left in temp which were killed.
// What it cannot remove, it leaves.
func sweep(temp string) {
	f, err := os.Open(temp)
	if err != nil {
		return
	}
	names, _ := f.Readdirnames(maxSwept)
	f.Close()
	for _, name := range names {
		if path := filepath.Join(temp, name); strings.HasPrefix(name, dirPrefix) && isLeft(path) {
			_ = os.RemoveAll(path)
		}
	}
}

// isLeft reports whether a directory is this user's, and nobody uses it any more.
func isLeft(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() || !isOurs(info) {
		return false
	}
	lock, err := os.OpenFile(filepath.Join(path, dirLock), os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return time.Since(info.ModTime()) > dirFresh
	}
	if err != nil {
		return false
	}
	defer lock.Close()
	if filelock.Try(lock) != nil {
		return false
	}
	taken, err := lock.Stat()
	return err == nil && (taken.Size() > 0 || time.Since(info.ModTime()) > dirFresh)
}
