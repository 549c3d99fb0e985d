package loadout

import (
	"bytes"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/skill"
)

// verifiedFS contains the files of a skill as listed in its manifest. A file
// whose content differs cannot be opened. Decisions based on a file, for
// example on the first line of a script, therefore use the approved bytes.
type verifiedFS struct {
	fsys    fs.FS
	files   skill.Manifest
	changed *sandbox.ChangedError // the first file that differs
}

var _ fs.StatFS = (*verifiedFS)(nil)

// Open reads and checks a file. A directory can be opened but not listed.
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
	return &memoryFile{Reader: bytes.NewReader(data), info: infoOf(f)}, nil
}

// Stat returns the information in the manifest.
func (v *verifiedFS) Stat(name string) (fs.FileInfo, error) {
	if f, ok := v.files.Find(name); ok {
		return infoOf(f), nil
	}
	for _, f := range v.files {
		if name == "." || strings.HasPrefix(f.Path, name+"/") {
			return memoryInfo{name: path.Base(name), mode: fs.ModeDir | 0o755}, nil
		}
	}
	return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
}

func infoOf(f skill.File) memoryInfo {
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
	if skill.Hash(data) == f.SHA256 {
		return data, nil
	}
	changed := &sandbox.ChangedError{Tree: sandbox.SkillDir, Path: f.Path}
	if v.changed == nil {
		v.changed = changed
	}
	return nil, changed
}
