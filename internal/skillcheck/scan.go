package skillcheck

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/loadout-dev/loadout/internal/fileerror"
	"github.com/loadout-dev/loadout/internal/scan"
	"github.com/loadout-dev/loadout/internal/skillpath"
	"github.com/loadout-dev/loadout/skill"
)

// ScanTimeout is the time limit that [ScanPath] sets for each skill.
const ScanTimeout = time.Minute

// TimeoutError is returned if a scan exceeds its time limit.
type TimeoutError struct{ Limit time.Duration }

func (e *TimeoutError) Error() string { return fmt.Sprintf("scan timed out after %v", e.Limit) }

// Scan scans a skill's files within a time limit. The error is the cause of
// ctx, a [*TimeoutError], or an error from [scan.Skill].
func Scan(ctx context.Context, files fs.FS, name string, limit time.Duration) (*scan.Report, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, &TimeoutError{limit})
	defer cancel()
	r, err := scan.Skill(ctx, files, name)
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return r, err
}

// CountFindings counts findings by severity. The result has an entry for every
// severity.
func CountFindings(reports ...*scan.Report) map[string]int {
	out := map[string]int{}
	for s := scan.Info; s <= scan.High; s++ {
		out[s.String()] = 0
	}
	for _, r := range reports {
		for s, n := range r.Counts() {
			out[s.String()] += n
		}
	}
	return out
}

// Scanned holds the result of scanning one skill.
type Scanned struct {
	Path string `json:"path"`
	*scan.Report
}

// ScanError is an error with the path of the skill. It wraps, for example, a
// [*TimeoutError], [skill.ErrTooLarge] or the reasons why an archive was
// rejected.
type ScanError struct {
	Path   string
	Opened bool // the skill was opened, but its files could not be scanned
	Err    error
}

func (e *ScanError) Error() string { return e.Path + ": " + e.Err.Error() }
func (e *ScanError) Unwrap() error { return e.Err }

// ScanPath scans the skill at a path, or all skills below a directory. A
// directory without skills is scanned as one skill. The error is [ErrNotSkill],
// a [*ScanError], or the cause of ctx.
func ScanPath(ctx context.Context, p string) ([]Scanned, error) {
	fi, err := os.Stat(p)
	switch {
	case err != nil:
		return nil, &ScanError{Path: p, Err: fileerror.Cause(err)}
	case fi.IsDir():
		return scanBelow(ctx, p)
	case skillpath.IsSkillFile(filepath.Base(p)) && fi.Mode().IsRegular():
		return singleResult(scanDir(ctx, filepath.Dir(p), filepath.Dir(p)))
	case IsArchive(p) && fi.Mode().IsRegular():
		return singleResult(scanArchive(ctx, p, fi.Size()))
	}
	return nil, ErrNotSkill
}

// Open opens the skill at a path: its directory, its SKILL.md or an archive.
// The error is [ErrNotSkill] or a [*ScanError]. The caller must close the
// bundle.
func Open(p string) (*skill.Bundle, error) {
	fi, err := os.Stat(p)
	if err != nil {
		return nil, &ScanError{Path: p, Err: fileerror.Cause(err)}
	}
	var b *skill.Bundle
	switch {
	case fi.IsDir() && containsSkill(p):
		b, err = openDir(p)
	case skillpath.IsSkillFile(filepath.Base(p)) && fi.Mode().IsRegular():
		b, err = openDir(filepath.Dir(p))
	case IsArchive(p) && fi.Mode().IsRegular():
		return openArchive(p, fi.Size())
	default:
		return nil, ErrNotSkill
	}
	if err != nil {
		return nil, &ScanError{Path: p, Err: fileerror.Cause(err)}
	}
	return b, nil
}

// ScanBundle scans an open skill. shown is the skill's path in the result.
func ScanBundle(ctx context.Context, b *skill.Bundle, shown string) (Scanned, error) {
	r, err := Scan(ctx, b.FS, b.Folder, ScanTimeout)
	if err != nil && ctx.Err() == nil {
		err = &ScanError{Path: shown, Opened: true, Err: err}
	}
	return Scanned{shown, r}, err
}

func singleResult(s Scanned, err error) ([]Scanned, error) {
	if err != nil {
		return nil, err
	}
	return []Scanned{s}, nil
}

func scanBelow(ctx context.Context, dir string) ([]Scanned, error) {
	if containsSkill(dir) {
		return singleResult(scanDir(ctx, dir, dir))
	}
	var out []Scanned
	err := walkSkills(ctx, dir, func(f walkEntry) error {
		var s Scanned
		var err, next error
		switch {
		case f.err != nil:
			return &ScanError{Path: f.shown, Opened: true, Err: fileerror.Cause(f.err)}
		case f.entry.IsDir() && containsSkill(f.path):
			s, err = scanDir(ctx, f.path, f.shown)
			next = fs.SkipDir // files below belong to this skill
		case f.isSkillLink():
			s, err = scanDir(ctx, f.path, f.shown)
		case f.isArchive():
			info, gone := f.entry.Info()
			if gone != nil {
				return nil
			}
			s, err = scanArchive(ctx, f.path, info.Size())
		default:
			return nil
		}
		if err != nil {
			return err
		}
		out = append(out, s)
		return next
	})
	if err == nil && len(out) == 0 {
		return singleResult(scanDir(ctx, dir, dir))
	}
	return out, err
}

func scanDir(ctx context.Context, dir, shown string) (Scanned, error) {
	b, err := openDir(dir)
	if err != nil {
		return Scanned{}, &ScanError{Path: shown, Err: fileerror.Cause(err)}
	}
	defer b.Close()
	return ScanBundle(ctx, b, shown)
}

func scanArchive(ctx context.Context, p string, size int64) (Scanned, error) {
	b, err := openArchive(p, size)
	if err != nil {
		return Scanned{}, err
	}
	defer b.Close()
	return ScanBundle(ctx, b, p)
}

// openArchive opens the skill in an archive. Closing it closes the file, too.
func openArchive(p string, size int64) (*skill.Bundle, error) {
	f, err := os.Open(p)
	if err != nil {
		return nil, &ScanError{Path: p, Err: fileerror.Cause(err)}
	}
	b, err := skill.OpenZIP(f, size, p, skill.Limits{AllowFolderMismatch: true})
	if err != nil {
		f.Close()
		if _, refused := errors.AsType[*skill.RefusedError](err); refused {
			return nil, &ScanError{Path: p, Err: err}
		}
		return nil, err
	}
	return skill.NewBundle(b.FS, b.Folder, func() error { return errors.Join(b.Close(), f.Close()) }), nil
}
