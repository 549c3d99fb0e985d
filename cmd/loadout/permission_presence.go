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

// digestGiven is recorded as evidence of presence if a user without a terminal gave
// the digest of the reviewed content.
const digestGiven = "digest stated"

// requireApprover returns the evidence that the user approves a skill, which
// is digestGiven on an unattended machine. It returns an error if an agent
// runs the command, even with digests, because an agent can compute them.
func (a *app) requireApprover(ctx context.Context, name string, o *approveFlags) (string, error) {
	if o.yes && len(o.digests) == 0 {
		a.Note("--yes without --digest is deprecated and will be removed")
	}
	if c := a.Caller(); !a.IsManaged() && c.Agent == "" && (c.Terminal == "" || !console.IsTerminal(a.Stdin)) && o.yes && len(o.digests) > 0 {
		return digestGiven, nil
	}
	return a.RequireUser(ctx, unattendedHint(name), a.approveArgs(name, o)...)
}

// approveArgs returns the arguments of a command that approves a skill with the
// permissions and conditions in o. It omits --yes, so that the command asks for
// confirmation.
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
	if o.allowedTools {
		args = append(args, "--allowed-tools")
	}
	if o.expires > 0 {
		args = append(args, "--expires", o.expires.String())
	}
	for _, d := range o.digests {
		args = append(args, "--digest", d)
	}
	return append(args, a.SkillArgs()...)
}

// unattendedHint returns a hint on how to approve a skill without a terminal.
func unattendedHint(name string) string {
	return "on an unattended machine, give the reviewed digest: loadout approve " + console.ShellQuote(name) + " --digest sha256:… --yes"
}

// checkDigests returns an error if digests are given but do not match the skill
// and everything that it needs.
func checkDigests(r *review.Review, given []string) error {
	if len(given) == 0 {
		return nil
	}
	hint := "review it, then give its digests: loadout approve " + console.ShellQuote(r.Name) + " --dry-run"
	current := []string{string(r.Digest)}
	for _, n := range r.Needs {
		current = append(current, string(n.Digest))
	}
	for _, s := range given {
		if policy.Digest(s).Check() != nil {
			return exit.Errorf(exit.Usage, hint, "--digest %s: want sha256: and 64 hexadecimal digits", s)
		}
		if !slices.Contains(current, s) {
			return exit.Errorf(exit.Refused, hint, "skill %s not approved: digest mismatch: given %s, current %s", r.Name, s, strings.Join(current, ", "))
		}
	}
	for i, d := range current {
		if slices.Contains(given, d) {
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
