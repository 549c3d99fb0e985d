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

// verified are the files of a skill as its manifest names them: one whose bytes
// are others cannot be opened. What is decided by a file, as by the first line
// of a script or by what it needs, is decided by the bytes that were approved.
type verified struct {
	fsys    fs.FS
	files   skill.Manifest
	changed *sandbox.ChangedError // the first file that was another
}

var _ fs.StatFS = (*verified)(nil)

// Open reads and checks a file. Of directories it knows that they are there.
func (v *verified) Open(name string) (fs.File, error) {
	f, ok := v.files.Find(name)
	if !ok {
		info, err := v.Stat(name)
		if err != nil {
			return nil, err
		}
		return &memory{Reader: bytes.NewReader(nil), info: info}, nil
	}
	data, err := v.read(f)
	if err != nil {
		return nil, err
	}
	return &memory{Reader: bytes.NewReader(data), info: infoOf(f)}, nil
}

// Stat is what the manifest says.
func (v *verified) Stat(name string) (fs.FileInfo, error) {
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

func (v *verified) read(f skill.File) ([]byte, error) {
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
