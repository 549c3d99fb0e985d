package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/install"
	"github.com/loadout-dev/loadout/internal/setup"
	"github.com/loadout-dev/loadout/skill"
)

// plan is an installation plan for one skills directory.
type plan struct {
	*install.Plan
	to setup.SkillsDir
}

// planOptions control how a plan is computed, shown and applied.
type planOptions struct {
	force, downgrade, yes, dryRun, fullDiff bool
	verb                                    string // "add" or "update"
}

// newPlan returns an empty plan. The caller must close it.
func (a *app) newPlan(to setup.SkillsDir, from setup.Fetcher, o planOptions) (*plan, error) {
	p, err := install.New(to.Dir, install.Options{Source: from, Pins: a.PublisherKeys(), History: a.SeenVersions(), Force: o.force, Downgrade: o.downgrade, FullDiff: o.fullDiff,
		Progress: func(operation string) func() { return from.Begin(plain(operation)) }})
	if err != nil {
		return nil, err
	}
	return &plan{p, to}, nil
}

// executePlan prints a plan, asks for confirmation on a terminal, and applies
// it.
func (a *app) executePlan(ctx context.Context, p *plan, out addOutput, o planOptions) error {
	if len(p.Steps) == 0 && len(p.Failures) == 1 && !a.JSON { // nothing else was requested
		return a.planError(p.Failures[0].Err, p.to)
	}
	out.Problems = append(out.Problems, a.planProblems(p)...)
	for _, st := range p.Steps {
		out.Skills = append(out.Skills, st.Skill)
	}
	if !a.JSON {
		a.printPlan(p, out.Problems, o)
	}
	if err := a.applyPlan(ctx, p, o); err != nil {
		return err
	}
	if err := a.reinstateApprovals(ctx, p, o); err != nil {
		return err
	}
	if !a.JSON {
		a.printPlanResult(ctx, p, o)
	} else if err := a.PrintJSON(out); err != nil {
		return err
	}
	return a.failedSkillsError(p)
}

// applyPlan applies the changes in a plan after confirmation.
func (a *app) applyPlan(ctx context.Context, p *plan, o planOptions) error {
	if len(p.Changes()) == 0 || o.dryRun {
		return nil
	}
	if err := a.confirmPlan(ctx, p, o); err != nil {
		return err
	}
	if err := p.Apply(ctx); err != nil {
		return err
	}
	if a.Caller().IsUser() { // what an agent installs is pending in a project
		var folders []string
		for _, st := range p.Changes() {
			folders = append(folders, st.Name)
		}
		a.RecordListed(ctx, p.to.Path(), folders)
	}
	return nil
}

// reinstateApprovals reinstates the superseded approvals of the versions that the
// user chose. It prints the names of the skills with reinstated approvals.
func (a *app) reinstateApprovals(ctx context.Context, p *plan, o planOptions) error {
	if o.dryRun {
		return nil
	}
	again, err := a.ReinstateApprovals(ctx, p.to, p.ChosenVersions())
	for _, st := range p.Steps {
		if slices.Contains(again, st.Digest) {
			a.Note("your earlier approval of this version of %s is valid again; to revoke it: loadout approve --revoke %s", plain(st.Name), console.ShellQuote(st.Name))
		}
	}
	return err
}

// confirmPlan asks the user on a terminal to confirm. Without a terminal,
// running the command counts as consent, because no installed code runs before
// it is approved.
func (a *app) confirmPlan(ctx context.Context, p *plan, o planOptions) error {
	if o.yes || a.JSON || !console.IsTerminal(a.Stdin) || !console.IsTerminal(a.Stderr) {
		return nil
	}
	question := fmt.Sprintf("\nInstall into %s?", p.to.Path())
	if o.verb == "update" {
		question = "\nUpdate?"
	}
	yes, err := a.Confirm(ctx, question)
	if err == nil && !yes {
		err = exit.Errorf(exit.Refused, "to see the plan again, add --dry-run", "Cancelled. Nothing was changed.")
	}
	return err
}

