package loadout

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/filelock"
	"github.com/loadout-dev/loadout/sandbox"
)

// runOutput is the destination for the files of a run: a directory of the user,
// a working folder, or none. The files are written to a temporary directory,
// and moved to the destination when all are complete.
type runOutput struct {
	handle   string // handle of the working folder
	dir      string // destination, or "" for none
	incoming string // temporary directory
	root     *os.Root
	previous *os.Root // working folder before the run, which the sandbox reads
	fresh    bool     // this run created the working folder
	unsaved  int
	hidden   int // number of files that were skipped because their names begin with a dot
	unlock   func()
}

// ErrNoFolder is returned if no working folder has the given handle.
var ErrNoFolder = errors.New("there is no working folder of that handle")

// newRunOutput opens the destination for the files of a run, and adds the files
// of its working folder to the sandbox.
func newRunOutput(ctx context.Context, run *Run, folders string, s *sandbox.Spec) (*runOutput, error) {
	o := &runOutput{unlock: func() {}}
	switch {
	case run.Folder != "" || run.NewFolder:
		if err := o.openFolder(ctx, folders, run.Folder, s); err != nil {
			return nil, err
		}
	case run.OutputDir != "":
		o.dir = run.OutputDir
		if err := os.MkdirAll(o.dir, 0o777); err != nil {
			return nil, fmt.Errorf("make the directory for files: %w", err)
		}
	default:
		return o, nil
	}
	place := o.dir // the parent may belong to another user
	if o.handle != "" {
		place = filepath.Dir(o.dir) // the whole folder is replaced
	}
	var err error
	if o.incoming, err = os.MkdirTemp(place, ".loadout-out-"); err == nil {
		o.root, err = os.OpenRoot(o.incoming)
	}
	if err != nil {
		o.discard()
		return nil, fmt.Errorf("make a place for files: %w", err)
	}
	return o, nil
}

// openFolder opens or creates a working folder and adds its files to the
// sandbox.
func (o *runOutput) openFolder(ctx context.Context, dir, handle string, s *sandbox.Spec) error {
	if dir == "" {
		return fmt.Errorf("working folder: %w: this program keeps none", ErrNoFolder)
	}
	if handle == "" {
		handle, o.fresh = strings.ToLower(rand.Text()[:16]), true
		if err := os.MkdirAll(filepath.Join(dir, handle), 0o700); err != nil {
			return fmt.Errorf("make a working folder: %w", err)
		}
		sweepFolders(dir)
	}
	if !isHandle(handle) {
		return fmt.Errorf("working folder %q: %w", handle, ErrNoFolder)
	}
	o.handle, o.dir = handle, filepath.Join(dir, handle)
	if _, err := os.Lstat(o.dir); errors.Is(err, fs.ErrNotExist) { // check before lockFolder creates a lock file
		return fmt.Errorf("working folder %s: %w", handle, ErrNoFolder)
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
		if errors.Is(err, fs.ErrNotExist) { // it has expired
			err = ErrNoFolder
		}
		return fmt.Errorf("working folder %s: %w", handle, err)
	}
	o.previous = root
	trees, err := inputTrees([]Input{{Name: "folder", FS: root.FS(), Path: "."}})
	if err != nil {
		o.discard()
		return fmt.Errorf("working folder %s: %w", handle, err)
	}
	for _, t := range trees {
		all := mergedFS{}
		for i, f := range t.Files {
			t.Files[i].Path = strings.TrimPrefix(f.Path, "folder/")
			all[t.Files[i].Path] = t.FS.(mergedFS)[f.Path]
		}
		s.Trees = append(s.Trees, sandbox.Tree{Path: sandbox.WorkDir, FS: all, Files: t.Files})
	}
	return nil
}

// isHandle reports whether s has the form of a generated handle.
func isHandle(s string) bool {
	return len(s) == 16 && !strings.ContainsFunc(s, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '2' || r > '7') })
}

// lockFolder locks a folder for one run at a time, across all processes.
func lockFolder(ctx context.Context, dir string) (func(), error) {
	f, err := os.OpenFile(dir+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the working folder: %w", err)
	}
	if err := filelock.Lock(ctx, f); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock the working folder: %w", err)
	}
	return func() { f.Close() }, nil
}

// folderRetention is how long a working folder is retained after its last use.
const folderRetention = 7 * 24 * time.Hour

// sweepFolders removes working folders that have not been used for
// folderRetention.
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

