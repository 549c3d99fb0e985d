// Package outputlink reads the output files that links in run results refer to.
// Scripts write these files to their working folders. The package reads no
// other files. Start with [Read].
package outputlink

import (
	"errors"
	"io"
	"io/fs"
	"net/url"
	"os"
	"strings"

	"github.com/loadout-dev/loadout"
)

// Scheme is the scheme of links, as in loadout-work://HANDLE/out/report.csv.
// The handle is the client's secret: it is part of a result and cannot be
// guessed.
const Scheme = "loadout-work://"

// maxFile is the maximum size, in bytes, of a file that is read.
const maxFile = 16 << 20

// ErrTooLarge is returned for a file larger than 16 MiB.
var ErrTooLarge = errors.New("file too large for a resource (limit 16 MiB)")

// Read reads the file that a link refers to.
func Read(rt *loadout.Runtime, link string) ([]byte, error) {
	rest, ok := strings.CutPrefix(link, Scheme)
	handle, name, _ := strings.Cut(rest, "/")
	name, err := url.PathUnescape(name)
	if !ok || err != nil || !fs.ValidPath(name) {
		return nil, errors.New("invalid link: want a file in a working folder")
	}
	dir, err := rt.FolderPath(handle)
	if err != nil {
		return nil, err
	}
	data, err := readRegular(dir, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("file no longer exists") // omits the local path
	}
	return data, err
}

// readRegular reads a regular file in a directory. It returns an error if the
// file exceeds maxFile.
func readRegular(dir, name string) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	fi, err := root.Lstat(name)
	switch {
	case err != nil:
		return nil, err
	case !fi.Mode().IsRegular():
		return nil, fs.ErrInvalid
	case fi.Size() > maxFile:
		return nil, ErrTooLarge
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxFile))
}
