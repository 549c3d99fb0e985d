package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout/skill"
)

// validatedSkill is the result for one skill.
type validatedSkill struct {
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
		Long: `Check a skill (its directory, SKILL.md or archive), or all skills below a directory,
by the rules of the specification's reference validator. An invalid skill may still
load; repairs are listed. Exits with 1 if a skill is invalid.`,
		Example: `  loadout validate my-skill
  loadout validate skills --json | jq '.results[] | select(.valid | not)'`,
		Args: argCount(1, -1, "the PATH of a skill or of a directory with skills"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.validateSkills(cmd.Context(), args) },
	}
}

// validateSkills prints the results for all paths, even if one path does not
// exist.
func (a *app) validateSkills(ctx context.Context, paths []string) error {
	results := []validatedSkill{}
	var failed error
	done := a.showProgress("checking skills")
	for _, p := range paths {
		found, err := validatePath(ctx, p)
		if failed == nil {
			failed = err
		}
		results = append(results, found...)
	}
	done()
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	switch {
	case failed != nil && len(results) == 0:
		return failed
	case !a.json:
		a.printValidated(results)
	default:
		if err := a.printJSON(map[string]any{"results": results}); err != nil {
			return err
		}
	}
	if failed == nil && slices.ContainsFunc(results, func(v validatedSkill) bool { return !v.Valid }) {
		return errReported
	}
	return failed
}

// validatePath checks the skill at a path, or all skills below it.
func validatePath(ctx context.Context, p string) ([]validatedSkill, error) {
	fi, err := os.Stat(p)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fail(exitNotFound, "check the path", "Path does not exist: %s", p)
	case err != nil:
		_, hint := fileErrorHint(err, "the path")
		return nil, fail(exitFailure, hint, "%s: %w", p, fileCause(err))
	case fi.IsDir():
		return validateDir(ctx, p)
	case skill.IsFileName(filepath.Base(p)) && fi.Mode().IsRegular():
		return []validatedSkill{validateSkill(filepath.Dir(p), p)}, nil
	case isArchive(p) && fi.Mode().IsRegular():
		return []validatedSkill{validateArchive(p)}, nil
	}
	return nil, fail(exitUsage, "give a skill's directory, its SKILL.md, or a .zip or .skill archive", "Not a directory: %s", p)
}

func isArchive(p string) bool {
	ext := strings.ToLower(filepath.Ext(p))
	return ext == ".zip" || ext == ".skill"
}

func validateDir(ctx context.Context, dir string) ([]validatedSkill, error) {
	if containsSkill(dir) {
		return []validatedSkill{validateSkill(dir, dir)}, nil
	}
	root := dir
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		root = real // WalkDir does not follow symlinks, not even for the root
	}
	var out []validatedSkill
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		shown := filepath.Join(dir, strings.TrimPrefix(p, root))
		switch {
		case err != nil:
			out = append(out, unreadableSkill(shown, err))
		case d.IsDir() && p != root && (skill.IsIgnored(d.Name()) || d.Name() == "node_modules"):
			return fs.SkipDir
		case !d.IsDir() && skill.IsFileName(d.Name()):
			out = append(out, validateSkill(filepath.Dir(p), filepath.Dir(shown)))
		case d.Type()&fs.ModeSymlink != 0 && containsSkill(p):
			out = append(out, validateSkill(p, shown))
		case d.Type().IsRegular() && strings.EqualFold(filepath.Ext(p), ".skill"):
			v := validateArchive(p)
			v.Path = shown
			out = append(out, v)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(out) == 0 {
		d := skill.Diagnostic{Severity: skill.Error, Code: "no-skill-md", Message: "Missing required file: SKILL.md",
			Fix: "create one with: loadout new NAME", Rule: 3}
		out = []validatedSkill{{Path: dir, Diagnostics: skill.Diagnostics{d}}}
	}
	return out, nil
}

func containsSkill(dir string) bool {
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

func validateSkill(dir, shown string) validatedSkill {
	abs, err := filepath.Abs(dir)
	if err != nil {
		abs = dir
	}
	b, err := skill.OpenDir(abs)
	if err != nil {
		return unreadableSkill(shown, err)
	}
	defer b.Close()
	v := validateBundle(b, shown)
	if _, ds, err := skill.List(b.FS); err == nil {
		v.Diagnostics = append(v.Diagnostics, ds...)
	}
	return v
}

func validateBundle(b *skill.Bundle, shown string) validatedSkill {
	s, ds, err := skill.Parse(b.FS, b.Folder)
	if err != nil {
		return unreadableSkill(shown, err)
	}
	v := validatedSkill{Path: shown, Valid: ds.Valid(), Loads: s != nil && ds.Loads(), Diagnostics: append(skill.Diagnostics{}, ds...)}
	if s != nil {
		v.Name = s.Name
	}
	return v
}

func validateArchive(p string) validatedSkill {
	f, err := os.Open(p)
	if err != nil {
		return unreadableSkill(p, err)
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return unreadableSkill(p, err)
	}
	b, err := skill.OpenZIP(f, fi.Size(), p, skill.Limits{})
	if refusals, ok := skill.Refusals(err); ok {
		v := validatedSkill{Path: p}
		for _, r := range refusals {
			v.Diagnostics = append(v.Diagnostics, skill.Diagnostic{Severity: skill.Error, Code: r.Code, Message: r.String(), Fix: "pack it again with: loadout pack DIR", Rule: 3})
		}
		return v
	}
	if err != nil {
		return unreadableSkill(p, err)
	}
	return validateBundle(b, p)
}

func unreadableSkill(p string, err error) validatedSkill {
	return validatedSkill{Path: p, Diagnostics: skill.Diagnostics{{Severity: skill.Error, Code: "unreadable", Message: "cannot be read: " + fileCause(err).Error(),
		Fix: "check that you can read it", Rule: 3}}}
}

func (a *app) printValidated(results []validatedSkill) {
	valid, loads := 0, 0
	var b strings.Builder
	for _, r := range results {
		verdict := a.red("does not load")
		switch {
		case r.Valid:
			valid++
			verdict = a.green("valid")
		case r.Loads:
			loads++
			verdict = a.red("invalid, but loads")
		}
		if a.quiet && r.Valid {
			continue
		}
		fmt.Fprintf(&b, "%s: %s\n", a.bold(plain(r.Path)), verdict)
		for _, d := range r.Diagnostics {
			if a.quiet && d.Severity == skill.Info {
				continue
			}
			a.writeWrapped(&b, "  ", d.String(), noStyle)
			a.writeWrapped(&b, "      ", d.Fix, a.faint)
		}
	}
	if len(results) > 1 {
		fmt.Fprintf(&b, "%s: %d valid, %d invalid but loading, %d not loading\n", pluralize(len(results), "skill"), valid, loads, len(results)-valid-loads)
	}
	fmt.Fprint(a.stdout, b.String())
}