// sweepFolder removes an expired folder and its lock, unless it is in use.
func sweepFolder(dir string) {
	lock, err := os.OpenFile(dir+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return
	}
	defer lock.Close()
	if err := filelock.TryLock(lock); err != nil {
		return
	}
	// The lock file is as old as the first use, so check the age of the folder.
	if fi, err := os.Lstat(dir); err == nil && time.Since(fi.ModTime()) < folderRetention {
		return
	}
	os.RemoveAll(dir)
	os.Remove(dir + ".lock")
}

// collect saves a file of the run. It counts the files that the user does not
// get.
func (o *runOutput) collect(f sandbox.File, r io.Reader) (bool, error) {
	out, handed := strings.CutPrefix(f.Path, "out/")
	name := f.Path
	if o.handle == "" {
		if name = out; !handed {
			if !strings.HasPrefix(f.Path, ".") {
				o.unsaved++
			}
			return false, nil
		}
		if strings.HasPrefix(name, ".") {
			// In a directory of the user, such names make other programs run
			// code: .git/hooks, .bashrc.
			o.hidden++
			return false, nil
		}
	}
	if o.root == nil {
		return true, nil
	}
	if d := path.Dir(name); d != "." {
		if err := o.root.MkdirAll(d, 0o755); err != nil {
			return false, err
		}
	}
	mode := fs.FileMode(0o644)
	if f.Exec {
		mode = 0o755
	}
	w, err := o.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return false, err
	}
	_, err = io.Copy(w, r)
	return true, errors.Join(err, w.Close())
}

// commit moves the files to the destination.
func (o *runOutput) commit(res *sandbox.Result) error {
	defer o.unlock()
	for i := range res.Files {
		if o.handle == "" {
			res.Files[i].Path = strings.TrimPrefix(res.Files[i].Path, "out/")
		}
	}
	if o.root == nil {
		return nil
	}
	o.root.Close()
	if o.handle == "" {
		defer os.RemoveAll(o.incoming)
		return merge(o.incoming, o.dir)
	}
	o.previous.Close()
	if o.fresh && len(res.Files) == 0 { // the folder is empty, so no later run needs it
		o.handle = ""
		return errors.Join(os.RemoveAll(o.incoming), o.removeFolder())
	}
	// Replace the whole folder, so that files removed by the script are gone.
	old := o.incoming + ".old"
	if err := os.Rename(o.dir, old); err != nil {
		return err
	}
	if err := os.Rename(o.incoming, o.dir); err != nil {
		return errors.Join(err, os.Rename(old, o.dir))
	}
	return os.RemoveAll(old)
}

// discard removes the collected files and closes the destination.
func (o *runOutput) discard() {
	if o.previous != nil {
		o.previous.Close()
	}
	if o.root != nil {
		o.root.Close()
	}
	if o.incoming != "" {
		os.RemoveAll(o.incoming)
	}
	if o.fresh {
		_ = o.removeFolder() // its handle was never returned
	}
	o.unlock()
}

// removeFolder removes the working folder.
func (o *runOutput) removeFolder() error {
	return errors.Join(os.RemoveAll(o.dir), os.Remove(o.dir+".lock"))
}

// merge moves files into a directory of the user and replaces files of the same
// name. It does not follow symbolic links.
func merge(from, to string) error {
	src, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer dst.Close()
	return fs.WalkDir(src.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == "." {
			return err
		}
		if d.IsDir() {
			if was, err := dst.Lstat(p); err == nil && !was.IsDir() {
				if err := dst.Remove(p); err != nil {
					return err
				}
			}
			return dst.MkdirAll(p, 0o777)
		}
		return moveFile(src, dst, p)
	})
}

func moveFile(src, dst *os.Root, p string) error {
	in, err := src.Open(p)
	if err != nil {
		return err
	}
	defer in.Close()
	fi, err := in.Stat()
	if err != nil {
		return err
	}
	if was, err := dst.Lstat(p); err == nil && !was.Mode().IsDir() {
		if err := dst.Remove(p); err != nil { // replace a symbolic link, do not follow it
			return err
		}
	}
	out, err := dst.OpenFile(p, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fi.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// FolderPath returns the path of a working folder on this machine.
func (r *Runtime) FolderPath(handle string) (string, error) {
	if r.scripts == nil || r.scripts.FolderDir == "" || !isHandle(handle) {
		return "", ErrNoFolder
	}
	return filepath.Join(r.scripts.FolderDir, handle), nil
}
