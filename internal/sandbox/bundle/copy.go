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

// Copy writes the content of a tree's file to w. It verifies the content while
// copying. If the content does not match the manifest, Copy may write some of
// it before failing with a [*sandbox.ChangedError].
func Copy(w io.Writer, t *sandbox.Tree, f sandbox.File) error {
	changed := func(err error) error { return &sandbox.ChangedError{Tree: t.Path, Path: f.Path, Err: err} }
	fi, err := fs.Stat(t.FS, f.Path)
	if err == nil && !fi.Mode().IsRegular() {
		err = errors.New("not a regular file") // checked first, because opening a pipe would block
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

// source is a reader that records its error, to distinguish read errors from
// write errors.
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

// Cache returns the default cache directory. Only this user can change it, and
// programs in it can be executed.
func Cache() (string, error) {
	if os.Geteuid() == 0 {
		return "/var/cache/loadout", nil
	}
	dir, err := os.UserCacheDir()
	return filepath.Join(dir, "loadout"), err
}
