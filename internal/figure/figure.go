// Package figure finds the images that a run wrote, to show them to the model
// and the user. Start with [Scan].
package figure

import (
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/filetype"
	"github.com/loadout-dev/loadout/internal/skillfile"
)

// Limits on the images of a run.
const (
	MaxImages  = 8
	MaxBytes   = 5 << 20 // of each image
	maxEntries = 1000    // files of a directory that are considered
	maxScanned = 64      // images whose content is read
)

// types lists the MIME types of images that are shown.
var types = []string{"image/png", "image/jpeg", "image/webp"}

// Images holds the hashes of images by path.
type Images map[string]string

// image is a file with its content.
type image struct {
	name, mime string
	data       []byte
}

// Scan returns the images in the given directories of fsys, without those in
// directories below. It skips directories that do not exist, files that are not
// regular, and larger images.
func Scan(fsys fs.FS, dirs ...string) Images {
	out := Images{}
	for _, i := range read(fsys, dirs) {
		out[i.name] = skillfile.Hash(i.data)
	}
	return out
}

// New returns the images that Scan finds now and that i, the result of an
// earlier Scan, does not have with the same content. It returns at most
// [MaxImages], in the order of directories and names.
func (i Images) New(fsys fs.FS, dirs ...string) []mcp.Content {
	var out []mcp.Content
	for _, found := range read(fsys, dirs) {
		if len(out) < MaxImages && i[found.name] != skillfile.Hash(found.data) {
			out = append(out, &mcp.ImageContent{Data: found.data, MIMEType: found.mime})
		}
	}
	return out
}

// read reads the images in directories.
func read(fsys fs.FS, dirs []string) []image {
	var out []image
	for _, dir := range dirs {
		entries, err := fs.ReadDir(fsys, dir)
		if err != nil {
			continue
		}
		for _, e := range entries[:min(len(entries), maxEntries)] {
			if len(out) == maxScanned {
				return out
			}
			name := path.Join(dir, e.Name())
			if !e.Type().IsRegular() || !slices.Contains(types, filetype.ByName(strings.ToLower(name))) {
				continue
			}
			// The first bytes decide, because vendors reject wrong types.
			data, err := readFile(fsys, name)
			if mime := filetype.Image(data); err == nil && len(data) <= MaxBytes && slices.Contains(types, mime) {
				out = append(out, image{name, mime, data})
			}
		}
	}
	return out
}

// readFile reads at most one byte more than [MaxBytes].
func readFile(fsys fs.FS, name string) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, MaxBytes+1))
}
