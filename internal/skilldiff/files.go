package skilldiff

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"

	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/skill"
)

// Change is the kind of difference between two files.
type Change string

// Kinds of [Change].
const (
	Added   Change = "added"
	Removed Change = "removed"
	Changed Change = "changed" // different content
	Renamed Change = "renamed" // same content at another path
	// Mode means that only the executable bit differs.
	Mode Change = "mode"
)

// File describes a file that differs.
type File struct {
	// Path is the path in the skill. From is the old path of a renamed file.
	// Callers must escape both before printing them.
	Path   string `json:"path"`
	From   string `json:"from,omitempty" doc:"Previous path"`
	Change Change `json:"change" enum:"added,removed,changed,renamed,mode"`
	// Script is set if the file can be run as a script in the new version, or
	// in the old one if the new version does not contain it.
	Script bool `json:"script"`
	// Text is set if the file was compared line by line. In both versions, such a
	// file has at most MaxTextBytes and no NUL in its first 8,000 bytes. SKILL.md
	// is always treated as text.
	Text bool `json:"text" doc:"Whether lines were compared"`
	// Added and Removed are numbers of lines. If the change is too large to
	// compare, all lines between the first and the last change count as removed
	// and added.
	Added   int `json:"added" doc:"Added lines"`
	Removed int `json:"removed" doc:"Removed lines"`
	// Sizes are 0 and hashes "" in a version without the file.
	OldSize   int64  `json:"old_size"`
	NewSize   int64  `json:"new_size"`
	OldSHA256 string `json:"old_sha256,omitempty"`
	NewSHA256 string `json:"new_sha256,omitempty"`
	// Diff contains the changed lines in the format of [Unified], if
	// Options.Texts is set. The changed lines of SKILL.md are in
	// [Diff.Instructions].
	Diff string `json:"diff,omitempty" doc:"Unified diff; that of SKILL.md is in instructions"`
	// Omitted states what was omitted and why. It is "" if nothing was.
	Omitted string `json:"omitted,omitempty" doc:"What is omitted, and why"`
}

// compareFiles adds the files that differ to the diff.
func (c *comparison) compareFiles() error {
	paths := map[string]bool{}
	for _, m := range []skill.Manifest{c.old.manifest, c.new.manifest} {
		for _, f := range m {
			paths[f.Path] = true
		}
	}
	var found []File
	for _, p := range slices.Sorted(maps.Keys(paths)) {
		a, before := c.old.manifest.Find(p)
		b, after := c.new.manifest.Find(p)
		f := File{Path: p, Script: b.Script, OldSize: a.Size, NewSize: b.Size, OldSHA256: a.SHA256, NewSHA256: b.SHA256}
		switch {
		case !before:
			f.Change = Added
		case !after:
			f.Change, f.Script = Removed, a.Script
		case a.SHA256 != b.SHA256:
			f.Change = Changed
		case a.Script != b.Script:
			f.Change = Mode
		default:
			c.diff.Unchanged++
			continue
		}
		found = append(found, f)
	}
	c.diff.Files = joinRenamed(found)
	for i := range c.diff.Files {
		if err := context.Cause(c.ctx); err != nil {
			return err
		}
		c.compareLines(&c.diff.Files[i])
	}
	return nil
}

// joinRenamed merges a removed and an added file with the same content into a
// renamed one. If there are several, it pairs them in path order. It does not
// merge empty files.
func joinRenamed(files []File) []File {
	gone := map[string][]int{} // indexes of removed files by hash
	for i, f := range files {
		if f.Change == Removed && f.OldSize > 0 {
			gone[f.OldSHA256] = append(gone[f.OldSHA256], i)
		}
	}
	taken := map[int]bool{}
	for i := range files {
		f := &files[i]
		from := gone[f.NewSHA256]
		if f.Change != Added || len(from) == 0 {
			continue
		}
		was := files[from[0]]
		gone[f.NewSHA256], taken[from[0]] = from[1:], true
		f.Change, f.From, f.OldSize, f.OldSHA256 = Renamed, was.Path, was.OldSize, was.OldSHA256
	}
	remaining := files[:0]
	for i, f := range files {
		if !taken[i] {
			remaining = append(remaining, f)
		}
	}
	return remaining
}

// Limits for line comparison, so that it takes no more than a few seconds.
const (
	maxTable     = 4 << 20   // table entries per file
	maxTables    = 128 << 20 // table entries of all files
	maxTextBytes = 64 << 20  // total size of the compared files of both versions
)

// compareLines compares a text file line by line.
func (c *comparison) compareLines(f *File) {
	was := cmp.Or(f.From, f.Path)
	instructions := f.Path == c.new.main || c.new.main == "" && f.Path == c.old.main
	if c.readBytes += f.OldSize + f.NewSize; c.readBytes > maxTextBytes && !instructions {
		f.Omitted = "content: limit reached by other files"
		return
	}
	before, why := c.readText(&c.old, was)
	after, whyNot := c.readText(&c.new, f.Path)
	if why = cmp.Or(why, whyNot); why != "" {
		f.Omitted = why
		return
	}
	f.Text = true
	if f.Change == Renamed || f.Change == Mode {
		return // identical lines
	}
	t := newTextPair(before, after, min(maxTable, maxTables-c.table))
	f.Added, f.Removed = t.added, t.removed
	c.table += t.entries
	if !instructions && !c.options.Texts {
		return
	}
	oldName, newName := was, f.Path
	switch f.Change {
	case Added:
		oldName = missingName
	case Removed:
		newName = missingName
	}
	limit := min(c.options.FileBytes, c.options.TotalBytes-c.shownBytes)
	if instructions {
		limit = c.options.FileBytes // regardless of other files
	}
	if limit <= 0 {
		f.Omitted = "lines: limit reached by other files"
		return
	}
	out, rest := t.unified(oldName, newName, limit, c.options.LineBytes)
	if rest > 0 {
		f.Omitted = fmt.Sprintf("%d lines of the diff: limit reached", rest)
	}
	if instructions {
		c.diff.Instructions = out
		return
	}
	c.shownBytes += len(out)
	f.Diff = out
}

// readText reads a file of a version. If the file does not exist, it returns
// "". If the file cannot be compared line by line, why is the reason.
func (c *comparison) readText(s *versionFiles, path string) (text string, why string) {
	f, ok := s.manifest.Find(path)
	if !ok {
		return "", ""
	}
	data, err := readFile(s.fsys, f, MaxTextBytes)
	switch {
	case err != nil:
		c.addProblem("%s: %v", path, err)
		return "", "lines: cannot read file"
	case data == nil:
		return "", fmt.Sprintf("lines: file too large (limit %d bytes)", MaxTextBytes)
	case path != s.main && !isText(data):
		return "", "content: not text"
	}
	return string(data), ""
}

// readFile returns the content of a file and verifies its hash. It returns nil
// if the file has more than limit bytes.
func readFile(fsys fs.FS, f skill.File, limit int64) ([]byte, error) {
	if f.Size > limit {
		return nil, nil
	}
	file, err := fsys.Open(f.Path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data := bytes.NewBuffer(make([]byte, 0, f.Size+bytes.MinRead))
	if _, err := data.ReadFrom(io.LimitReader(file, f.Size+1)); err != nil {
		return nil, err
	}
	if skillfile.Hash(data.Bytes()) != f.SHA256 {
		return nil, errors.New("file changed during the comparison")
	}
	return data.Bytes(), nil
}

// isText detects text as Git does. Invalid UTF-8 counts as text and is escaped
// for display.
func isText(data []byte) bool { return bytes.IndexByte(data[:min(len(data), 8000)], 0) < 0 }
