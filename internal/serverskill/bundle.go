package serverskill

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/skill"
)

// files is the file system of a skill. It lists the files of an entry, and
// reads a file with read, which returns verified content, when its first byte
// is read.
type files struct {
	ctx   context.Context // of the operation that opened the skill
	entry *Entry
	read  func(ctx context.Context, e *Entry, r Resource) ([]byte, error)
}

var _ skill.ManifestFS = (*files)(nil)

// Manifest implements [skill.ManifestFS].
func (f *files) Manifest() (skill.Manifest, error) { return f.entry.Manifest() }

// Open implements [fs.FS]. It fetches nothing.
func (f *files) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	if f.entry.Dynamic {
		return nil, &fs.PathError{Op: "open", Path: name, Err: ErrDynamic}
	}
	if r, ok := f.entry.Find(name); ok {
		return &file{fs: f, resource: r}, nil
	}
	children := f.children(name)
	if children == nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &directory{info: info{name: path.Base(name), dir: true}, rest: children}, nil
}

// ReadFile implements [fs.ReadFileFS].
func (f *files) ReadFile(name string) ([]byte, error) {
	r, ok := f.entry.Find(name)
	if !ok || !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	data, err := f.read(f.ctx, f.entry, r)
	return bytes.Clone(data), err
}

// children returns the direct children of a directory, sorted by name, or nil
// if there is no such directory.
func (f *files) children(dir string) []fs.DirEntry {
	prefix := dir + "/"
	if dir == "." {
		prefix = ""
	}
	var out []fs.DirEntry
	for _, r := range f.entry.Resources {
		rest, ok := strings.CutPrefix(r.Path, prefix)
		if !ok {
			continue
		}
		name, _, below := strings.Cut(rest, "/")
		if below && slices.ContainsFunc(out, func(d fs.DirEntry) bool { return d.Name() == name }) {
			continue
		}
		i := info{name: name, size: r.Size, dir: below}
		if below {
			i.size = 0
		}
		out = append(out, fs.FileInfoToDirEntry(i))
	}
	slices.SortFunc(out, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return out
}

// info implements [fs.FileInfo].
type info struct {
	name string
	size int64
	dir  bool
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool        { return i.dir }
func (i info) Sys() any           { return nil }
func (i info) Mode() fs.FileMode {
	if i.dir {
		return fs.ModeDir | 0o555
	}
	return 0o444
}

// file is an open file. Its content is fetched by the first Read.
type file struct {
	fs       *files
	resource Resource
	content  *bytes.Reader
	err      error
}

func (f *file) Stat() (fs.FileInfo, error) {
	return info{name: path.Base(f.resource.Path), size: f.resource.Size}, nil
}

func (f *file) load() error {
	if f.content == nil && f.err == nil {
		var data []byte
		if data, f.err = f.fs.read(f.fs.ctx, f.fs.entry, f.resource); f.err == nil {
			f.content = bytes.NewReader(data)
		}
	}
	return f.err
}

func (f *file) Read(p []byte) (int, error) {
	if err := f.load(); err != nil {
		return 0, err
	}
	return f.content.Read(p)
}

func (f *file) Seek(offset int64, whence int) (int64, error) {
	if err := f.load(); err != nil {
		return 0, err
	}
	return f.content.Seek(offset, whence)
}

func (f *file) Close() error { return nil }

// directory is an open directory.
type directory struct {
	info
	rest []fs.DirEntry
}

func (d *directory) Stat() (fs.FileInfo, error) { return d.info, nil }
func (d *directory) Close() error               { return nil }
func (d *directory) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.name, Err: fs.ErrInvalid}
}

// ReadDir implements [fs.ReadDirFile].
func (d *directory) ReadDir(n int) ([]fs.DirEntry, error) {
	if n > 0 && len(d.rest) == 0 {
		return nil, io.EOF
	}
	if n <= 0 || n > len(d.rest) {
		n = len(d.rest)
	}
	out := d.rest[:n]
	d.rest = d.rest[n:]
	return out, nil
}
