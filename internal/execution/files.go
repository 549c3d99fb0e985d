package execution

import (
	"bytes"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/sandbox/mountpoint"
	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/skill"
)

// verifiedFS is a file system with the files listed in a skill's manifest.
// Opening a file fails if its content differs from the manifest, so every
// decision based on a file's content uses the approved bytes.
type verifiedFS struct {
	fsys    fs.FS
	files   skill.Manifest
	changed *sandbox.ChangedError // first file that differs
}

var _ fs.StatFS = (*verifiedFS)(nil)

// Open reads a file and verifies its hash. It also opens directories, but their
// entries cannot be listed.
func (v *verifiedFS) Open(name string) (fs.File, error) {
	f, ok := v.files.Find(name)
	if !ok {
		info, err := v.Stat(name)
		if err != nil {
			return nil, err
		}
		return &memoryFile{Reader: bytes.NewReader(nil), info: info}, nil
	}
	data, err := v.read(f)
	if err != nil {
		return nil, err
	}
	return &memoryFile{Reader: bytes.NewReader(data), info: newMemoryInfo(f)}, nil
}

// Stat returns the file information from the manifest.
func (v *verifiedFS) Stat(name string) (fs.FileInfo, error) {
	if f, ok := v.files.Find(name); ok {
		return newMemoryInfo(f), nil
	}
	for _, f := range v.files {
		if name == "." || strings.HasPrefix(f.Path, name+"/") {
			return memoryInfo{name: path.Base(name), mode: fs.ModeDir | 0o755}, nil
		}
	}
	return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
}

func newMemoryInfo(f skill.File) memoryInfo {
	mode := fs.FileMode(0o644)
	if f.Script {
		mode = 0o755
	}
	return memoryInfo{name: path.Base(f.Path), size: f.Size, mode: mode}
}

func (v *verifiedFS) read(f skill.File) ([]byte, error) {
	src, err := v.fsys.Open(f.Path)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	data, err := io.ReadAll(io.LimitReader(src, f.Size+1))
	if err != nil {
		return nil, err
	}
	if skillfile.Hash(data) == f.SHA256 {
		return data, nil
	}
	changed := &sandbox.ChangedError{Tree: mountpoint.Skill, Path: f.Path}
	if v.changed == nil {
		v.changed = changed
	}
	return nil, changed
}

// mergedFS is a file system that combines files from several sources.
type mergedFS map[string]fileLocation

type fileLocation struct {
	fsys fs.FS
	path string
}

// Open implements [fs.FS].
func (g mergedFS) Open(name string) (fs.File, error) {
	p, ok := g[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return p.fsys.Open(p.path)
}

// TextFile returns a file system that contains one file with the given content.
// Its Open method ignores the file name.
func TextFile(data []byte) fs.FS { return singleFile{data} }

// singleFile is an in-memory file system that contains one file.
type singleFile struct{ data []byte }

// Open opens the file, ignoring its name argument.
func (o singleFile) Open(string) (fs.File, error) {
	return &memoryFile{Reader: bytes.NewReader(o.data), info: memoryInfo{name: "data", size: int64(len(o.data)), mode: 0o444}}, nil
}

// memoryFile is an open file whose content is in memory.
type memoryFile struct {
	*bytes.Reader
	info fs.FileInfo
}

func (m *memoryFile) Stat() (fs.FileInfo, error) { return m.info, nil }
func (m *memoryFile) Close() error               { return nil }

type memoryInfo struct {
	name string
	size int64
	mode fs.FileMode
}

func (i memoryInfo) Name() string       { return i.name }
func (i memoryInfo) Size() int64        { return i.size }
func (i memoryInfo) Mode() fs.FileMode  { return i.mode }
func (i memoryInfo) ModTime() time.Time { return time.Time{} }
func (i memoryInfo) IsDir() bool        { return i.mode.IsDir() }
func (i memoryInfo) Sys() any           { return nil }

// memoryFS is an in-memory file system that maps file names to contents.
type memoryFS map[string][]byte

// Open implements [fs.FS].
func (t memoryFS) Open(name string) (fs.File, error) {
	data, ok := t[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	f, err := singleFile{data}.Open(name)
	return f, err
}
