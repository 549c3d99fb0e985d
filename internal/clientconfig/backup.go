package clientconfig

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

const (
	backupSuffix = ".loadout-backup"
	maxBackups   = 9
)

// backup is a copy of the file from before a change. The package comment has
// the rules.
type backup struct {
	file string
	data []byte
	doc  document // set by lastWithout
}

func backupName(file string, n int) string {
	if n == 1 {
		return file + backupSuffix
	}
	return fmt.Sprintf("%s%s-%d", file, backupSuffix, n)
}

// backupFor returns the backup of these bytes: the first that holds them or
// that is free.
func backupFor(file string, data []byte) (string, error) {
	for n := 1; n <= maxBackups; n++ {
		name := backupName(file, n)
		info, err := os.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			return name, nil
		}
		if err != nil {
			return "", unreadable(name, err)
		}
		if holds(name, info, data) {
			return name, nil
		}
	}
	return "", &FileError{File: file, Problem: fmt.Sprintf("there are %d backups of it", maxBackups),
		Fix: "delete those of the files " + backupName(file, 1) + "* that are not needed"}
}

// holds reports whether a file, which is no link, has these bytes.
func holds(name string, info fs.FileInfo, data []byte) bool {
	if !info.Mode().IsRegular() || info.Size() != int64(len(data)) {
		return false
	}
	have, err := readFile(name)
	return err == nil && bytes.Equal(have.data, data)
}

// backUp makes the planned backup, and reports whether it did: it may be there.
func (c *Change) backUp() (made bool, err error) {
	if c.Backup == "" {
		return false, nil
	}
	f, err := os.OpenFile(c.Backup, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		if info, err := os.Lstat(c.Backup); err == nil && holds(c.Backup, info, c.before.data) {
			return false, nil
		}
		return false, kindError{ErrChanged, c.Backup + " appeared meanwhile; nothing was written, look at the change again"}
	}
	if err != nil {
		return false, c.failed("back up", err)
	}
	_, err = f.Write(c.before.data)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		os.Remove(c.Backup)
		return false, c.failed("back up", err)
	}
	return true, nil
}

// readBackups returns the backups of a file, the oldest first.
func readBackups(file string) ([]backup, error) {
	var found []backup
	for n := 1; n <= maxBackups; n++ {
		name := backupName(file, n)
		if info, err := os.Lstat(name); err != nil || !info.Mode().IsRegular() {
			continue
		}
		have, err := readFile(name)
		if err != nil {
			return nil, err
		}
		found = append(found, backup{file: name, data: have.data})
	}
	return found, nil
}

// holds reports whether the entry is in the backup.
func (b backup) holds(c Client, name string) bool {
	doc, err := parse(c, b.data)
	if err != nil {
		return false
	}
	_, there, err := doc.value(name)
	return there || err != nil
}

// lastWithout returns the newest backup in which the entry is not yet, nil for
// none.
func lastWithout(c Client, backups []backup, name string) *backup {
	for i := len(backups) - 1; i >= 0; i-- {
		b := backups[i]
		doc, err := parse(c, b.data)
		if err != nil {
			continue
		}
		if _, there, err := doc.value(name); err == nil && !there {
			b.doc = doc
			return &b
		}
	}
	return nil
}

// removeBackups deletes what an undo no longer needs.
func (c *Change) removeBackups() error {
	for _, name := range c.Removes {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return &FileError{File: name, Problem: "the entry is out, but this backup cannot be deleted: " + reason(err), Fix: "delete it yourself", Err: err}
		}
	}
	return nil
}
