//go:build !linux

package catalog

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// dirfd is a directory, addressed by path.
type dirfd struct{ path string }

func openDir(path string) (*dirfd, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !fi.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("not a directory")}
	}
	return &dirfd{path}, nil
}

func (d *dirfd) close() {}

func (d *dirfd) sub(name string) (*dirfd, error) { return openDir(filepath.Join(d.path, name)) }

func (d *dirfd) list([]byte) ([]dirent, error) {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return nil, err
	}
	out := make([]dirent, 0, len(entries))
	for _, e := range entries {
		k := kindOther
		switch t := e.Type(); {
		case t.IsDir():
			k = kindDir
		case t.IsRegular():
			k = kindFile
		case t&fs.ModeSymlink != 0:
			k = kindUnknown
		}
		out = append(out, dirent{e.Name(), k})
	}
	return out, nil
}

func (d *dirfd) stat(name string) (stamp, kind, error) {
	fi, err := os.Stat(filepath.Join(d.path, name))
	if err != nil {
		return stamp{}, kindOther, err
	}
	return stampOfInfo(fi), infoKind(fi), nil
}

// statDir returns no stamp, because these systems count links differently.
func (d *dirfd) statDir(string) (stamp, uint64) { return stamp{}, 0 }

func (d *dirfd) hasDir(string) bool { return false }

func (d *dirfd) self() (stamp, error) {
	fi, err := os.Stat(d.path)
	if err != nil {
		return stamp{}, err
	}
	return stampOfInfo(fi), nil
}

func (d *dirfd) readHead(name string, buf []byte) (int, stamp, error) {
	path := filepath.Join(d.path, name)
	fi, err := os.Lstat(path)
	switch {
	case err != nil:
		return 0, stamp{}, err
	case fi.Mode()&fs.ModeSymlink != 0:
		return readLinked(path, buf)
	case !fi.Mode().IsRegular(): // opening a pipe would block
		return 0, stamp{}, fmt.Errorf("read %s: not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return 0, stamp{}, err
	}
	defer f.Close()
	if fi, err = f.Stat(); err != nil {
		return 0, stamp{}, err
	}
	n, err := io.ReadFull(f, buf)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = nil
	}
	return n, stampOfInfo(fi), err
}

// files always returns false, so that the caller uses the portable
// implementation.
func (d *dirfd) files(string, []byte, func(string, int64, fs.FileMode) bool) (bool, error) {
	return false, nil
}

func infoKind(fi fs.FileInfo) kind {
	switch {
	case fi.IsDir():
		return kindDir
	case fi.Mode().IsRegular():
		return kindFile
	}
	return kindOther
}
