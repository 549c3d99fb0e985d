// Package skilldiff tells a person what differs between two versions of a
// skill, so that they can decide on the newer one: its files, what it says of
// itself, the lines of its texts, what it asks for that it did not ask for
// before, and what a scan finds that was not there.
//
// It advises and never decides, and it knows the files alone: neither what was
// approved, nor what is installed. It runs nothing, connects to nothing and
// writes nothing. Every byte is taken as hostile: sizes, counts and the work of
// comparing are bounded, and what a bound left out is said.
package skilldiff

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/loadout-dev/loadout/scan"
	"github.com/loadout-dev/loadout/skill"
)

// Bounds on one comparison that no option changes. What is beyond them is
// named, and not looked into.
const (
	// MaxTextBytes is the most of a file that is compared by lines.
	MaxTextBytes = 1 << 20
	// MaxValueBytes is the most of a value that [FieldChange] and [Ask] hold.
	MaxValueBytes = 2000
	// MaxAsks is the most entries in each list of [Asks].
	MaxAsks = 1000
)

// Options say how much to look at. The zero value compares everything, and
// shows the lines of SKILL.md alone.
type Options struct {
	// Folder is the name of the skill's directory, as for [skill.Parse].
	Folder string
	// Texts asks for the differing lines of every text file, see [File.Diff].
	Texts bool
	// FileBytes is the most of the differing lines of one file; 0: 64 KiB.
	FileBytes int
	// TotalBytes is the most of those of all files together; 0: 1 MiB.
	TotalBytes int
	// LineBytes is the most of one line that is shown; 0: 500.
	LineBytes int
	// NoScan leaves [Diff.Findings] empty: a scan is most of the work.
	NoScan bool
}

// Diff is what differs between two versions of a skill. The zero Diff is that
// nothing does.
type Diff struct {
	Name string   `json:"name"` // in the new version, else in the old one
	Old  *Version `json:"old"`  // nil where there is none
	New  *Version `json:"new"`  // nil where there is none
	// Files are those that differ, by path.
	Files []File `json:"files"`
	Same  int    `json:"same"` // files that do not differ
	// Instructions are the lines of SKILL.md that differ, frontmatter and
	// body, as [Unified] writes them; "" where none does.
	Instructions string `json:"instructions,omitempty"`
	// Fields are what the skill says of itself, in the order of a SKILL.md.
	Fields   []FieldChange `json:"fields"`
	Asks     Asks          `json:"asks"`
	Findings Findings      `json:"findings"`
	// Problems say what could not be compared, each in one line for people.
	Problems []string `json:"problems"`
}

// Version is one of the two that are compared.
type Version struct {
	Version string `json:"version,omitempty"` // as the skill states it
	Digest  string `json:"digest"`            // of all its files
	Files   int    `json:"files"`
	Bytes   int64  `json:"bytes"`
	Scripts int    `json:"scripts"`
}

// Identical reports whether both versions have the same files with the same
// bytes, so that what was decided of the one holds for the other. Modes do not
// count.
func (d *Diff) Identical() bool {
	return d.Old != nil && d.New != nil && d.Old.Digest == d.New.Digest
}

// Compare tells how new differs from old. One of them may be nil: all files of
// the other were added, or removed. Neither changes meanwhile; a file that does
// is a problem of the result.
//
// What is wrong with a version is a problem too, also that it has no SKILL.md
// that loads. An error means that the files could not be listed or hashed, as
// with more than [skill.MaxFiles] of them ([skill.ErrTooLarge]), or that ctx
// ended. It is safe for concurrent use.
func Compare(ctx context.Context, old, new fs.FS, o *Options) (*Diff, error) {
	if old == nil && new == nil {
		return nil, errors.New("compare versions of a skill: there are none")
	}
	c := comparison{ctx: ctx, options: o.complete()}
	for _, v := range []struct {
		to   *side
		fsys fs.FS
		name string
	}{{&c.old, old, "old version"}, {&c.new, new, "new version"}} {
		if err := c.open(v.to, v.fsys, v.name); err != nil {
			return nil, fmt.Errorf("compare versions of a skill: %s: %w", v.name, err)
		}
	}
	c.diff.Name = visible(cmp.Or(c.new.skill.Name, c.old.skill.Name), MaxValueBytes)
	c.diff.Old, c.diff.New = c.old.version(), c.new.version()
	if err := c.files(); err != nil {
		return nil, fmt.Errorf("compare versions of a skill: %w", err)
	}
	c.diff.Fields = fields(&c.old, &c.new)
	if err := c.asks(); err != nil {
		return nil, fmt.Errorf("compare versions of a skill: %w", err)
	}
	if err := c.findings(); err != nil {
		return nil, fmt.Errorf("compare versions of a skill: %w", err)
	}
	return c.diff.withLists(), nil
}

