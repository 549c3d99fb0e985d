package main

import (
	"context"
	"fmt"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/setup"
)

// isRunByUser reports whether the user typed the command, which approves the
// run. It returns an error if the flags give the run more permissions than an
// approval, and the user did not type or confirm the command.
func (a *app) isRunByUser(ctx context.Context, args []string, o *runFlags, managed bool) (bool, error) {
	typed := a.Caller().IsUser() && a.IsAttended() && !managed
	if typed || !o.write && !o.host && len(o.secrets) == 0 {
		return typed, nil
	}
	command := a.widenedRun(args, o)
	if _, err := a.RequireUser(ctx, "", command...); err != nil {
		return false, err
	}
	return true, a.confirmRun(ctx, command, fmt.Sprintf("Run %s of skill %s with these permissions?", plain(args[1]), plain(args[0])))
}

// confirmUnapproved returns nil if the user lets a skill run once that is not
// approved.
func (a *app) confirmUnapproved(ctx context.Context, args []string, e *loadout.RefusedError) error {
	command := append([]string{"approve", e.Skill}, a.SkillArgs()...)
	if _, err := a.RequireUser(ctx, unattendedHint(e.Skill), command...); err != nil {
		return err
	}
	return a.confirmRun(ctx, append([]string{"run"}, args...), fmt.Sprintf("Skill %s is not approved. Run %s once?", plain(e.Skill), plain(args[1])))
}

// confirmRun asks the user on the terminal about a run with redirected input or
// output. The second word of command is the skill.
func (a *app) confirmRun(ctx context.Context, command []string, question string) error {
	yes, err := a.ConfirmUser(ctx, setup.Confirmation{Question: question, Args: command})
	if err == nil && !yes {
		err = exit.Errorf(exit.Refused, "review it: loadout approve "+console.ShellQuote(command[1])+" --dry-run", "run not confirmed")
	}
	return err
}

// widenedRun returns the command for a run with more permissions than the skill
// requests, without the script's own arguments.
func (a *app) widenedRun(args []string, o *runFlags) []string {
	out := append([]string{"run", args[0], args[1]}, a.SkillArgs()...)
	if o.workspace != "" {
		out = append(out, "--workspace", o.workspace)
	}
	if o.write {
		out = append(out, "--write")
	}
	if o.host {
		out = append(out, "--host-network")
	}
	for _, name := range o.secrets {
		out = append(out, "--secret", name)
	}
	return out
}
