package main

import (
	"context"
	"fmt"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/lease"
	"github.com/loadout-dev/loadout/internal/setup"
	"github.com/loadout-dev/loadout/policy"
)

// isRunByUser reports whether the user typed the command, which approves the
// run. It returns an error if the flags grant permissions that an approval does
// not include, and the user neither typed nor confirmed the command.
func (a *app) isRunByUser(ctx context.Context, rt *loadout.Runtime, args []string, o *runFlags, managed bool) (bool, error) {
	typed := a.Caller().IsUser() && a.IsAttended() && !managed
	if typed || !o.write && !o.host && len(o.secrets) == 0 && (managed || o.workspace == "" || a.mayUseWorkspace(ctx, rt, args[0])) {
		return typed, nil
	}
	command := a.runArgs(args, o)
	if _, err := a.RequireUser(ctx, "", command...); err != nil {
		return false, err
	}
	return true, a.confirmRun(ctx, command, fmt.Sprintf("Run %s of skill %s with these permissions?", plain(args[1]), plain(args[0])))
}

// mayUseWorkspace reports whether the user approved the skill with access to a
// workspace. Without such an approval, an agent must not give the skill access
// to a directory.
func (a *app) mayUseWorkspace(ctx context.Context, rt *loadout.Runtime, name string) bool {
	r, err := rt.ReadApprovalRequest(ctx, name)
	if err != nil {
		return false
	}
	g, err := lease.Find(ctx, a.GrantStore(), policy.LocalUser(), r.Digest, "", r.Needs)
	return err == nil && g.Permissions.WorkspaceWrite
}

// confirmUnapproved asks the user whether to run an unapproved skill once. It
// returns an error unless the user agrees.
func (a *app) confirmUnapproved(ctx context.Context, args []string, o *runFlags, e *loadout.RefusedError) error {
	command := append([]string{"approve", e.Skill}, a.SkillArgs()...)
	if _, err := a.RequireUser(ctx, unattendedHint(e.Skill), command...); err != nil {
		return err
	}
	return a.confirmRun(ctx, a.runArgs(args, o), fmt.Sprintf("Skill %s is not approved. Run %s once?", plain(e.Skill), plain(args[1])))
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

// runArgs returns the arguments of a command that repeats the run.
func (a *app) runArgs(args []string, o *runFlags) []string {
	out := append([]string{"run", args[0], args[1]}, a.SkillArgs()...)
	if a.ProfileName != "" {
		out = append(out, "--profile", a.ProfileName)
	}
	for _, p := range o.in {
		out = append(out, "--in", p)
	}
	for _, f := range []struct{ name, value string }{{"--out", o.out}, {"--folder", o.folder}, {"--workspace", o.workspace}} {
		if f.value != "" {
			out = append(out, f.name, f.value)
		}
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
	if o.timeout > 0 {
		out = append(out, "--timeout", o.timeout.String())
	}
	if len(args) > 2 {
		out = append(append(out, "--"), args[2:]...)
	}
	return out
}
