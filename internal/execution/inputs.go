package execution

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/sandbox/mountpoint"
	"github.com/loadout-dev/loadout/sandbox"
)

// Input is a file or directory that a run can read below /work/in.
type Input struct {
	// Name is the relative path below /work/in.
	Name string
	// FS and Path identify the source file or directory.
	FS   fs.FS
	Path string
}

// Maximum number and total size of a run's input files.
const (
	maxInputs     = 10_000
	maxInputBytes = 512 << 20
)

// inputTrees merges the inputs into one tree, or returns nil if there are none.
func inputTrees(inputs []Input) ([]sandbox.Tree, error) {
	if len(inputs) == 0 {
		return nil, nil
	}
	all, dirs := mergedFS{}, map[string]bool{}
	var size int64
	var files []sandbox.File
	add := func(name string, fsys fs.FS, p string, fi fs.FileInfo) error {
		if _, twice := all[name]; twice {
			return fmt.Errorf("duplicate input name %s", name)
		}
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if _, file := all[dir]; file {
				return fmt.Errorf("%s is both a file and a directory", dir)
			}
			dirs[dir] = true
		}
		if dirs[name] {
			return fmt.Errorf("%s is both a file and a directory", name)
		}
		if size += fi.Size(); len(files) == maxInputs || size > maxInputBytes {
			return fmt.Errorf("inputs too large (limit %d files, %d MiB)", maxInputs, maxInputBytes>>20)
		}
		all[name] = fileLocation{fsys, p}
		files = append(files, sandbox.File{Path: name, Size: fi.Size(), Exec: fi.Mode()&0o111 != 0})
		return nil
	}
	for _, in := range inputs {
		if !fs.ValidPath(in.Name) || in.Name == "." {
			return nil, fmt.Errorf("invalid input name %q: want a relative path inside /work/in", in.Name)
		}
		err := fs.WalkDir(in.FS, in.Path, func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			if d.Type()&fs.ModeSymlink != 0 && p != in.Path {
				return nil // its target is an input itself, or is outside the inputs
			}
			fi, err := fs.Stat(in.FS, p)
			if err != nil {
				return err
			}
			if !fi.Mode().IsRegular() {
				if p == in.Path {
					return errors.New("not a regular file")
				}
				return nil
			}
			below := p
			if in.Path != "." {
				below = strings.TrimPrefix(p, in.Path)
			}
			return add(path.Join(in.Name, below), in.FS, p, fi)
		})
		if err != nil {
			return nil, fmt.Errorf("input %s: %w", in.Name, err)
		}
	}
	slices.SortFunc(files, func(a, b sandbox.File) int { return strings.Compare(a.Path, b.Path) })
	return []sandbox.Tree{{Path: mountpoint.In, FS: all, Files: files}}, nil
}
