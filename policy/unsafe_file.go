package policy

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// UnsafeFileError reports a file or directory that was not read because another
// user may have written it, or because it is not a regular file or directory.
type UnsafeFileError struct {
	Path   string
	Reason string
}

// Error returns the path and the reason.
func (e *UnsafeFileError) Error() string { return e.Path + " cannot be trusted: " + e.Reason }

// checkInfo returns an error unless the file or directory belongs to the user
// who runs this program and no other user can write it.
func checkInfo(path string, info fs.FileInfo, want fs.FileMode) error {
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
	return &UnsafeFileError{Path: path, Reason: reason}
}

// openDir opens a directory after checking that it can be trusted.
func openDir(dir string) (*os.Root, error) {
	before, err := os.Lstat(dir)
	if err != nil {
		return nil, err
	}
	if err := checkInfo(dir, before, fs.ModeDir); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	now, err := root.Stat(".")
	if err == nil && !os.SameFile(before, now) {
		err = &UnsafeFileError{Path: dir, Reason: "replaced while being opened"}
	}
	if err == nil {
		err = checkInfo(dir, now, fs.ModeDir)
	}
	if err != nil {
		root.Close()
		return nil, err
	}
	return root, nil
}

// openFile opens a file of root after checking that it can be trusted. It
// creates the file if flag has os.O_CREATE. path is for messages.
func openFile(root *os.Root, name, path string, flag int) (*os.File, error) {
	before, err := root.Lstat(name) // opening a pipe would block
	if err == nil {
		err = checkInfo(path, before, 0)
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
		// This may be another process that replaced the file by a rename, so
		// the caller can try again.
		err = errReplaced
	}
	if err == nil {
		err = checkInfo(path, now, 0)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

var errReplaced = errors.New("replaced while being opened")

// readFile reads a trusted file of at most most bytes.
func readFile(root *os.Root, name, path string, most int64) ([]byte, error) {
	var f *os.File
	var err error
	for range 100 { // each time the file was replaced meanwhile
		if f, err = openFile(root, name, path, os.O_RDONLY); !errors.Is(err, errReplaced) {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = &UnsafeFileError{Path: path, Reason: fmt.Sprintf("too large (limit %d bytes)", most)}
	}
	return data, err
}
