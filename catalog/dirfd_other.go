//go:build !linux

package catalog

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/loadout-dev/loadout/skill"
)

// dirfd represents an open directory on systems where directories are opened by
// path. On these systems, a program that replaces a directory with a symlink
// between two calls can make it read outside the boundary.
type dirfd struct {
	path   string
	within *boundary // if not nil, symlinks to files must not lead outside it
}

func openDir(path string) (*dirfd, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !fi.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("not a directory")}
	}
	return &dirfd{path: path}, nil
}

func (d *dirfd) close() {}

// openInside returns nil, so that the caller uses openDir, which checks the
// directories on the path.
func openInside(base, path string) *dirfd { return nil }

// openDir opens the directory at path. If b is nil, path is not restricted.
func (b *boundary) openDir(path string) (*dirfd, error) {
	if b != nil {
		if _, err := b.resolve(path); err != nil {
			return nil, err
		}
	}
	d, err := openDir(path)
	if err != nil {
		return nil, err
	}
	d.within = b
	return d, nil
}

func (d *dirfd) sub(name string) (*dirfd, error) {
	sub, err := openDir(filepath.Join(d.path, name))
	if err != nil {
		return nil, err
	}
	sub.within = d.within
	return sub, nil
}

// subNoFollow is like sub, but fails if name is a symlink.
func (d *dirfd) subNoFollow(name string) (*dirfd, error) {
	if d.isLink(name) {
		return nil, &fs.PathError{Op: "open", Path: filepath.Join(d.path, name), Err: fmt.Errorf("is a symlink")}
	}
	return d.sub(name)
}

// openForLookup returns nil, because only Linux can open a directory just for
// resolving names in it.
func (d *dirfd) openForLookup(string) *dirfd { return nil }

// statNoFollow is like stat, but the kind of a symlink is kindUnknown.
func (d *dirfd) statNoFollow(name string) (stamp, kind, error) {
	fi, err := os.Lstat(filepath.Join(d.path, name))
	switch {
	case err != nil:
		return stamp{}, kindOther, err
	case fi.Mode()&fs.ModeSymlink != 0:
		return stampOfInfo(fi), kindUnknown, nil
	}
	return stampOfInfo(fi), infoKind(fi), nil
}

// isLink reports whether name is a symlink.
func (d *dirfd) isLink(name string) bool {
	_, k, err := d.statNoFollow(name)
	return err == nil && k == kindUnknown
}

// list returns the directory entries, unsorted, and the number of names it
// read. It stops after reading more than limit names.
func (d *dirfd) list(_ []byte, limit int) ([]dirent, int, error) {
	f, err := os.Open(d.path)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	var out []dirent
	for read := 0; ; {
		entries, err := f.ReadDir(1 << 10)
		for _, e := range entries {
			if read++; read > limit {
				return out, read, nil
			}
			out = append(out, dirent{e.Name(), entryKind(e)})
		}
		switch {
		case err == io.EOF:
			return out, read, nil
		case err != nil:
			return nil, read, err
		}
	}
}

func entryKind(e fs.DirEntry) kind {
	switch t := e.Type(); {
	case t.IsDir():
		return kindDir
	case t.IsRegular():
		return kindFile
	case t&fs.ModeSymlink != 0:
		return kindUnknown
	}
	return kindOther
}

func (d *dirfd) stat(name string) (stamp, kind, error) {
	fi, err := os.Stat(filepath.Join(d.path, name))
	if err != nil {
		return stamp{}, kindOther, err
	}
	return stampOfInfo(fi), infoKind(fi), nil
}

// statDir returns zero values, because systems other than Linux may count the
// links of a directory differently.
func (d *dirfd) statDir(string) (stamp, uint64) { return stamp{}, 0 }

type nameBuffer struct{}

// statLeaf returns false, for the same reason.
func (d *dirfd) statLeaf(*nameBuffer, string, string) (_, _ stamp, ok bool) {
	return stamp{}, stamp{}, false
}

func (d *dirfd) hasDir(string) bool { return false }

func (d *dirfd) self() (stamp, error) {
	fi, err := os.Stat(d.path)
	if err != nil {
		return stamp{}, err
	}
	return stampOfInfo(fi), nil
}

func (d *dirfd) readHead(name string, buf []byte) (int, stamp, error) {
	return d.readInto(name, func(int64) []byte { return buf })
}

func (d *dirfd) readInto(name string, alloc func(size int64) []byte) (int, stamp, error) {
	path := filepath.Join(d.path, name)
	fi, err := os.Lstat(path)
	switch {
	case err != nil:
		return 0, stamp{}, err
	case fi.Mode()&fs.ModeSymlink != 0:
		return readSymlinked(path, d.within, alloc)
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
	n, err := io.ReadFull(f, alloc(fi.Size()))
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = nil
	}
	return n, stampOfInfo(fi), err
}

// listFiles always returns false, so that the caller uses the portable
// implementation.
func (d *dirfd) listFiles() (skill.Manifest, bool) { return nil, false }
