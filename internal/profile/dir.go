package profile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/loadout-dev/loadout/internal/configfile"
	"github.com/loadout-dev/loadout/internal/fileerror"
	"github.com/loadout-dev/loadout/internal/printable"
	"github.com/loadout-dev/loadout/skill"
)

// maxFiles is the maximum number of files read from a directory.
const maxFiles = 500

// Problem is a diagnostic about one file in a directory.
type Problem struct {
	File string // base name of the file
	skill.Diagnostic
}

// String returns the diagnostic as one line with the file name.
func (p Problem) String() string {
	if p.Line == 0 {
		return p.File + ": " + p.Diagnostic.String()
	}
	return p.File + ":" + p.Diagnostic.String()
}

// ReadDir reads the Ghosts in the files *.yaml, *.yml and *.json of a
// directory, in file name order. It ignores subdirectories. [Profile.File] is
// the file's base name. Pass the FS of an [os.Root], so that symlinks cannot
// leave the directory.
//
// If the directory does not exist, ReadDir returns no Ghosts. An error in one
// file is reported as a problem and does not affect other files. If two Ghosts
// have the same name, the first one is used. ReadDir returns an error only if
// the directory itself cannot be read.
func ReadDir(fsys fs.FS) ([]*Profile, []Problem, error) {
	entries, err := fs.ReadDir(fsys, ".")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read profiles: %w", err)
	}
	var out []*Profile
	var problems []Problem
	first := map[string]*Profile{}
	files := 0
	for _, e := range entries {
		name := e.Name()
		switch strings.ToLower(path.Ext(name)) {
		case ".yaml", ".yml", ".json":
		default:
			continue
		}
		problem := func(s skill.Severity, code, msg, fix string, line int) {
			problems = append(problems, Problem{name, skill.Diagnostic{Severity: s, Code: code, Line: line, Message: printable.OneLine(msg), Fix: fix}})
		}
		if files++; files > maxFiles {
			problem(skill.Error, "profile-many", fmt.Sprintf("too many files (limit %d); this one and later ones are skipped", maxFiles), "move files elsewhere", 0)
			break
		}
		data, err := readFile(fsys, name)
		if err != nil {
			problem(skill.Error, "profile-unreadable", "cannot read the file: "+err.Error(), "fix the file or move it elsewhere", 0)
			continue
		}
		profiles, ds := Parse(data, name)
		for _, d := range ds {
			problems = append(problems, Problem{name, d})
		}
		for _, p := range profiles {
			if f := first[p.Name]; f != nil {
				problem(skill.Warning, "profile-duplicate", fmt.Sprintf("Ghost %s is already defined in %s; this one is skipped", quote(p.Name), f.File), "rename one of them", p.Line)
				continue
			}
			first[p.Name] = p
			out = append(out, p)
		}
	}
	return out, problems, nil
}

// readFile reads a regular file up to the size limit of the parser.
func readFile(fsys fs.FS, name string) ([]byte, error) {
	if fi, err := fs.Stat(fsys, name); err != nil {
		return nil, fileerror.Cause(err)
	} else if !fi.Mode().IsRegular() {
		return nil, errors.New("not a regular file") // opening a pipe could block
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil, fileerror.Cause(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, configfile.MaxBytes+1))
	if err != nil {
		return nil, fileerror.Cause(err)
	}
	return data, nil
}