// planProblems returns the failures in a plan as problems, except those that
// its sources already reported.
func (a *app) planProblems(p *plan) []catalog.Problem {
	var out []catalog.Problem
	for _, f := range p.Failures {
		if f.Listed {
			continue
		}
		code := "not-added"
		if isType[*skill.RefusedError](f.Err) {
			code = "refused"
		}
		_, fix := a.planErrorHint(f.Err, p.to)
		out = append(out, catalog.Problem{Path: f.Dir, Diagnostic: skill.Diagnostic{Severity: skill.Error, Code: code, Message: f.Err.Error(), Fix: fix}})
	}
	return out
}

// failedSkillsError returns an error if requested skills could not be
// installed. Its exit code is that of the first failure, unless other skills
// were installed.
func (a *app) failedSkillsError(p *plan) error {
	if len(p.Failures) == 0 {
		return nil
	}
	if len(p.Changes()) > 0 {
		return exit.Reported
	}
	code, fix := a.planErrorHint(p.Failures[0].Err, p.to)
	if a.JSON {
		return &exit.Error{Code: code}
	}
	return exit.Errorf(code, fix, "cannot install %s", console.Pluralize(len(p.Failures), "skill"))
}

// planError adds the exit code and hint to an error from a plan.
func (a *app) planError(err error, to setup.SkillsDir) error {
	code, fix := a.planErrorHint(err, to)
	return exit.Errorf(code, fix, "%w", err)
}

// planErrorHint returns the exit code and hint for err, the reason why a skill
// cannot be installed into dir.
func (a *app) planErrorHint(err error, dir setup.SkillsDir) (code int, fix string) {
	if e, ok := errors.AsType[*exit.Error](err); ok {
		return e.Code, e.Hint
	}
	if e, ok := errors.AsType[*install.SkillError](err); ok {
		return skillErrorHint(e, dir)
	}
	if isType[*skill.RefusedError](err) {
		return exit.Failure, "the author of the skill has to fix it"
	}
	return a.classifyError(err)
}

func skillErrorHint(e *install.SkillError, to setup.SkillsDir) (code int, fix string) {
	name := console.ShellQuote(e.Name)
	switch e.Reason {
	case install.Invalid:
		return exit.Failure, e.Fix
	case install.NameTaken:
		return exit.Usage, "choose one of them by its directory: --skill " + console.ShellQuote(e.Dir)
	case install.NotInstalled:
		return exit.Failure, "move it away, or replace it with --force"
	case install.OtherSource:
		return exit.Failure, "keep it, or replace it with --force; to remove it: loadout remove " + name + to.Flag()
	case install.Pinned:
		return exit.Failure, "choose a version with @, or install this one with --force"
	case install.TagMoved:
		return exit.Refused, "find out why; to install it anyway: --force"
	case install.Edited:
		return exit.Failure, "see the differences: loadout verify " + name + to.Flag() + "; to discard your edits: --force"
	case install.Downgrade:
		return exit.Refused, "ask the publisher why the source has an older version; to install it anyway, repeat the command with --downgrade"
	case install.WrongClock:
		return exit.Refused, "correct the clock of this machine; if it is right, ask the publisher to sign the skill again"
	case install.KeyExpired:
		return exit.Refused, "installed skills keep working; ask the publisher to replace the key and sign again, and check the clock of this machine"
	case install.CounterMismatch:
		return exit.Refused, "restore loadout.lock from version control"
	case install.LockMismatch:
		return exit.Failure, "see the differences: loadout verify" + to.Flag() + "; to discard them: --force"
	case install.Missing:
		return exit.Failure, "report it to the owner of the source, or add the skill from another source"
	case install.DigestMismatch:
		return exit.Refused, "the source changed after the skill was added; find out why, then: loadout update " + name
	}
	return exit.Failure, "check the installed skills: loadout list; then try again"
}
