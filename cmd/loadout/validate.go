package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout/skill"
)

// validated is the verdict on one skill.
type validated struct {
	Path        string            `json:"path"`
	Name        string            `json:"name"`
	Valid       bool              `json:"valid"`
	Loads       bool              `json:"loads"`
	Diagnostics skill.Diagnostics `json:"diagnostics"`
}

func (a *app) validateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "validate PATH...",
		Short: "Check skills against the specification",
		Long: `Check a skill (its directory, its SKILL.md or an archive), or all skills below a
directory, by the rules of the specification's reference validator. A skill that
is not valid may still load: what is repaired is said. Exits with 1 if any skill
is not valid.`,
		Example: `  loadout validate my-skill
  loadout validate skills --json | jq '.results[] | select(.valid | not)'`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			results := []validated{}
			for _, p := range args {
				found, err := validatePath(cmd.Context(), p)
				if err != nil {
					return err
				}
				results = append(results, found...)
			}
			if a.json {
				if err := a.printJSON(map[string]any{"results": results}); err != nil {
					return err
				}
			} else {
				a.printValidated(results)
			}
			for _, r := range results {
				if !r.Valid {
					return errFound
				}
			}
			return nil
		},
	}
}

// validatePath checks what is at a path: one skill, or all below it.
func validatePath(ctx context.Context, p string) ([]validated, error) {
	fi, err := os.Stat(p)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fail(exitNotFound, "check the path", "Path does not exist: %s", p)
	case err != nil:
		return nil, fail(exitFound, "check that you have the right to read it", "%s: %w", p, reason(err))
	case fi.IsDir():
		return validateDir(ctx, p)
	case skill.IsFileName(filepath.Base(p)):
		return []validated{validateSkill(filepath.Dir(p), p)}, nil
	case isArchive(p):
		return []validated{validateArchive(p)}, nil
	}
	return nil, fail(exitUsage, "give a skill's directory, its SKILL.md, or a .zip or .skill archive", "Not a directory: %s", p)
}

func isArchive(p string) bool {
	ext := strings.ToLower(filepath.Ext(p))
	return ext == ".zip" || ext == ".skill"
}

func validateDir(ctx context.Context, dir string) ([]validated, error) {
	if hasSkill(dir) {
		return []validated{validateSkill(dir, dir)}, nil
	}
	var out []validated
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		switch {
		case err != nil:
			return nil // what cannot be read is no skill of this person's
		case d.IsDir() && p != dir && (skill.Ignored(d.Name()) || d.Name() == "node_modules"):
			return fs.SkipDir
		case !d.IsDir() && skill.IsFileName(d.Name()):
			out = append(out, validateSkill(filepath.Dir(p), filepath.Dir(p)))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(out) == 0 {
		d := skill.Diagnostic{Severity: skill.Error, Code: "no-skill-md", Message: "Missing required file: SKILL.md",
			Fix: "make one with: loadout new NAME", Rule: 3}
		out = []validated{{Path: dir, Diagnostics: skill.Diagnostics{d}}}
	}
	return out, nil
}

func hasSkill(dir string) bool {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, e := range entries {
		if skill.IsFileName(e.Name()) && !e.IsDir() {
			return true
		}
	}
	return false
}

func validateSkill(dir, shown string) validated {
	abs, err := filepath.Abs(dir)
	if err != nil {
		abs = dir
	}
	b, err := skill.OpenDir(abs)
	if err != nil {
		return unreadable(shown, err)
	}
	defer b.Close()
	v := validateBundle(b, shown)
	if _, ds, err := skill.List(b.FS); err == nil {
		v.Diagnostics = append(v.Diagnostics, ds...)
	}
	return v
}

func validateBundle(b *skill.Bundle, shown string) validated {
	s, ds, err := skill.Parse(b.FS, b.Folder)
	if err != nil {
		return unreadable(shown, err)
	}
	v := validated{Path: shown, Valid: ds.Valid(), Loads: s != nil && ds.Loads(), Diagnostics: append(skill.Diagnostics{}, ds...)}
	if s != nil {
		v.Name = s.Name
	}
	return v
}

func validateArchive(p string) validated {
	f, err := os.Open(p)
	if err != nil {
		return unreadable(p, err)
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return unreadable(p, err)
	}
	b, err := skill.OpenZIP(f, fi.Size(), p, skill.Limits{})
	if refusals, ok := skill.IsRefused(err); ok {
		v := validated{Path: p}
		for _, r := range refusals {
			v.Diagnostics = append(v.Diagnostics, skill.Diagnostic{Severity: skill.Error, Code: r.Code, Message: r.String(), Fix: "pack it again with: loadout pack DIR", Rule: 3})
		}
		return v
	}
	if err != nil {
		return unreadable(p, err)
	}
	return validateBundle(b, p)
}

func unreadable(p string, err error) validated {
	return validated{Path: p, Diagnostics: skill.Diagnostics{{Severity: skill.Error, Code: "unreadable", Message: "cannot be read: " + reason(err).Error(),
		Fix: "check that you have the right to read it", Rule: 3}}}
}

func (a *app) printValidated(results []validated) {
	valid := 0
	for _, r := range results {
		verdict := "valid"
		switch {
		case r.Valid:
			valid++
		case r.Loads:
			verdict = "not valid, but loads"
		default:
			verdict = "does not load"
		}
		fmt.Fprintf(a.stdout, "%s: %s\n", a.bold(safe(r.Path)), verdict)
		for _, d := range r.Diagnostics {
			if a.quiet && d.Severity == skill.Info {
				continue
			}
			fmt.Fprintf(a.stdout, "  %s\n", safe(d.String()))
			if d.Fix != "" {
				fmt.Fprintf(a.stdout, "      %s\n", a.faint(safe(d.Fix)))
			}
		}
	}
	if len(results) > 1 {
		fmt.Fprintf(a.stdout, "%d skills, %d valid\n", len(results), valid)
	}
}
