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

// outlet is where the files of a run go: a directory of the person, a working
// folder, or nowhere. They arrive in a directory of their own and are put in
// place when all have come.
type outlet struct {
	handle string // of the working folder
	dir    string // where they end up, "" for nowhere
	arrive string // where they arrive
	root   *os.Root
	before *os.Root // the working folder as it was, which the sandbox reads
	fresh  bool     // the working folder is of this run
	left   int
	hidden int // names that begin with a dot and were not handed over
	unlock func()
}

// ErrNoFolder says that there is no working folder of that handle.
var ErrNoFolder = errors.New("there is no working folder of that handle")

// newOutlet opens the place for the files of a run, and gives the sandbox what
// is in its working folder.
func newOutlet(ctx context.Context, run *Run, folders string, s *sandbox.Spec) (*outlet, error) {
	o := &outlet{unlock: func() {}}
	switch {
	case run.Folder != "" || run.Keep:
		if err := o.openFolder(ctx, folders, run.Folder, s); err != nil {
			return nil, err
		}
	case run.Out != "":
		o.dir = run.Out
		if err := os.MkdirAll(o.dir, 0o777); err != nil {
			return nil, fmt.Errorf("make the directory for files: %w", err)
		}
	default:
		return o, nil
	}
	place := o.dir // its parent may belong to somebody else
	if o.handle != "" {
		place = filepath.Dir(o.dir) // the folder is replaced by what arrives
	}
	var err error
	if o.arrive, err = os.MkdirTemp(place, ".loadout-out-"); err == nil {
		o.root, err = os.OpenRoot(o.arrive)
	}
	if err != nil {
		o.discard()
		return nil, fmt.Errorf("make a place for files: %w", err)
	}
	return o, nil
}

// openFolder opens or makes a working folder and adds its files to the sandbox.
func (o *outlet) openFolder(ctx context.Context, dir, handle string, s *sandbox.Spec) error {
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
	if _, err := os.Lstat(o.dir); errors.Is(err, fs.ErrNotExist) { // before a lock is made for it
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
		if errors.Is(err, fs.ErrNotExist) { // it was too old
			err = ErrNoFolder
		}
		return fmt.Errorf("working folder %s: %w", handle, err)
	}
	o.before = root
	trees, err := inputTrees([]Input{{Name: "folder", FS: root.FS(), Path: "."}})
	if err != nil {
		o.discard()
		return fmt.Errorf("working folder %s: %w", handle, err)
	}
	for _, t := range trees {
		all := gathered{}
		for i, f := range t.Files {
			t.Files[i].Path = strings.TrimPrefix(f.Path, "folder/")
			all[t.Files[i].Path] = t.FS.(gathered)[f.Path]
		}
		s.Trees = append(s.Trees, sandbox.Tree{Path: sandbox.WorkDir, FS: all, Files: t.Files})
	}
	return nil
}

// isHandle reports whether s may name a folder: what we gave out.
func isHandle(s string) bool {
	return len(s) == 16 && !strings.ContainsFunc(s, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '2' || r > '7') })
}

// lockFolder lets one run at a time use a folder, of all processes.
func lockFolder(ctx context.Context, dir string) (func(), error) {
	f, err := os.OpenFile(dir+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the working folder: %w", err)
	}
	if err := filelock.Wait(ctx, f); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock the working folder: %w", err)
	}
	return func() { f.Close() }, nil
}

// folderLife is how long a working folder is kept after its last use.
const folderLife = 7 * 24 * time.Hour

// sweepFolders removes working folders that nobody used for a long time.
func sweepFolders(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		handle, _, _ := strings.Cut(e.Name(), ".")
		fi, err := e.Info()
		if err != nil || time.Since(fi.ModTime()) < folderLife || !isHandle(handle) && !strings.HasPrefix(e.Name(), ".loadout-out-") {
			continue
		}
		if isHandle(handle) {
			sweepFolder(filepath.Join(dir, handle))
			continue
		}
		os.RemoveAll(filepath.Join(dir, e.Name()))
	}
}

// sweepFolder removes a folder and its lock, if it is old and nobody has it.
func sweepFolder(dir string) {
	lock, err := os.OpenFile(dir+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return
	}
	defer lock.Close()
	if err := filelock.Try(lock); err != nil {
		return
	}
	// Its lock is as old as its first use: what counts is the folder.
	if fi, err := os.Lstat(dir); err == nil && time.Since(fi.ModTime()) < folderLife {
		return
	}
	os.RemoveAll(dir)
	os.Remove(dir + ".lock")
}

// collect takes a file of the run. What is not for the person is counted.
func (o *outlet) collect(f sandbox.File, r io.Reader) (bool, error) {
	out, handed := strings.CutPrefix(f.Path, "out/")
	name := f.Path
	if o.handle == "" {
		if name = out; !handed {
			if !strings.HasPrefix(f.Path, ".") {
				o.left++
			}
			return false, nil
		}
		if strings.HasPrefix(name, ".") {
			// In a directory of the person such names make other programs do
			// things: .git/hooks, .bashrc.
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

// keep puts the files in place.
func (o *outlet) keep(res *sandbox.Result) error {
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
		defer os.RemoveAll(o.arrive)
		return merge(o.arrive, o.dir)
	}
	o.before.Close()
	if o.fresh && len(res.Files) == 0 { // there is nothing to come back to
		o.handle = ""
		return errors.Join(os.RemoveAll(o.arrive), o.forget())
	}
	// The folder is replaced as a whole: what the script removed is gone.
	old := o.arrive + ".old"
	if err := os.Rename(o.dir, old); err != nil {
		return err
	}
	if err := os.Rename(o.arrive, o.dir); err != nil {
		return errors.Join(err, os.Rename(old, o.dir))
	}
	return os.RemoveAll(old)
}

// discard forgets what came.
func (o *outlet) discard() {
	if o.before != nil {
		o.before.Close()
	}
	if o.root != nil {
		o.root.Close()
	}
	if o.arrive != "" {
		os.RemoveAll(o.arrive)
	}
	if o.fresh {
		_ = o.forget() // nobody was told of it
	}
	o.unlock()
}

// forget removes the working folder.
func (o *outlet) forget() error { return errors.Join(os.RemoveAll(o.dir), os.Remove(o.dir+".lock")) }

// merge moves files into a directory of the person, through nothing but real
// directories, in place of files of the same name.
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
		if err := dst.Remove(p); err != nil { // a link is replaced, not followed
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

// FolderPath is where a working folder is on this machine.
func (r *Runtime) FolderPath(handle string) (string, error) {
	if r.scripts == nil || r.scripts.Folders == "" || !isHandle(handle) {
		return "", ErrNoFolder
	}
	return filepath.Join(r.scripts.Folders, handle), nil
}
