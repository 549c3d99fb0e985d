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

	"github.com/loadout-dev/loadout/skill"
)

// Change is how a file differs.
type Change string

// The changes of a file.
const (
	Added   Change = "added"
	Removed Change = "removed"
	Changed Change = "changed" // other bytes
	Renamed Change = "renamed" // the same bytes, at another path
	// Mode says that the same bytes at the same path became a script, by the
	// right to execute them, or are none any more.
	Mode Change = "mode"
)

// File is a file that differs.
type File struct {
	// Path is as it is in the skill, and From as it was where it was renamed:
	// who shows them makes them safe for a terminal or a page.
	Path   string `json:"path"`
	From   string `json:"from,omitempty"`
	Change Change `json:"change"`
	// Script says that it can be run, in the new version if it is there.
	Script bool `json:"script"`
	// Text says that it was compared by lines: in both versions it is not
	// larger than MaxTextBytes and has no NUL among its first 8,000 bytes.
	// SKILL.md is a text whatever is in it.
	Text bool `json:"text"`
	// Added and Removed are lines of a text that come and go. Where too much of
	// it changed at once for a comparison, all lines between the first and the
	// last change count as removed, and what replaces them as added.
	Added   int `json:"added"`
	Removed int `json:"removed"`
	// The sizes in bytes and hashes of a version without the file are 0 and "".
	OldSize   int64  `json:"old_size"`
	NewSize   int64  `json:"new_size"`
	OldSHA256 string `json:"old_sha256,omitempty"`
	NewSHA256 string `json:"new_sha256,omitempty"`
	// Diff is the lines that differ, as [Unified] writes them, where
	// Options.Texts asks for them; those of SKILL.md are [Diff.Instructions].
	Diff string `json:"diff,omitempty"`
	// Omitted says what is not shown of it, and why; "" where nothing is left out.
	Omitted string `json:"omitted,omitempty"`
}

// files finds the files that differ, and how.
func (c *comparison) files() error {
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
			c.diff.Same++
			continue
		}
		found = append(found, f)
	}
	c.diff.Files = joinRenamed(found)
	for i := range c.diff.Files {
		if err := context.Cause(c.ctx); err != nil {
			return err
		}
		c.lines(&c.diff.Files[i])
	}
	return nil
}

// joinRenamed makes one of a file that was removed and one with the same bytes
// that was added. Of several, the first by path go together. Empty files are
// not joined, as they have nothing in common.
func joinRenamed(files []File) []File {
	gone := map[string][]int{} // indices of files that were removed, by hash
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
	kept := files[:0]
	for i, f := range files {
		if !taken[i] {
			kept = append(kept, f)
		}
	}
	return kept
}

// Bounds on the work of comparing lines, which is a few seconds at most.
const (
	maxTable     = 4 << 20   // entries of the table of one file
	maxTables    = 128 << 20 // entries of all tables
	maxTextBytes = 64 << 20  // of all texts of both versions
)

// lines compares a file by lines, where it is a text.
func (c *comparison) lines(f *File) {
	was := cmp.Or(f.From, f.Path)
	instructions := f.Path == c.new.main || c.new.main == "" && f.Path == c.old.main
	if c.read += f.OldSize + f.NewSize; c.read > maxTextBytes && !instructions {
		f.Omitted = "its content: there is too much in other files"
		return
	}
	before, why := c.text(&c.old, was)
	after, whyNot := c.text(&c.new, f.Path)
	if why = cmp.Or(why, whyNot); why != "" {
		f.Omitted = why
		return
	}
	f.Text = true
	if f.Change == Renamed || f.Change == Mode {
		return // the same lines
	}
	t := newTexts(before, after, min(maxTable, maxTables-c.table))
	f.Added, f.Removed = t.added, t.removed
	c.table += t.entries
	if !instructions && !c.options.Texts {
		return
	}
	oldName, newName := was, f.Path
	switch f.Change {
	case Added:
		oldName = nowhere
	case Removed:
		newName = nowhere
	}
	limit := min(c.options.FileBytes, c.options.TotalBytes-c.shown)
	if instructions {
		limit = c.options.FileBytes // whatever else there is
	}
	if limit <= 0 {
		f.Omitted = "its lines: there are too many in other files"
		return
	}
	out, rest := t.unified(oldName, newName, limit, c.options.LineBytes)
	if rest > 0 {
		f.Omitted = fmt.Sprintf("%d lines of the difference: there are too many", rest)
	}
	if instructions {
		c.diff.Instructions = out
		return
	}
	c.shown += len(out)
	f.Diff = out
}

// text reads a file of a version, "" where it is not there. It says why where it
// is none to be compared by lines.
func (c *comparison) text(s *side, path string) (text string, why string) {
	f, ok := s.manifest.Find(path)
	if !ok {
		return "", ""
	}
	data, err := read(s.fsys, f, MaxTextBytes)
	switch {
	case err != nil:
		c.problem("%s: %v", path, err)
		return "", "its lines: it could not be read"
	case data == nil:
		return "", fmt.Sprintf("its lines: it has more than %d bytes", MaxTextBytes)
	case path != s.main && !isText(data):
		return "", "its content: it is no text"
	}
	return string(data), ""
}

// read returns the bytes of a file as it was hashed, nil where there are more
// than most.
func read(fsys fs.FS, f skill.File, most int64) ([]byte, error) {
	if f.Size > most {
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
	if skill.Hash(data.Bytes()) != f.SHA256 {
		return nil, errors.New("it changed while it was compared")
	}
	return data.Bytes(), nil
}

// isText tells texts as Git does. Bytes that are no UTF-8 are shown as such.
func isText(data []byte) bool { return bytes.IndexByte(data[:min(len(data), 8000)], 0) < 0 }
