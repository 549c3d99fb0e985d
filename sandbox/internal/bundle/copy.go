package bundle

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/loadout-dev/loadout/sandbox"
)

// Copy writes the bytes of a file of the tree. It fails with a
// [*sandbox.ChangedError] if they are not those that the file names, which is
// known when all are written.
func Copy(w io.Writer, t *sandbox.Tree, f sandbox.File) error {
	changed := func(err error) error { return &sandbox.ChangedError{Tree: t.Path, Path: f.Path, Err: err} }
	fi, err := fs.Stat(t.FS, f.Path)
	if err == nil && !fi.Mode().IsRegular() {
		err = errors.New("it is no regular file") // opening a pipe would wait for a writer
	}
	if err != nil {
		return changed(err)
	}
	src, err := t.FS.Open(f.Path)
	if err != nil {
		return changed(err)
	}
	defer src.Close()
	h := sha256.New()
	from := &source{r: io.LimitReader(src, f.Size+1)}
	n, err := io.Copy(w, io.TeeReader(from, h))
	switch {
	case from.err != nil:
		return changed(from.err)
	case err != nil:
		return err
	case n != f.Size, f.SHA256 != "" && !strings.EqualFold(hex.EncodeToString(h.Sum(nil)), f.SHA256):
		return changed(nil)
	}
	return nil
}

// source remembers an error of reading, which is not one of writing.
type source struct {
	r   io.Reader
	err error
}

func (s *source) Read(b []byte) (int, error) {
	n, err := s.r.Read(b)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

// Cache is where bundles are by default: a place that only this user changes,
// and where programs can be started from.
func Cache() (string, error) {
	if os.Geteuid() == 0 {
		return "/var/cache/loadout", nil
	}
	dir, err := os.UserCacheDir()
	return filepath.Join(dir, "loadout"), err
}

// Program returns the file of an executable in a copy in the cache, for users
// who cannot reach where it is.
func Program(cache, exe string) (string, *Bundle, error) {
	f, err := os.Open(exe)
	if err != nil {
		return "", nil, err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	if err != nil {
		return "", nil, err
	}
	const name = "loadout-stage"
	b, err := Open(cache, &sandbox.Tree{Path: "program", FS: alone{name, exe},
		Files: []sandbox.File{{Path: name, Size: n, SHA256: hex.EncodeToString(h.Sum(nil)), Exec: true}}})
	if err != nil {
		return "", nil, err
	}
	return filepath.Join(b.Dir, name), b, nil
}

// alone is a file system with one file.
type alone struct{ name, path string }

func (a alone) Open(name string) (fs.File, error) {
	if name != a.name {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return os.Open(a.path)
}
