package privatefile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// UnsafeError is returned if a file or directory may have been written by
// another user, or is not a regular file or directory. Its content was not
// read.
type UnsafeError struct {
	Path   string
	Reason string
}

// Error returns a message with the path and the reason.
func (e *UnsafeError) Error() string { return e.Path + " cannot be trusted: " + e.Reason }

// CheckInfo returns an [*UnsafeError] unless the file or directory belongs to
// the current user and no other user can write to it.
func CheckInfo(path string, info fs.FileInfo, want fs.FileMode) error {
	reason := ""
	switch t := info.Mode().Type(); {
	case t == fs.ModeSymlink:
		reason = "symbolic link"
	case t != want && want == fs.ModeDir:
		reason = "not a directory"
	case t != want:
		reason = "not a regular file"
	default:
		reason = unsafeReason(info)
	}
	if reason == "" {
		return nil
	}
	return &UnsafeError{Path: path, Reason: reason}
}

// OpenDir opens a directory after checking that only this user can write to it.
func OpenDir(dir string) (*os.Root, error) {
	before, err := os.Lstat(dir)
	if err != nil {
		return nil, err
	}
	if err := CheckInfo(dir, before, fs.ModeDir); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	now, err := root.Stat(".")
	if err == nil && !os.SameFile(before, now) {
		err = &UnsafeError{Path: dir, Reason: "replaced while being opened"}
	}
	if err == nil {
		err = CheckInfo(dir, now, fs.ModeDir)
	}
	if err != nil {
		root.Close()
		return nil, err
	}
	return root, nil
}

// OpenFile opens a file in root after checking that only this user can write to
// it. It creates the file if flag has os.O_CREATE. If the check
// fails, it returns an [*UnsafeError] with path.
func OpenFile(root *os.Root, name, path string, flag int) (*os.File, error) {
	before, err := root.Lstat(name) // opening a pipe would block
	if err == nil {
		err = CheckInfo(path, before, 0)
	} else if flag&os.O_CREATE != 0 && errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return nil, err
	}
	f, err := root.OpenFile(name, flag, 0o600)
	if err != nil {
		return nil, err
	}
	now, err := f.Stat()
	if err == nil && before != nil && !os.SameFile(before, now) {
		// Another process may have replaced the file by a rename, so the caller
		// can try again.
		err = ErrReplaced
	}
	if err == nil {
		err = CheckInfo(path, now, 0)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// ErrReplaced is returned if another process replaced the file while it was
// being opened.
var ErrReplaced = errors.New("file was replaced while being opened")

// ReadFile opens a file like [OpenFile] and reads it. It returns an error if
// the file has more than maxBytes bytes.
func ReadFile(root *os.Root, name, path string, maxBytes int64) ([]byte, error) {
	var f *os.File
	var err error
	for range 100 { // retry if the file was replaced meanwhile
		if f, err = OpenFile(root, name, path, os.O_RDONLY); !errors.Is(err, ErrReplaced) {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err == nil && int64(len(data)) > maxBytes {
		err = &UnsafeError{Path: path, Reason: fmt.Sprintf("too large (limit %d bytes)", maxBytes)}
	}
	return data, err
}
