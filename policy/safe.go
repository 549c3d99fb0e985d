package policy

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// UnsafeError says that a file or a directory was not read because somebody
// else may have written it, or it is nothing that this package writes.
type UnsafeError struct {
	Path   string
	Reason string
}

// Error names the path and the reason.
func (e *UnsafeError) Error() string { return e.Path + " cannot be trusted: " + e.Reason }

// checkInfo accepts a file or directory of the person who runs this program
// that nobody else can write.
func checkInfo(path string, info fs.FileInfo, want fs.FileMode) error {
	reason := ""
	switch t := info.Mode().Type(); {
	case t == fs.ModeSymlink:
		reason = "it is a symbolic link"
	case t != want && want == fs.ModeDir:
		reason = "it is no directory"
	case t != want:
		reason = "it is no regular file"
	default:
		reason = exposed(info)
	}
	if reason == "" {
		return nil
	}
	return &UnsafeError{Path: path, Reason: reason}
}

// openDir opens a directory that can be trusted.
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
		err = &UnsafeError{Path: dir, Reason: "it was replaced while it was opened"}
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

// openFile opens a file of root that can be trusted, and creates it where flag
// says so. path is for messages.
func openFile(root *os.Root, name, path string, flag int) (*os.File, error) {
	before, err := root.Lstat(name) // opening a pipe would wait for a writer
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
		// Another process that renamed a new file to this name is not told
		// from somebody else: the caller may try again.
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

var errReplaced = errors.New("it was replaced while it was opened")

// readFile reads a file of at most most bytes that can be trusted.
func readFile(root *os.Root, name, path string, most int64) ([]byte, error) {
	var f *os.File
	var err error
	for range 100 { // each time somebody wrote it anew in between
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
		err = &UnsafeError{Path: path, Reason: fmt.Sprintf("it has more than %d bytes", most)}
	}
	return data, err
}
