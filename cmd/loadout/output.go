package main

import (
	"fmt"
	"strings"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/terminal"
	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/skill"
)

// safe removes terminal control characters from the content of a file.
func safe(s string) string { return terminal.Safe(s) }

// plain returns a field, a name or an error as a single line without terminal
// control characters. It also alters prompt delimiters, so that they have no
// effect on an agent that reads the output.
func plain(s string) string { return untrusted.New(s).ForModel() }

// hintLine is like plain, but keeps repeated spaces, because the user copies the
// command in a hint.
func hintLine(s string) string {
	return strings.NewReplacer("\n", " ", "\t", " ").Replace(describe(s))
}

// describe is like plain, but keeps line breaks.
func describe(s string) string { return untrusted.New(s).ForModelLines() }

// printProblems prints the errors in skills, and the number of other findings,
// to standard error.
func (a *app) printProblems(ps []catalog.Problem) {
	if a.Quiet {
		return
	}
	if rest := len(ps) - a.printErrors(ps); rest > 0 {
		more := ""
		if rest < len(ps) {
			more = "more "
		}
		fmt.Fprintf(a.Stderr, "%s about skills: loadout doctor%s\n", console.Pluralize(rest, more+"finding"), a.SkillFlags())
	}
}

// printErrors prints the first ten skill errors and returns their number.
func (a *app) printErrors(ps []catalog.Problem) (shown int) {
	const most = 10
	for _, p := range ps {
		if p.Severity == skill.Error && shown < most {
			fmt.Fprintf(a.Stderr, "%s: %s: %s [%s]\n", formatPosition(p), p.Severity, plain(p.Message), p.Code)
			if p.Fix != "" {
				fmt.Fprintf(a.Stderr, "    %s\n", plain(p.Fix))
			}
			shown++
		}
	}
	return shown
}

// formatPosition returns the position of a problem in the form
// FILE:LINE:COLUMN, which editors and terminals recognize.
func formatPosition(p catalog.Problem) string {
	if p.Line == 0 {
		return plain(p.Path)
	}
	return fmt.Sprintf("%s:%d:%d", plain(p.Path), p.Line, max(p.Column, 1))
}
