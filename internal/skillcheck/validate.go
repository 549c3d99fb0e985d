package skillcheck

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/loadout-dev/loadout/internal/fileerror"
	"github.com/loadout-dev/loadout/internal/skillpath"
	"github.com/loadout-dev/loadout/skill"
)

// Validation holds the result of validating one skill.
type Validation struct {
	Path        string            `json:"path"`
	Name        string            `json:"name"`
	Valid       bool              `json:"valid"`
	Loads       bool              `json:"loads"` // an invalid skill may still be loadable
	Diagnostics skill.Diagnostics `json:"diagnostics"`
}

// Validate validates the skill at a path, or all skills below a directory. An
// unreadable skill is reported as a result, not an error. The error is
// [ErrNotSkill], the cause of ctx, or an error about a path that does not
// exist.
func Validate(ctx context.Context, p string) ([]Validation, error) {
	fi, err := os.Stat(p)
	switch {
	case err != nil:
		return nil, err
	case fi.IsDir():
		return validateBelow(ctx, p)
	case skillpath.IsSkillFile(filepath.Base(p)) && fi.Mode().IsRegular():
		return []Validation{validateDir(filepath.Dir(p), p)}, nil
	case IsArchive(p) && fi.Mode().IsRegular():
		return []Validation{validateArchive(p, p)}, nil
	}
	return nil, ErrNotSkill
}

// validateBelow validates the skill in a directory, or all skills below it.
func validateBelow(ctx context.Context, dir string) ([]Validation, error) {
	if containsSkill(dir) {
		return []Validation{validateDir(dir, dir)}, nil
	}
	var out []Validation
	err := walkSkills(ctx, dir, func(f walkEntry) error {
		switch {
		case f.err != nil:
			out = append(out, unreadableResult(f.shown, f.err))
		case !f.entry.IsDir() && skillpath.IsSkillFile(f.entry.Name()):
			out = append(out, validateDir(filepath.Dir(f.path), filepath.Dir(f.shown)))
		case f.isSkillLink():
			out = append(out, validateDir(f.path, f.shown))
		case f.isArchive():
			out = append(out, validateArchive(f.path, f.shown))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(out) == 0 {
		d := skill.Diagnostic{Severity: skill.Error, Code: "no-skill-md", Message: "Missing required file: SKILL.md",
			Fix: "create one with: loadout new NAME", Rule: 3}
		out = []Validation{{Path: dir, Diagnostics: skill.Diagnostics{d}}}
	}
	return out, nil
}

func validateDir(dir, shown string) Validation {
	b, err := openDir(dir)
	if err != nil {
		return unreadableResult(shown, err)
	}
	defer b.Close()
	return validateBundle(b, shown)
}

func validateBundle(b *skill.Bundle, shown string) Validation {
	s, ds, err := skill.Parse(b.FS, b.Folder)
	if err != nil {
		return unreadableResult(shown, err)
	}
	v := Validation{Path: shown, Valid: ds.Valid(), Loads: s != nil && ds.Loads(), Diagnostics: append(skill.Diagnostics{}, ds...)}
	if s != nil {
		v.Name = s.Name
	}
	files, ds, err := skill.List(b.FS)
	if err != nil {
		return v
	}
	v.Diagnostics = append(v.Diagnostics, ds...)
	if s != nil {
		v.Diagnostics = append(v.Diagnostics, findReferences(s.Instructions, firstLine(b.FS, s), files)...)
	}
	return v
}

func validateArchive(p, shown string) Validation {
	f, err := os.Open(p)
	if err != nil {
		return unreadableResult(shown, err)
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return unreadableResult(shown, err)
	}
	b, err := skill.OpenZIP(f, fi.Size(), p, skill.Limits{})
	if refused, ok := errors.AsType[*skill.RefusedError](err); ok {
		v := Validation{Path: shown}
		for _, r := range refused.Refusals {
			v.Diagnostics = append(v.Diagnostics, skill.Diagnostic{Severity: skill.Error, Code: r.Code, Message: r.String(), Fix: "pack it again with: loadout pack DIR", Rule: 3})
		}
		return v
	}
	if err != nil {
		return unreadableResult(shown, err)
	}
	return validateBundle(b, shown)
}

func unreadableResult(p string, err error) Validation {
	return Validation{Path: p, Diagnostics: skill.Diagnostics{{Severity: skill.Error, Code: "unreadable", Message: "cannot be read: " + fileerror.Cause(err).Error(),
		Fix: "check that you can read it", Rule: 3}}}
}
