// Package bundle caches verified copies of read-only trees on the host, for
// backends that cannot copy files into a running sandbox. A copy is stored at
// bundles/KEY in a cache directory. KEY is derived from the paths and hashes in
// the manifest, so a changed skill gets a new bundle.
//
// Copies are never trusted. Before each use, the tree is read and hashed again
// and compared with the copy byte by byte. A copy that differs, or has missing
// or additional files, is replaced. The copy of our own program is the exception;
// see [Program].
package bundle

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/sandbox"
)

// maxAge is how long an unused bundle is kept.
const maxAge = 30 * 24 * time.Hour

// Bundle is a cached copy of a tree. It is not removed from the cache while it
// is open.
type Bundle struct {
	Dir  string
	held *os.File
}

// Close releases the bundle, which stays in the cache.
func (b *Bundle) Close() {
	if b != nil && b.held != nil {
		b.held.Close()
	}
}

// Open returns a cached copy of the tree, creating it if necessary. The copy is
// readable by all users and writable by none. If the tree does not match its
// manifest, the error is a [*sandbox.ChangedError]. Open is safe for concurrent
// use by several processes.
func Open(cache string, t *sandbox.Tree) (*Bundle, error) {
	all := filepath.Join(cache, "bundles")
	if err := os.MkdirAll(all, 0o755); err != nil {
		return nil, fmt.Errorf("create bundle cache: %w", err)
	}
	dir := filepath.Join(all, key(t))
	for range 3 { // another process may interfere up to two times
		b, err := reuse(dir, t)
		if b != nil || err != nil {
			return b, err
		}
		if err := create(all, dir, t); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("create bundle %s: another process changed the directory (3 attempts)", dir)
}

// key returns a hash of the contents and modes of a tree.
func key(t *sandbox.Tree) string {
	h := sha256.New()
	for _, f := range t.Files {
		fmt.Fprintf(h, "%s %t %d %q\n", strings.ToLower(f.SHA256), f.Exec, f.Size, f.Path)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// reuse returns the bundle at dir, or nil if it does not exist or differs from
// the tree.
func reuse(dir string, t *sandbox.Tree) (*Bundle, error) {
	held, err := openLocked(dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return nil, fmt.Errorf("open bundle: %w", err)
	}
	same, err := compare(dir, t)
	if err != nil {
		held.Close()
		return nil, err
	}
	if !same {
		held.Close()
		discard(dir)
		return nil, nil
	}
	now := time.Now()
	os.Chtimes(dir, now, now) // for sweep, the time of last use
	return &Bundle{Dir: dir, held: held}, nil
}

// openLocked opens and locks the directory dir, so that sweep does not remove
// it.
func openLocked(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := lock(f, false); err != nil {
		f.Close()
		return nil, err
	}
	have, err := f.Stat()
	now, err2 := os.Lstat(dir)
	if err == nil && (err2 != nil || !os.SameFile(have, now)) {
		f.Close()
		return nil, fs.ErrNotExist // removed before it was locked
	}
	return f, err
}

// compare verifies the tree and reports whether dir is an exact copy of it.
func compare(dir string, t *sandbox.Tree) (bool, error) {
	same := hasShape(dir, t)
	root, err := os.OpenRoot(dir)
	if err != nil {
		return false, err
	}
	defer root.Close()
	for _, f := range t.Files {
		var copied io.ReadCloser
		if same {
			if copied, err = root.Open(f.Path); err != nil {
				same = false
			}
		}
		d := &comparer{r: copied, same: same}
		err := Copy(d, t, f)
		same = d.same && same
		if copied != nil {
			copied.Close()
		}
		if err != nil {
			return false, err
		}
	}
	return same, nil
}

// comparer is a writer that compares the data written to it with the data from
// a reader.
type comparer struct {
	r    io.Reader
	same bool
	buf  []byte
}

func (d *comparer) Write(b []byte) (int, error) {
	if d.same {
		if len(d.buf) < len(b) {
			d.buf = make([]byte, len(b))
		}
		_, err := io.ReadFull(d.r, d.buf[:len(b)])
		d.same = err == nil && bytes.Equal(d.buf[:len(b)], b)
	}
	return len(b), nil
}

// hasShape reports whether dir contains exactly the files of the tree, with the
// same sizes and modes.
func hasShape(dir string, t *sandbox.Tree) bool {
	want := map[string]*sandbox.File{}
	dirs := map[string]bool{".": true}
	for i, f := range t.Files {
		want[f.Path] = &t.Files[i]
		for d := filepath.ToSlash(filepath.Dir(f.Path)); d != "."; d = filepath.ToSlash(filepath.Dir(d)) {
			dirs[d] = true
		}
	}
	left := len(want)
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		rel = filepath.ToSlash(rel)
		fi, err := e.Info()
		switch {
		case err != nil:
			return err
		case e.IsDir() && dirs[rel] && hasMode(fi, 0o555):
			return nil
		case e.Type().IsRegular() && want[rel] != nil && fi.Size() == want[rel].Size && hasMode(fi, fileMode(want[rel])):
			left--
			return nil
		}
		return errOther
	})
	return err == nil && left == 0
}

var errOther = errors.New("unexpected file")

func fileMode(f *sandbox.File) fs.FileMode {
	if f.Exec {
		return 0o555
	}
	return 0o444
}

// create creates a bundle in a temporary directory in parent, the directory of
// all bundles, and renames it to dir.
func create(parent, dir string, t *sandbox.Tree) error {
	sweep(parent)
	tmp := filepath.Join(parent, ".new-"+rand.Text())
	if err := os.Mkdir(tmp, 0o755); err != nil {
		return fmt.Errorf("create bundle: %w", err)
	}
	defer remove(tmp) // has no effect after a successful rename
	root, err := os.OpenRoot(tmp)
	if err != nil {
		return fmt.Errorf("create bundle: %w", err)
	}
	defer root.Close()
	for _, f := range t.Files {
		if err := copyFile(root, t, f); err != nil {
			return err
		}
	}
	if err := protect(tmp); err != nil {
		return fmt.Errorf("create bundle: %w", err)
	}
	if err := os.Rename(tmp, dir); err != nil && !isDir(dir) {
		return fmt.Errorf("create bundle: %w", err)
	}
	return nil
}

func isDir(dir string) bool {
	_, err := os.Lstat(dir)
	return err == nil
}

func copyFile(root *os.Root, t *sandbox.Tree, f sandbox.File) error {
	if d := filepath.Dir(f.Path); d != "." {
		if err := root.MkdirAll(d, 0o755); err != nil {
			return fmt.Errorf("create bundle: %w", err)
		}
	}
	w, err := root.OpenFile(f.Path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("create bundle: %w", err)
	}
	defer w.Close()
	if err := Copy(w, t, f); err != nil {
		return err
	}
	if err := w.Chmod(fileMode(&f)); err != nil {
		return fmt.Errorf("create bundle: %w", err)
	}
	return w.Close()
}

// protect makes all directories of a bundle read-only.
func protect(dir string) error {
	return filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			err = os.Chmod(p, 0o555)
		}
		return err
	})
}

// discard removes an invalid bundle, renaming it first.
func discard(dir string) {
	away := filepath.Join(filepath.Dir(dir), ".old-"+rand.Text())
	if os.Rename(dir, away) == nil {
		remove(away)
	}
}

// remove removes a bundle, including its read-only directories.
func remove(dir string) {
	filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if e != nil && e.IsDir() {
			os.Chmod(p, 0o755)
		}
		return nil
	})
	os.RemoveAll(dir)
}

// sweep removes incomplete bundles in the directory parent, and those that have
// not been used for maxAge.
func sweep(parent string) {
	entries, _ := os.ReadDir(parent)
	for _, e := range entries {
		fi, err := e.Info()
		if err != nil || time.Since(fi.ModTime()) < maxAge {
			continue
		}
		dir := filepath.Join(parent, e.Name())
		f, err := os.Open(dir)
		if err != nil {
			continue
		}
		if lock(f, true) == nil {
			discard(dir)
		}
		f.Close()
	}
}
