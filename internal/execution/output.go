package execution

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/loadout-dev/loadout/internal/printable"
	"github.com/loadout-dev/loadout/internal/sandbox/execute"
	"github.com/loadout-dev/loadout/internal/skillpath"
	"github.com/loadout-dev/loadout/sandbox"
)

// Output specifies where to save the files that a run writes. The zero value
// saves none.
type Output struct {
	FolderDir string // directory that contains the working folders; "" disables them
	Folder    string // handle of a working folder that an earlier run returned
	NewFolder bool   // create a working folder if Folder is ""
	Dir       string // directory for the files in /work/out if there is no working folder
}

// collector saves the output files of a run to the user's directory or a
// working folder, or discards them. It writes them to a temporary directory and
// moves them to the destination when all are complete.
type collector struct {
	handle   string // handle of the working folder
	dir      string // destination, or "" for none
	incoming string // temporary directory
	root     *os.Root
	previous *os.Root // working folder before the run, which is readable in the sandbox
	isNew    bool     // this run created the working folder
	unsaved  int
	hidden   int // number of files that were skipped because their names start with a dot
	unsafe   int // number of files that were skipped because their names are not portable
	reason   string
	unlock   func()
}

// newCollector opens the destination of a run's output files. It adds the
// working folder's files to the sandbox.
func newCollector(ctx context.Context, out Output, s *sandbox.Spec) (*collector, error) {
	o := &collector{unlock: func() {}}
	switch {
	case out.Folder != "" || out.NewFolder:
		if err := o.openFolder(ctx, out.FolderDir, out.Folder, s); err != nil {
			return nil, err
		}
	case out.Dir != "":
		o.dir = out.Dir
		if err := os.MkdirAll(o.dir, 0o777); err != nil {
			return nil, fmt.Errorf("create output directory: %w", err)
		}
	default:
		return o, nil
	}
	parent := o.dir // the parent of o.dir may belong to another user
	if o.handle != "" {
		parent = filepath.Dir(o.dir) // the whole folder is replaced
	}
	var err error
	if o.incoming, err = os.MkdirTemp(parent, ".loadout-out-"); err == nil {
		o.root, err = os.OpenRoot(o.incoming)
	}
	if err != nil {
		o.discard()
		return nil, fmt.Errorf("create temporary directory: %w", err)
	}
	return o, nil
}

// collect saves an output file, or counts it as not saved.
func (o *collector) collect(f sandbox.File, r io.Reader) (bool, error) {
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
			// In the user's directory, files such as .git/hooks and .bashrc
			// make other programs run code.
			o.hidden++
			return false, nil
		}
		if _, reason := skillpath.Check(name); reason != "" {
			if o.unsafe++; o.unsafe == 1 {
				o.reason = printable.Text(name, 100) + ": " + reason
			}
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
func (o *collector) commit(res *execute.Result) error {
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
		return mergeDir(o.incoming, o.dir)
	}
	o.previous.Close()
	if o.isNew && len(res.Files) == 0 { // the folder is empty, so no later run needs it
		o.handle = ""
		return errors.Join(os.RemoveAll(o.incoming), o.removeFolder())
	}
	// Replace the whole folder, so that it does not keep files that the script
	// removed.
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
func (o *collector) discard() {
	if o.previous != nil {
		o.previous.Close()
	}
	if o.root != nil {
		o.root.Close()
	}
	if o.incoming != "" {
		os.RemoveAll(o.incoming)
	}
	if o.isNew {
		_ = o.removeFolder() // its handle was never returned
	}
	o.unlock()
}

// removeFolder removes the working folder and its lock file.
func (o *collector) removeFolder() error {
	return errors.Join(os.RemoveAll(o.dir), os.Remove(o.dir+".lock"))
}

// mergeDir copies the files in srcDir to dstDir. It replaces files with the same
// name and does not follow symlinks.
func mergeDir(srcDir, dstDir string) error {
	src, err := os.OpenRoot(srcDir)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenRoot(dstDir)
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
		if err := dst.Remove(p); err != nil { // replace a symlink instead of following it
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
