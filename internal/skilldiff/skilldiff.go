// Package skilldiff compares two versions of a skill, so that a user can decide
// about the newer one. It compares files, frontmatter fields, lines of text,
// requested permissions and scan findings.
//
// The package only informs; it makes no decisions. It knows neither approvals
// nor installed skills. It runs nothing, makes no connections and writes
// nothing. It treats all input as hostile, limits sizes, counts and the work of
// comparing, and reports what it left out. Start reading at [Compare].
package skilldiff

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/loadout-dev/loadout/internal/scan"
	"github.com/loadout-dev/loadout/skill"
)

// Fixed limits of a comparison. What exceeds them is reported but not compared.
const (
	// MaxTextBytes is the maximum size of a file to compare by lines.
	MaxTextBytes = 1 << 20
	// MaxValueBytes is the maximum length of a value in [FieldChange] and
	// [PermissionChange].
	MaxValueBytes = 2000
	// MaxPermissions is the maximum length of each list in [PermissionChanges].
	MaxPermissions = 1000
)

// Options configure a comparison. The zero value compares everything, and
// returns the changed lines of SKILL.md only.
type Options struct {
	// Folder is the name of the skill's directory, as for [skill.Parse].
	Folder string
	// Texts requests the changed lines of every text file, see [File.Diff].
	Texts bool
	// FileBytes limits the changed lines of one file; default 64 KiB.
	FileBytes int
	// TotalBytes limits the changed lines of all files together; default 1 MiB.
	TotalBytes int
	// LineBytes limits the length of one line; default 500.
	LineBytes int
	// NoScan leaves [Diff.Findings] empty. The scan is most of the work.
	NoScan bool
}

// Diff holds the differences between two versions of a skill. The zero Diff has
// none.
type Diff struct {
	Name string   `json:"name"` // name in the new version, or else in the old one
	Old  *Version `json:"old"`  // nil if there is none
	New  *Version `json:"new"`  // nil if there is none
	// Files lists the files that differ, sorted by path.
	Files     []File `json:"files"`
	Unchanged int    `json:"same"` // formatNumber of equal files
	// Instructions holds the changed lines of SKILL.md, frontmatter and body,
	// in the format of [Unified]; "" if there are none.
	Instructions string `json:"instructions,omitempty"`
	// Fields lists the changed frontmatter fields, in the order of a SKILL.md.
	Fields      []FieldChange     `json:"fields"`
	Permissions PermissionChanges `json:"asks"`
	Findings    Findings          `json:"findings"`
	// Problems lists what could not be compared, one line each.
	Problems []string `json:"problems"`
}

// Version describes one of the two versions.
type Version struct {
	Version string `json:"version,omitempty" doc:"As stated by the skill"`
	Digest  string `json:"digest"` // of all files
	Files   int    `json:"files"`
	Bytes   int64  `json:"bytes"`
	Scripts int    `json:"scripts"`
}

// Identical reports whether both versions have the same files with the same
// bytes. Decisions about one then apply to the other. File modes are ignored.
func (d *Diff) Identical() bool {
	return d.Old != nil && d.New != nil && d.Old.Digest == d.New.Digest
}

// Compare returns the differences between old and new. One of them may be nil;
// all files of the other are then added or removed. The files must not change
// during the call. A changed file becomes a problem of the result.
//
// Faults of a version, such as a missing or invalid SKILL.md, are problems too.
// An error means that ctx ended, or that the files could not be listed or
// hashed, for example because there are more than [skill.MaxFiles]
// ([skill.ErrTooLarge]). Compare is safe for concurrent use.
func Compare(ctx context.Context, old, new fs.FS, o *Options) (*Diff, error) {
	if old == nil && new == nil {
		return nil, errors.New("compare versions of a skill: no version given")
	}
	c := comparison{ctx: ctx, options: o.withDefaults()}
	for _, v := range []struct {
		to   *versionFiles
		fsys fs.FS
		name string
	}{{&c.old, old, "old version"}, {&c.new, new, "new version"}} {
		if err := c.openVersion(v.to, v.fsys, v.name); err != nil {
			return nil, fmt.Errorf("compare versions of a skill: %s: %w", v.name, err)
		}
	}
	c.diff.Name = escapeText(cmp.Or(c.new.skill.Name, c.old.skill.Name), MaxValueBytes)
	c.diff.Old, c.diff.New = c.old.version(), c.new.version()
	if err := c.compareFiles(); err != nil {
		return nil, fmt.Errorf("compare versions of a skill: %w", err)
	}
	c.diff.Fields = compareFields(&c.old, &c.new)
	if err := c.comparePermissions(); err != nil {
		return nil, fmt.Errorf("compare versions of a skill: %w", err)
	}
	if err := c.compareFindings(); err != nil {
		return nil, fmt.Errorf("compare versions of a skill: %w", err)
	}
	return c.diff.withLists(), nil
}

