package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout/internal/bundled"
	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/fileerror"
	"github.com/loadout-dev/loadout/internal/skillcheck"
	"github.com/loadout-dev/loadout/skill"
)

func (a *app) validateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "validate PATH...",
		Short: "Check skills against the specification",
		Long: `Check a skill (its directory, SKILL.md or archive), or all skills below a directory,
against the rules of the specification's reference validator. Loadout can load some
invalid skills; the output lists the repairs. Exits with status 1 if a skill is
invalid.`,
		Example: `  loadout validate my-skill
  loadout validate skills --json | jq '.results[] | select(.valid | not)'`,
		Args: argCount(1, -1, "the PATH of a skill or of a directory with skills"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.validateSkills(cmd.Context(), args) },
	}
}

// validateSkills validates all paths and prints the results, even if a path
// does not exist.
func (a *app) validateSkills(ctx context.Context, paths []string) error {
	results := []skillcheck.Validation{}
	var failed error
	done := a.ShowProgress("checking skills")
	for _, p := range paths {
		found, err := validatePath(ctx, p)
		if failed == nil {
			failed = err
		}
		results = append(results, found...)
	}
	done()
	skillcheck.AddLookalikes(results, bundled.Names())
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	switch {
	case failed != nil && len(results) == 0:
		return failed
	case !a.JSON:
		a.printValidated(results)
	default:
		if err := a.PrintJSON(map[string]any{"results": results}); err != nil {
			return err
		}
	}
	if failed == nil && slices.ContainsFunc(results, func(v skillcheck.Validation) bool { return !v.Valid }) {
		return exit.Reported
	}
	return failed
}

// validatePath validates the skill at a path, or all skills below it.
func validatePath(ctx context.Context, p string) ([]skillcheck.Validation, error) {
	out, err := skillcheck.Validate(ctx, p)
	switch {
	case err == nil || ctx.Err() != nil:
		return out, err
	case errors.Is(err, skillcheck.ErrNotSkill):
		return nil, exit.Errorf(exit.Usage, "give a skill's directory, its SKILL.md, or a .zip or .skill archive", "Not a directory: %s", p)
	case errors.Is(err, fs.ErrNotExist):
		return nil, exit.Errorf(exit.NotFound, "check the path", "Path does not exist: %s", p)
	}
	_, hint := exit.FileHint(err, "the path")
	return nil, exit.Errorf(exit.Failure, hint, "%s: %w", p, fileerror.Cause(err))
}

func (a *app) printValidated(results []skillcheck.Validation) {
	valid, loads := 0, 0
	var b strings.Builder
	for _, r := range results {
		verdict := a.Red("does not load")
		switch {
		case r.Valid:
			valid++
			verdict = a.Green("valid")
		case r.Loads:
			loads++
			verdict = a.Red("invalid, but loads")
		}
		if a.Quiet && r.Valid {
			continue
		}
		fmt.Fprintf(&b, "%s: %s\n", a.Bold(plain(r.Path)), verdict)
		for _, d := range r.Diagnostics {
			if a.Quiet && d.Severity == skill.Info {
				continue
			}
			a.WriteWrapped(&b, "  ", d.String(), console.NoStyle)
			a.WriteWrapped(&b, "      ", d.Fix, a.Faint)
		}
	}
	if len(results) > 1 {
		fmt.Fprintf(&b, "%s: %d valid, %d invalid but loading, %d not loading\n", console.Pluralize(len(results), "skill"), valid, loads, len(results)-valid-loads)
	}
	fmt.Fprint(a.Stdout, b.String())
}
