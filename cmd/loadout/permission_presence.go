package main

import (
	"context"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/review"
	"github.com/loadout-dev/loadout/policy"
)

// digestStated is the presence of a user who stated what they reviewed, on a
// machine without a terminal.
const digestStated = "digest stated"

// requireApprover returns how it is known that the user approves a skill. An
// unattended machine states the digests. It returns an error if an agent runs
// the command, also with digests: an agent can compute them.
func (a *app) requireApprover(ctx context.Context, name string, o *approveFlags) (string, error) {
	if o.yes && len(o.digests) == 0 {
		a.Note("--yes without --digest is deprecated and will be removed")
	}
	if c := a.Caller(); !a.IsManaged() && c.Agent == "" && (c.Terminal == "" || !console.IsTerminal(a.Stdin)) && o.yes && len(o.digests) > 0 {
		return digestStated, nil
	}
	return a.RequireUser(ctx, unattendedHint(name), a.approveArgs(name, o)...)
}

// approveArgs returns the arguments of the command that approves a skill with
// the same permissions and conditions. It omits --yes, so that it asks.
func (a *app) approveArgs(name string, o *approveFlags) []string {
	args := []string{"approve", name}
	if o.workspace {
		args = append(args, "--write-workspace")
	}
	if o.host {
		args = append(args, "--host-network")
	}
	if o.unsandboxed {
		args = append(args, "--unsandboxed")
	}
	if o.expires > 0 {
		args = append(args, "--expires", o.expires.String())
	}
	for _, d := range o.digests {
		args = append(args, "--digest", d)
	}
	return append(args, a.SkillArgs()...)
}

// unattendedHint says how to approve a skill without a terminal.
func unattendedHint(name string) string {
	return "on an unattended machine, state the reviewed digest: loadout approve " + console.ShellQuote(name) + " --digest sha256:… --yes"
}

// checkStated returns an error if digests are stated, and they are not those of
// the skill and everything that it needs.
func checkStated(r *review.Review, stated []string) error {
	if len(stated) == 0 {
		return nil
	}
	hint := "review it, then state its digests: loadout approve " + console.ShellQuote(r.Name) + " --dry-run"
	current := []string{string(r.Digest)}
	for _, n := range r.Needs {
		current = append(current, string(n.Digest))
	}
	for _, s := range stated {
		if policy.Digest(s).Check() != nil {
			return exit.Errorf(exit.Usage, hint, "--digest %s: want sha256: and 64 hexadecimal digits", s)
		}
		if !slices.Contains(current, s) {
			return exit.Errorf(exit.Refused, hint, "skill %s not approved: digest mismatch: stated %s, current %s", r.Name, s, strings.Join(current, ", "))
		}
	}
	for i, d := range current {
		if slices.Contains(stated, d) {
			continue
		}
		what := "skill " + r.Name
		if i > 0 {
			what = "needed " + r.Needs[i-1].Name
		}
		return exit.Errorf(exit.Refused, hint, "skill %s not approved: no --digest for %s (%s)", r.Name, what, d)
	}
	return nil
}
