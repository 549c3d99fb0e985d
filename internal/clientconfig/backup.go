package clientconfig

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
)

const (
	backupSuffix = ".loadout-backup"
	maxBackups   = 9
)

// backup is a copy of the file made before a change. See "Backups" in the
// package comment.
type backup struct {
	file string
	data []byte
	doc  document // parsed by newestWithout
}

func backupName(file string, n int) string {
	if n == 1 {
		return file + backupSuffix
	}
	return fmt.Sprintf("%s%s-%d", file, backupSuffix, n)
}

// backupFor returns the path for a backup of data: the first path that does not
// exist or already contains data.
func backupFor(file string, data []byte) (string, error) {
	for n := 1; n <= maxBackups; n++ {
		name := backupName(file, n)
		info, err := os.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			return name, nil
		}
		if err != nil {
			return "", readError(name, err)
		}
		if hasContent(name, info, data) {
			return name, nil
		}
	}
	return "", &FileError{File: file, Problem: fmt.Sprintf("too many backups (limit %d)", maxBackups),
		Fix: "delete the files " + backupName(file, 1) + "* that you do not need"}
}

// hasContent reports whether a file contains exactly data. It returns false for
// a symlink.
func hasContent(name string, info fs.FileInfo, data []byte) bool {
	if !info.Mode().IsRegular() || info.Size() != int64(len(data)) {
		return false
	}
	have, err := readFile(name)
	return err == nil && bytes.Equal(have.data, data)
}

// backUp writes the planned backup. made is false if the backup already exists.
func (c *Change) backUp() (made bool, err error) {
	if c.Backup == "" {
		return false, nil
	}
	f, err := os.OpenFile(c.Backup, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		if info, err := os.Lstat(c.Backup); err == nil && hasContent(c.Backup, info, c.before.data) {
			return false, nil
		}
		return false, kindError{ErrChanged, c.Backup + " was created in the meantime; nothing was written, review the change again"}
	}
	if err != nil {
		return false, c.fileError("back up", err)
	}
	_, err = f.Write(c.before.data)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		os.Remove(c.Backup)
		return false, c.fileError("back up", err)
	}
	return true, nil
}

// readBackups returns the backups of a file, oldest first. The result is never
// nil.
func readBackups(file string) ([]backup, error) {
	found := []backup{}
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

// hasUserEntry reports whether the backup contains an entry that the user may
// have written. Loadout wrote the entry if it has no options and the backup is
// exactly the result of adding it to an older backup or to an empty file.
func (b backup) hasUserEntry(c Client, name string, older []backup) bool {
	doc, err := parse(c, b.data)
	if err != nil {
		return false
	}
	value, there, err := doc.entry(name)
	if err != nil || !there {
		return err != nil
	}
	e, ok := c.parseEntry(name, value)
	if !ok || !e.isPlain() {
		return true
	}
	for _, o := range append([]backup{{}}, older...) {
		if bytes.Equal(addEntry(c, o.data, e), b.data) {
			return false
		}
	}
	return true
}

// newestWithout returns the newest backup that does not contain the entry, or
// contains a user's entry that does not start Loadout. It returns nil if there
// is none. kept lists the backups with a user's entry, as reported by
// hasUserEntry.
func newestWithout(c Client, backups, kept []backup, name string) *backup {
	for i := len(backups) - 1; i >= 0; i-- {
		b := backups[i]
		doc, err := parse(c, b.data)
		if err != nil {
			continue
		}
		value, there, err := doc.entry(name)
		isKept := slices.ContainsFunc(kept, func(k backup) bool { return k.file == b.file })
		if err == nil && (!there || isKept && !c.startsLoadout(name, value)) {
			b.doc = doc
			return &b
		}
	}
	return nil
}

// checkBackups returns [ErrChanged] if the backups have changed since the undo
// was planned.
func (c *Change) checkBackups() error {
	if c.backups == nil {
		return nil
	}
	now, err := readBackups(c.File)
	if err != nil {
		return err
	}
	if !slices.EqualFunc(now, c.backups, func(a, b backup) bool { return a.file == b.file && bytes.Equal(a.data, b.data) }) {
		return kindError{ErrChanged, "the backups of " + c.File + " changed during the review; nothing was written, review the change again"}
	}
	return nil
}

// removeBackups deletes the backups that are no longer needed after an undo.
func (c *Change) removeBackups() error {
	for _, name := range c.Removes {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return &FileError{File: name, Problem: "the entry was removed, but this backup cannot be deleted: " + causeText(err), Fix: "delete it yourself", Err: err}
		}
	}
	return nil
}
