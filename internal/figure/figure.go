// Package figure finds the images that a run wrote, to show them to the model
// and the user. Start with [Scan].
package figure

import (
	"crypto/sha256"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/filetype"
)

// Limits on the images of a run.
const (
	MaxImages  = 8
	MaxBytes   = 5 << 20 // of each image
	maxEntries = 1000    // files of a directory that are considered
	maxRead    = 64      // files that are read
)

// types lists the MIME types of supported images.
var types = []string{"image/png", "image/jpeg", "image/webp"}

// Images maps the paths of images to their stamps. [Scan] does not read the
// images, because a directory may contain many.
type Images map[string]stamp

// stamp holds metadata that is used to detect whether a run has changed a file.
type stamp struct {
	size     int64
	modified time.Time
	sum      [sha256.Size]byte // of the content, instead of the time; zero if not read
}

// Scan returns the images in the given directories of fsys, but not those in
// subdirectories. It skips missing directories, files that are not regular, and
// images larger than [MaxBytes].
func Scan(fsys fs.FS, dirs ...string) Images {
	out := Images{}
	each(fsys, dirs, func(name string, s stamp) bool {
		out[name] = s
		return true
	})
	return out
}

// ScanContent is like [Scan], but reads the images, so that [Images.New] compares
// their contents. It is for directories in which each run rewrites all files. It
// reads a limited number of images.
func ScanContent(fsys fs.FS, dirs ...string) Images {
	out, tried := Images{}, 0
	each(fsys, dirs, func(name string, s stamp) bool {
		if data, err := readFile(fsys, name); err == nil {
			out[name] = stamp{size: s.size, sum: sha256.Sum256(data)}
		}
		tried++
		return tried < maxRead
	})
	return out
}

// New scans the directories again. It returns the images that are not in i, the
// result of an earlier Scan, or that differ from those in i in size or
// modification time. If i is the result of ScanContent, it compares contents
// instead. It returns at most [MaxImages], ordered by directory and name.
func (i Images) New(fsys fs.FS, dirs ...string) []mcp.Content {
	var out []mcp.Content
	tried := 0
	each(fsys, dirs, func(name string, s stamp) bool {
		if i[name] == s {
			return true
		}
		data, err := readFile(fsys, name)
		if tried++; i[name].sum == sha256.Sum256(data) {
			return tried < maxRead
		}
		// The type is that of the content, because vendors refuse images with a
		// wrong type.
		if mime := filetype.Image(data); err == nil && len(data) <= MaxBytes && slices.Contains(types, mime) {
			out = append(out, &mcp.ImageContent{Data: data, MIMEType: mime})
		}
		return len(out) < MaxImages && tried < maxRead
	})
	return out
}

// each calls f for each file in dirs that has the extension of a supported
// image, until f returns false.
func each(fsys fs.FS, dirs []string, f func(name string, s stamp) bool) {
	for _, dir := range dirs {
		entries, err := fs.ReadDir(fsys, dir)
		if err != nil {
			continue
		}
		for _, e := range entries[:min(len(entries), maxEntries)] {
			name := path.Join(dir, e.Name())
			if !e.Type().IsRegular() || !slices.Contains(types, filetype.ByName(strings.ToLower(name))) {
				continue
			}
			if fi, err := e.Info(); err == nil && fi.Size() <= MaxBytes && !f(name, stamp{size: fi.Size(), modified: fi.ModTime()}) {
				return
			}
		}
	}
}

// readFile reads up to [MaxBytes]+1 bytes of a file.
func readFile(fsys fs.FS, name string) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, MaxBytes+1))
}