// complete returns the options with defaults in place of zero fields.
func (o *Options) withDefaults() Options {
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

// withLists replaces nil lists, which JSON encodes as null, by empty ones.
func (d *Diff) withLists() *Diff {
	d.Files = append([]File{}, d.Files...)
	d.Fields = append([]FieldChange{}, d.Fields...)
	d.Permissions.More = append([]PermissionChange{}, d.Permissions.More...)
	d.Permissions.Less = append([]PermissionChange{}, d.Permissions.Less...)
	d.Findings.New = append([]scan.Finding{}, d.Findings.New...)
	d.Problems = append([]string{}, d.Problems...)
	return d
}

// comparison is the state of one call of [Compare].
type comparison struct {
	ctx      context.Context
	options  Options
	old, new versionFiles
	diff     Diff
	readBytes     int64 // bytes of the files that differ
	shownBytes    int   // bytes of the lines in the diff
	table    int   // table entries that the comparison used
}

// versionFiles is one version, empty if it is missing.
type versionFiles struct {
	fsys     fs.FS // nil if there is no such version
	manifest skill.Manifest
	main     string       // path of its SKILL.md; "" if there is none
	skill    *skill.Skill // never nil
}

// maxProblems is the maximum number of reported problems.
const maxProblems = 100

func (c *comparison) addProblem(format string, args ...any) {
	switch n := len(c.diff.Problems); {
	case n < maxProblems:
		c.diff.Problems = append(c.diff.Problems, escapeText(fmt.Sprintf(format, args...), MaxValueBytes))
	case n == maxProblems:
		c.diff.Problems = append(c.diff.Problems, "there are more problems")
	}
}

// open reads a version.
func (c *comparison) openVersion(s *versionFiles, fsys fs.FS, name string) error {
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
		c.addProblem("%s: %s", name, d.Message)
	}
	parsed, ds, err := skill.Parse(fsys, c.options.Folder)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		c.addProblem("%s: no %s", name, skill.FileName)
		return nil
	case err != nil:
		c.addProblem("%s: %s cannot be read: %v", name, skill.FileName, err)
		return nil
	case parsed == nil || !ds.Loads():
		for _, d := range ds {
			if d.Severity == skill.Error {
				c.addProblem("%s: the skill does not load: %s", name, d.Message)
			}
		}
	}
	if parsed != nil {
		s.skill = parsed
	}
	s.main, err = skill.FindFile(fsys)
	return err
}

func (s *versionFiles) version() *Version {
	if s.fsys == nil {
		return nil
	}
	v := &Version{Version: escapeText(s.skill.Version, MaxValueBytes), Digest: s.manifest.Digest(), Files: len(s.manifest), Bytes: s.manifest.Size()}
	for _, f := range s.manifest {
		if f.Script {
			v.Scripts++
		}
	}
	return v
}

// Findings holds the scan findings of the two versions.
type Findings struct {
	// New lists findings that only the new version has. A finding is the same
	// if rule, file and text are equal, even on another line.
	New       []scan.Finding `json:"new"`
	Removed   int            `json:"gone"` // only in the old version
	Unchanged int            `json:"kept"` // in both versions
	// Truncated says that a scan reached a limit, so that findings may be
	// missing.
	Truncated bool `json:"truncated,omitempty"`
}

// findings scans both versions.
func (c *comparison) compareFindings() error {
	if c.options.NoScan {
		return nil
	}
	var reports [2]scan.Report
	for i, s := range []*versionFiles{&c.old, &c.new} {
		if s.fsys == nil {
			continue
		}
		r, err := scan.Skill(c.ctx, s.fsys, c.options.Folder)
		if err != nil {
			return err
		}
		reports[i] = *r
	}
	left := map[string]int{} // formatNumber of findings of the old version, by key
	for _, f := range reports[0].Findings {
		left[f.Key()]++
	}
	out := &c.diff.Findings
	out.Truncated = reports[0].Truncated || reports[1].Truncated
	for _, f := range reports[1].Findings {
		if left[f.Key()] > 0 {
			left[f.Key()]--
			out.Unchanged++
			continue
		}
		out.New = append(out.New, f)
	}
	out.Removed = len(reports[0].Findings) - out.Unchanged
	return nil
}