// complete is o with what it leaves out.
func (o *Options) complete() Options {
	var full Options
	if o != nil {
		full = *o
	}
	full.FileBytes = orDefault(full.FileBytes, 64<<10)
	full.TotalBytes = orDefault(full.TotalBytes, 1<<20)
	full.LineBytes = orDefault(full.LineBytes, 500)
	return full
}

func orDefault(n, otherwise int) int {
	if n <= 0 {
		return otherwise
	}
	return n
}

// withLists has empty lists for nil ones, which JSON writes as null.
func (d *Diff) withLists() *Diff {
	d.Files = append([]File{}, d.Files...)
	d.Fields = append([]FieldChange{}, d.Fields...)
	d.Asks.More = append([]Ask{}, d.Asks.More...)
	d.Asks.Less = append([]Ask{}, d.Asks.Less...)
	d.Findings.New = append([]scan.Finding{}, d.Findings.New...)
	d.Problems = append([]string{}, d.Problems...)
	return d
}

// comparison is one call of [Compare].
type comparison struct {
	ctx      context.Context
	options  Options
	old, new side
	diff     Diff
	read     int64 // bytes of files that differ
	shown    int   // bytes of lines in the diff
	table    int   // entries of tables that comparing took
}

// side is one version: an empty one where there is none.
type side struct {
	fsys     fs.FS // nil where there is no such version
	manifest skill.Manifest
	main     string       // the path of its SKILL.md, "" where there is none
	skill    *skill.Skill // never nil
}

// maxProblems bounds the problems that are told one by one.
const maxProblems = 100

func (c *comparison) problem(format string, args ...any) {
	switch n := len(c.diff.Problems); {
	case n < maxProblems:
		c.diff.Problems = append(c.diff.Problems, visible(fmt.Sprintf(format, args...), MaxValueBytes))
	case n == maxProblems:
		c.diff.Problems = append(c.diff.Problems, "there are more problems")
	}
}

// open reads what is there of a version.
func (c *comparison) open(s *side, fsys fs.FS, name string) error {
	s.skill = &skill.Skill{UserInvocable: true}
	if fsys == nil {
		return nil
	}
	if err := context.Cause(c.ctx); err != nil {
		return err
	}
	manifest, left, err := skill.ReadManifest(fsys)
	if err != nil {
		return err
	}
	s.fsys, s.manifest = fsys, manifest
	for _, d := range left {
		c.problem("%s: %s", name, d.Message)
	}
	parsed, ds, err := skill.Parse(fsys, c.options.Folder)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		c.problem("%s: it has no %s", name, skill.FileName)
		return nil
	case err != nil:
		c.problem("%s: %s cannot be read: %v", name, skill.FileName, err)
		return nil
	case parsed == nil || !ds.Loads():
		for _, d := range ds {
			if d.Severity == skill.Error {
				c.problem("%s: it does not load: %s", name, d.Message)
			}
		}
	}
	if parsed != nil {
		s.skill = parsed
	}
	s.main, err = skill.FindFile(fsys)
	return err
}

func (s *side) version() *Version {
	if s.fsys == nil {
		return nil
	}
	v := &Version{Version: visible(s.skill.Version, MaxValueBytes), Digest: s.manifest.Digest(), Files: len(s.manifest), Bytes: s.manifest.Size()}
	for _, f := range s.manifest {
		if f.Script {
			v.Scripts++
		}
	}
	return v
}

// Findings are what a scan says of the two versions.
type Findings struct {
	// New are those of the new version that the old one did not have: of
	// another rule, in another file or with other words; not on another line.
	New  []scan.Finding `json:"new"`
	Gone int            `json:"gone"` // that the old version alone had
	Kept int            `json:"kept"` // that both have
	// Truncated says that a scan met a bound, so that something of a version
	// was not looked at or not told.
	Truncated bool `json:"truncated,omitempty"`
}

// findings scans both versions.
func (c *comparison) findings() error {
	if c.options.NoScan {
		return nil
	}
	var reports [2]scan.Report
	for i, s := range []*side{&c.old, &c.new} {
		if s.fsys == nil {
			continue
		}
		r, err := scan.Skill(c.ctx, s.fsys, c.options.Folder)
		if err != nil {
			return err
		}
		reports[i] = *r
	}
	left := map[string]int{} // findings of the old version, by key
	for _, f := range reports[0].Findings {
		left[f.Key()]++
	}
	out := &c.diff.Findings
	out.Truncated = reports[0].Truncated || reports[1].Truncated
	for _, f := range reports[1].Findings {
		if left[f.Key()] > 0 {
			left[f.Key()]--
			out.Kept++
			continue
		}
		out.New = append(out.New, f)
	}
	out.Gone = len(reports[0].Findings) - out.Kept
	return nil
}
