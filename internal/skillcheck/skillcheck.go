// Package skillcheck checks the skills at a path. It validates them against the
// specification, scans them for dangerous content, and inspects archives. It
// only reads files and returns the results. It prints nothing and does not run
// skill code. Start reading at [Validate], [ScanPath] and [InspectArchive].
package skillcheck

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/loadout-dev/loadout/internal/skillpath"
	"github.com/loadout-dev/loadout/skill"
)

// ErrNotSkill is returned for a file that is neither a SKILL.md nor an archive.
var ErrNotSkill = errors.New("not a skill")

// IsArchive reports whether a path has the extension of a skill archive.
func IsArchive(p string) bool {
	ext := strings.ToLower(filepath.Ext(p))
	return ext == ".zip" || ext == ".skill"
}

// walkEntry is a file or directory visited by walkSkills.
type walkEntry struct {
	path  string // path with the symlinks of the start directory resolved
	shown string // relative to the directory as the user wrote it
	entry fs.DirEntry
	err   error
}

// walkSkills calls visit for the entries below a directory. It skips
// directories that by convention do not contain skills.
func walkSkills(ctx context.Context, dir string, visit func(walkEntry) error) error {
	root := dir
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		root = real // WalkDir does not follow symlinks, not even for the root
	}
	return filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		f := walkEntry{path: p, shown: filepath.Join(dir, strings.TrimPrefix(p, root)), entry: d, err: err}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil && d.IsDir() && p != root && (skillpath.IsIgnored(d.Name()) || d.Name() == "node_modules"):
			return fs.SkipDir
		case err == nil && d.IsDir() && p == root:
			return nil
		}
		return visit(f)
	})
}

// isSkillLink reports whether the entry is a symlink to a skill's directory.
func (f walkEntry) isSkillLink() bool {
	return f.entry.Type()&fs.ModeSymlink != 0 && containsSkill(f.path)
}

// isArchive reports whether the name of the entry has the extension of a skill
// archive.
func (f walkEntry) isArchive() bool {
	return f.entry.Type().IsRegular() && strings.EqualFold(filepath.Ext(f.path), ".skill")
}

// containsSkill reports whether a directory contains a SKILL.md.
func containsSkill(dir string) bool {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, e := range entries {
		if skillpath.IsSkillFile(e.Name()) && !e.IsDir() {
			return true
		}
	}
	return false
}

// openDir opens the skill in a directory. For a relative path such as ".", it
// resolves the directory's name.
func openDir(dir string) (*skill.Bundle, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		abs = dir
	}
	return skill.OpenDir(abs)
}
