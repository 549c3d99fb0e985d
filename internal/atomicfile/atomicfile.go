// Package atomicfile replaces files atomically: a reader sees either the old
// content or the new content.
package atomicfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Write replaces or creates the file at path and syncs it to disk. If it
// returns an error, the old file is unchanged. A symlink is replaced, not
// followed.
func Write(path string, data []byte, mode fs.FileMode) error {
	return WriteFunc(path, mode, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// WriteFunc is like [Write], but calls write to write the content. If write
// returns an error, WriteFunc returns it and the old file is unchanged.
func WriteFunc(path string, mode fs.FileMode, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".loadout-*.tmp") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // does nothing after the rename
	if err := errors.Join(write(f), f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
