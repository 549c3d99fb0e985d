package clientconfig

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// maxFile bounds a configuration file.
const maxFile = 8 << 20

// current is a file as it was read.
type current struct {
	exists bool
	data   []byte
	info   fs.FileInfo // nil where it does not exist
}

// Apply writes the change. It does nothing for [None].
//
// The file is replaced in one step, keeping its mode and, where the system
// lets it, its owner; hard links to it and extended attributes are lost. A new
// file has mode 0600, directories that are missing get 0700. It fails with an
// [ErrChanged] and writes nothing if the file is no longer what Plan read;
// between that check and the replacement there is a moment in which another
// program's write would be lost. After an error the file is as it was, unless
// the error says that a backup could not be deleted. Apply succeeds once.
func (c *Change) Apply() error {
	if c.Action == None {
		return nil
	}
	if err := c.unchanged(); err != nil {
		return err
	}
	if c.Action == Delete {
		if err := os.Remove(c.Target); err != nil {
			return c.failed("delete", err)
		}
		return c.removeBackups()
	}
	if err := os.MkdirAll(filepath.Dir(c.Target), 0o700); err != nil {
		return c.failed("make the directory of", err)
	}
	made, err := c.backUp()
	if err != nil {
		return err
	}
	if err := c.replace(); err != nil {
		if made {
			os.Remove(c.Backup)
		}
		return err
	}
	return c.removeBackups()
}

func (c *Change) failed(verb string, err error) error {
	return &FileError{File: c.Target, Problem: "cannot " + verb + " it: " + reason(err), Fix: "see who may write there, or change the file by hand", Err: err}
}

// reason is the cause of an error without the path that is named already.
func reason(err error) string {
	var p *fs.PathError
	var l *os.LinkError
	switch {
	case errors.As(err, &p):
		return p.Err.Error()
	case errors.As(err, &l):
		return l.Err.Error()
	}
	return err.Error()
}

// unchanged compares the file with what was read.
func (c *Change) unchanged() error {
	target, err := follow(c.File)
	if err != nil {
		return err
	}
	now, err := readFile(target)
	if err != nil {
		return err
	}
	if target != c.Target || now.exists != c.before.exists || !bytes.Equal(now.data, c.before.data) {
		return kindError{ErrChanged, c.File + " changed while its change was being looked at; nothing was written, look at it again"}
	}
	return nil
}

// replace puts the new text in the place of the file.
func (c *Change) replace() (err error) {
	defer func() {
		if err != nil && !errors.Is(err, ErrChanged) {
			err = c.failed("write", err)
		}
	}()
	f, err := os.CreateTemp(filepath.Dir(c.Target), ".loadout-*.tmp")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone by then, if all is well
	if err := errors.Join(c.fill(f), f.Close()); err != nil {
		return err
	}
	if err := c.unchanged(); err != nil {
		return err
	}
	return os.Rename(f.Name(), c.Target)
}

// fill writes the new text, and gives f the mode and owner of the old file.
func (c *Change) fill(f *os.File) error {
	if _, err := f.Write(c.after); err != nil {
		return err
	}
	if c.before.exists {
		if err := keepOwner(f, c.before.info); err != nil {
			return err
		}
		if err := f.Chmod(c.before.info.Mode().Perm()); err != nil {
			return err
		}
	}
	return f.Sync()
}

// follow returns the file that path leads to, through links in any part of it.
// What it leads to need not exist.
func follow(path string) (string, error) {
	missing := ""
	for range 100 {
		real, err := filepath.EvalSymlinks(path)
		if err == nil {
			return filepath.Join(real, missing), nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", &FileError{File: path, Problem: "cannot follow it: " + reason(err), Fix: "mend the link or the rights on its directories", Err: err}
		}
		dir, base := filepath.Dir(path), filepath.Base(path)
		if link, err := os.Readlink(path); err == nil { // a link to nothing, yet
			if dir, err = filepath.EvalSymlinks(dir); err != nil {
				return "", err
			}
			if path = link; !filepath.IsAbs(link) {
				path = filepath.Join(dir, link)
			}
			continue
		}
		if dir == path {
			return "", err
		}
		path, missing = dir, filepath.Join(base, missing)
	}
	return "", &FileError{File: path, Problem: "its links lead nowhere", Fix: "mend the link"}
}

// readFile reads a regular file of bounded size, or says that there is none.
func readFile(path string) (current, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return current{}, nil
	}
	if err != nil {
		return current{}, unreadable(path, err)
	}
	if !info.Mode().IsRegular() { // before opening: a pipe would wait
		return current{}, &FileError{File: path, Problem: "it is not a regular file", Fix: "move it away, or name another file"}
	}
	f, err := os.Open(path)
	if err != nil {
		return current{}, unreadable(path, err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return current{}, unreadable(path, err)
	}
	if len(data) > maxFile {
		return current{}, &FileError{File: path, Problem: fmt.Sprintf("the file is larger than %d MiB", maxFile>>20), Fix: "add the entry by hand"}
	}
	return current{exists: true, data: data, info: info}, nil
}

func unreadable(path string, err error) error {
	return &FileError{File: path, Problem: "cannot read it: " + reason(err), Fix: "see who may read it, or name another file", Err: err}
}

// writable refuses a file its owner made read-only. Renaming over it would
// work, but not be what the owner meant.
func (f current) writable(path string) error {
	if f.exists && f.info.Mode().Perm()&0o200 == 0 {
		return &FileError{File: path, Problem: "the file is read-only", Fix: "make it writable first, or change what generates it"}
	}
	return nil
}
