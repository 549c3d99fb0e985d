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
	// dirLock is the file in the directory that is locked while the directory
	// is in use. It is created empty.
	dirLock = "lock"
	// dirFresh is the time for which sweep keeps a directory that was never
	// locked, because another process may be about to lock it.
	dirFresh = time.Hour
	// maxSwept is the maximum number of files in the temporary directory that
	// sweep checks.
	maxSwept = 10_000
)

// gitDir is a temporary directory for a fetch. While it is in use, [sweep] does
// not remove it.
type gitDir struct {
	path string
	lock *os.File
}

// newGitDir creates a directory in temp that only the current user can read.
func newGitDir(ctx context.Context, temp string) (*gitDir, error) {
	path, err := os.MkdirTemp(temp, dirPrefix)
	if err != nil {
		return nil, err
	}
	d := &gitDir{path: path}
	if err := d.acquire(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("create directory for git: %w", err), d.remove())
	}
	return d, nil
}

// acquire locks the directory. On systems without file locks it does nothing,
// and sweep removes no directories.
func (d *gitDir) acquire(ctx context.Context) (err error) {
	d.lock, err = os.OpenFile(filepath.Join(d.path, dirLock), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := filelock.Lock(ctx, d.lock); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	_, err = d.lock.WriteString("in use\n")
	return err
}

// remove removes the directory. It may be called more than once.
func (d *gitDir) remove() error {
	if d.lock != nil {
		d.lock.Close() // some systems cannot remove open files
	}
	return os.RemoveAll(d.path)
}

// sweep removes directories in temp that were left behind by killed processes.
// It ignores errors.
func sweep(temp string) {
	f, err := os.Open(temp)
	if err != nil {
		return
	}
	names, _ := f.Readdirnames(maxSwept)
	f.Close()
	for _, name := range names {
		if path := filepath.Join(temp, name); strings.HasPrefix(name, dirPrefix) && isAbandoned(path) {
			_ = os.RemoveAll(path)
		}
	}
}

// isAbandoned reports whether a directory belongs to the current user and is
// not in use.
func isAbandoned(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() || !isOwnFile(info) {
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
	if filelock.TryLock(lock) != nil {
		return false
	}
	taken, err := lock.Stat()
	return err == nil && (taken.Size() > 0 || time.Since(info.ModTime()) > dirFresh)
}
