// Package skilldiff compares two versions of a skill, so that a user can decide
// whether to accept the newer one. It compares files, frontmatter fields, lines
// of text, requested permissions and scan findings.
//
// The package only informs and makes no decisions. It knows neither approvals
// nor installed skills. It runs nothing, makes no connections and writes
// nothing. It treats all input as hostile, limits sizes, counts and work, and
// reports what it omitted. Start reading at [Compare].
package skilldiff

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/loadout-dev/loadout/internal/scan"
	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/skill"
)

// Fixed limits for a comparison. Anything beyond them is reported but not
// compared.
const (
	// MaxTextBytes is the maximum size of a file that is compared line by line.
	MaxTextBytes = 1 << 20
	// MaxValueBytes is the maximum length of a value in [FieldChange] and
	// [PermissionChange].
	MaxValueBytes = 2000
	// MaxPermissions is the maximum length of each list in [PermissionChanges].
	MaxPermissions = 1000
)

// Options configures a comparison. The zero value compares everything, but
// returns the changed lines of SKILL.md only.
type Options struct {
	// Folder is the name of the skill's directory, as for [skill.Parse].
	Folder string
	// Texts specifies whether to return the changed lines of every text file;
	// see [File.Diff].
	Texts bool
	// FileBytes is the maximum size of the changed lines per file. The default
	// is 64 KiB.
	FileBytes int
	// TotalBytes is the maximum total size of the changed lines in all files.
	// The default is 1 MiB.
	TotalBytes int
	// LineBytes is the maximum length of a line. The default is 500.
	LineBytes int
	// NoScan disables the scan, which is most of the work. [Diff.Findings] is
	// then empty.
	NoScan bool
}

// Diff holds the differences between two versions of a skill. The zero value
// means that there are none.
type Diff struct {
	Name string   `json:"name"` // name in the new version, or in the old one if there is no new one
	Old  *Version `json:"old"`  // nil if there is none
	New  *Version `json:"new"`  // nil if there is none
	// Files lists the files that differ, sorted by path.
	Files     []File `json:"files"`
	Unchanged int    `json:"same"` // number of identical files
	// Instructions contains the changed lines of SKILL.md, including the
	// frontmatter, in the format of [Unified]. It is "" if there are none.
	Instructions string `json:"instructions,omitempty"`
	// Fields lists the changed frontmatter fields in the order of a SKILL.md.
	Fields      []FieldChange     `json:"fields"`
	Permissions PermissionChanges `json:"asks"`
	Findings    Findings          `json:"findings"`
	// Problems lists what could not be compared, one line per problem.
	Problems []string `json:"problems"`
}

// Version describes one of the two compared versions.
type Version struct {
	Version string `json:"version,omitempty" doc:"As stated by the skill"`
	Digest  string `json:"digest"` // digest of all files
	Files   int    `json:"files"`
	Bytes   int64  `json:"bytes"`
	Scripts int    `json:"scripts"`
}

// Compare returns the differences between old and new. One of them may be nil,
// in which case all files of the other are added or removed. The files must not
// change during the call; a changed file is reported as a problem in the
// result.
//
// Errors in a version, such as a missing or invalid SKILL.md, are reported as
// problems too. Compare returns an error if ctx is done, or if the files cannot be
// listed or hashed, for example because there are more than [skillfile.MaxFiles]
// ([skill.ErrTooLarge]). It is safe for concurrent use.
func Compare(ctx context.Context, old, new fs.FS, o *Options) (*Diff, error) {
	if old == nil && new == nil {
		return nil, errors.New("compare versions of a skill: both versions are nil")
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

// withDefaults returns a copy of the options with zero fields set to their
// defaults.
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

// withLists replaces nil lists, which JSON encodes as null, with empty ones.
func (d *Diff) withLists() *Diff {
	d.Files = append([]File{}, d.Files...)
	d.Fields = append([]FieldChange{}, d.Fields...)
	d.Permissions.More = append([]PermissionChange{}, d.Permissions.More...)
	d.Permissions.Less = append([]PermissionChange{}, d.Permissions.Less...)
	d.Findings.New = append([]scan.Finding{}, d.Findings.New...)
	d.Problems = append([]string{}, d.Problems...)
	return d
}

// comparison holds the state of a [Compare] call.
type comparison struct {
	ctx        context.Context
	options    Options
	old, new   versionFiles
	diff       Diff
	readBytes  int64 // total size of the files that differ
	shownBytes int   // total size of the lines in the diff
	table      int   // number of table entries used so far
}

// versionFiles holds the files of a version. It is empty if the version does
// not exist.
type versionFiles struct {
	fsys     fs.FS // nil if the version does not exist
	manifest skill.Manifest
	main     string       // path of the SKILL.md; "" if there is none
	skill    *skill.Skill // never nil
}

// maxProblems is the maximum number of reported problems.
const maxProblems = 100

func (c *comparison) addProblem(format string, args ...any) {
	switch n := len(c.diff.Problems); {
	case n < maxProblems:
		c.diff.Problems = append(c.diff.Problems, escapeText(fmt.Sprintf(format, args...), MaxValueBytes))
	case n == maxProblems:
		c.diff.Problems = append(c.diff.Problems, "further problems omitted")
	}
}

// openVersion lists and hashes the files of a version and parses its SKILL.md.
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
				c.addProblem("%s: invalid skill: %s", name, d.Message)
			}
		}
	}
	if parsed != nil {
		s.skill = parsed
	}
	s.main, err = skillfile.Find(fsys)
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

// Findings holds the differences between the scan findings of the two versions.
type Findings struct {
	// New lists findings that only the new version has. Findings are equal if
	// rule, file and text are equal, even on different lines.
	New       []scan.Finding `json:"new"`
	Removed   int            `json:"gone"` // number of findings only in the old version
	Unchanged int            `json:"kept"` // number of findings in both versions
	// Truncated is set if a scan reached a limit, so findings may be missing.
	Truncated bool `json:"truncated,omitempty"`
}

// compareFindings scans both versions and compares the findings.
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
	left := map[string]int{} // number of findings in the old version, by key
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
