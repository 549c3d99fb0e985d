package execution

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/filelock"
	"github.com/loadout-dev/loadout/internal/sandbox/mountpoint"
	"github.com/loadout-dev/loadout/sandbox"
)

// ErrNoFolder is returned if no working folder has the given handle, or if
// working folders are disabled.
var ErrNoFolder = errors.New("working folder not found")

// FolderPath returns the path of the working folder with the given handle in
// dir. It returns [ErrNoFolder] if handle is malformed or dir is "", but does
// not check whether the folder exists.
func FolderPath(dir, handle string) (string, error) {
	if dir == "" || !isHandle(handle) {
		return "", ErrNoFolder
	}
	return filepath.Join(dir, handle), nil
}

// openFolder opens or creates a working folder and adds its files to the
// sandbox.
func (o *collector) openFolder(ctx context.Context, dir, handle string, s *sandbox.Spec) error {
	if dir == "" {
		return fmt.Errorf("%w: working folders are disabled", ErrNoFolder)
	}
	if handle == "" {
		handle, o.isNew = strings.ToLower(rand.Text()[:16]), true
		if err := os.MkdirAll(filepath.Join(dir, handle), 0o700); err != nil {
			return fmt.Errorf("create working folder: %w", err)
		}
		sweepFolders(dir)
	}
	if !isHandle(handle) {
		return fmt.Errorf("open working folder %q: %w", handle, ErrNoFolder)
	}
	o.handle, o.dir = handle, filepath.Join(dir, handle)
	if _, err := os.Lstat(o.dir); errors.Is(err, fs.ErrNotExist) { // check first, because lockFolder creates a lock file
		return fmt.Errorf("open working folder %s: %w", handle, ErrNoFolder)
	}
	unlock, err := lockFolder(ctx, o.dir)
	if err != nil {
		o.discard()
		return err
	}
	o.unlock = unlock
	root, err := os.OpenRoot(o.dir)
	if err != nil {
		o.discard()
		if errors.Is(err, fs.ErrNotExist) { // the folder has expired
			err = ErrNoFolder
		}
		return fmt.Errorf("open working folder %s: %w", handle, err)
	}
	o.previous = root
	trees, err := inputTrees([]Input{{Name: "folder", FS: root.FS(), Path: "."}})
	if err != nil {
		o.discard()
		return fmt.Errorf("open working folder %s: %w", handle, err)
	}
	for _, t := range trees {
		all := mergedFS{}
		for i, f := range t.Files {
			t.Files[i].Path = strings.TrimPrefix(f.Path, "folder/")
			all[t.Files[i].Path] = t.FS.(mergedFS)[f.Path]
		}
		s.Trees = append(s.Trees, sandbox.Tree{Path: mountpoint.Work, FS: all, Files: t.Files})
	}
	return nil
}

// isHandle reports whether s has the form of a generated handle.
func isHandle(s string) bool {
	return len(s) == 16 && !strings.ContainsFunc(s, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '2' || r > '7') })
}

// lockFolder locks a working folder, so that only one run uses it at a time,
// even across processes. The returned function unlocks the folder.
func lockFolder(ctx context.Context, dir string) (func(), error) {
	f, err := os.OpenFile(dir+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock working folder: %w", err)
	}
	if err := filelock.Lock(ctx, f); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock working folder: %w", err)
	}
	return func() { f.Close() }, nil
}

// folderRetention is the time for which a working folder is retained after its
// last use.
const folderRetention = 7 * 24 * time.Hour

// sweepFolders removes expired working folders and abandoned temporary
// directories from dir.
func sweepFolders(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		handle, _, _ := strings.Cut(e.Name(), ".")
		fi, err := e.Info()
		if err != nil || time.Since(fi.ModTime()) < folderRetention || !isHandle(handle) && !strings.HasPrefix(e.Name(), ".loadout-out-") {
			continue
		}
		if isHandle(handle) {
			sweepFolder(filepath.Join(dir, handle))
			continue
		}
		os.RemoveAll(filepath.Join(dir, e.Name()))
	}
}

// sweepFolder removes a working folder and its lock file if the folder has
// expired and is not in use.
func sweepFolder(dir string) {
	lock, err := os.OpenFile(dir+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return
	}
	defer lock.Close()
	if err := filelock.TryLock(lock); err != nil {
		return
	}
	// The lock file is as old as the folder's first use, so check the folder
	// itself.
	if fi, err := os.Lstat(dir); err == nil && time.Since(fi.ModTime()) < folderRetention {
		return
	}
	os.RemoveAll(dir)
	os.Remove(dir + ".lock")
}
