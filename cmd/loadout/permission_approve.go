package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/execution"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/review"
	"github.com/loadout-dev/loadout/internal/setup"
	"github.com/loadout-dev/loadout/policy"
)

// approveFlags holds the flags of the approve command.
type approveFlags struct {
	list, pending, revoke, dryRun, yes, workspace, host, unsandboxed bool
	allowedTools                                                     bool
	digests                                                          []string // given with --digest
	expires                                                          time.Duration
}

// approvalOutput is the JSON output of the approve command.
type approvalOutput struct {
	*review.Review
	Grant *policy.Grant `json:"grant"` // the recorded grant; null with --dry-run
}

func (a *app) approveCommand() *cobra.Command {
	var o approveFlags
	cmd := &cobra.Command{
		Use:   "approve NAME",
		Short: "Approve the scripts and servers of a skill, or a tool",
		Long: `Show what a skill runs and which permissions it requests, and allow agents to run it.

An approval covers the exact files of the skill and of the skills it depends on. If any
of them changes, the skill needs a new approval. approve asks for confirmation. If
standard input or standard error is redirected, it asks on the controlling terminal.
--yes skips the confirmation, but only with --digest or if standard input is a terminal;
--yes without --digest is deprecated. --json skips the confirmation if neither standard
input nor standard error is redirected.

Only you can approve: approve refuses if an agent runs it, or if it has no controlling
terminal. --pending lists the commands refused in this way. On an unattended machine,
use --yes with the digests of what you reviewed: one --digest for the skill and one for
each dependency that --dry-run lists. This does not allow agents to approve skills. On a
managed machine, only the administrator can approve skills; --dry-run shows how.

Files of a skill of an MCP server are fetched only when they are used. Hidden characters
of files that were fetched are shown, and approved too. Its allowed-tools count only
with --allowed-tools.

You can approve a tool call when an agent makes it, or in advance with this command. NAME
is then the name of an MCP tool in any of its forms, such as github__create_issue. --list
also shows the tool calls that you allowed for a session or always. --revoke with the
name of a tool revokes these approvals.`,
		Example: `  loadout approve pdf
  loadout approve pdf --dry-run             show what would be approved
  loadout approve pdf --expires 24h
  loadout approve pdf --digest sha256:4e1f… --yes      on an unattended machine
  loadout approve github__create_issue
  loadout approve --list
  loadout approve --pending
  loadout approve --revoke pdf
  loadout approve --revoke github__create_issue`,
		Args: func(cmd *cobra.Command, args []string) error {
			if o.list || o.pending {
				return argCount(0, 0, "")(cmd, args)
			}
			return argCount(1, 1, "the NAME of a skill")(cmd, args)
		},
		ValidArgsFunction: a.completeSkill,
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, pair := range [][2]string{{"list", "revoke"}, {"list", "pending"}, {"pending", "revoke"}} {
				if err := checkExclusive(cmd, pair[0], pair[1]); err != nil {
					return err
				}
			}
			if err := checkDuration(cmd, "expires", o.expires); err != nil {
				return err
			}
			switch {
			case o.list:
				return a.listGrants(cmd.Context())
			case o.pending:
				return a.listPending()
			case o.revoke:
				return a.revokeGrants(cmd.Context(), args[0])
			}
			return a.approveSkill(cmd.Context(), args[0], &o)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.list, "list", false, "list approvals of skills and tool calls")
	f.BoolVar(&o.pending, "pending", false, "list commands that an agent tried to run but only you can run")
	f.BoolVar(&o.revoke, "revoke", false, "revoke an approval by name, id or digest, and stop what it allows")
	f.BoolVar(&o.dryRun, "dry-run", false, "show what would be approved without recording it")
	f.StringArrayVar(&o.digests, "digest", nil, "approve only if the skill has this `DIGEST`; repeat it for each dependency")
	f.BoolVarP(&o.yes, "yes", "y", false, "do not ask for confirmation")
	f.DurationVar(&o.expires, "expires", 0, "let the approval expire after `TIME`, such as 24h")
	f.BoolVar(&o.allowedTools, "allowed-tools", false, "grant the allowed-tools that a skill of an MCP server requests")
	f.BoolVar(&o.workspace, "write-workspace", false, "allow writing to the workspace directory")
	f.BoolVar(&o.host, "host-network", false, "allow the host network, without the host allowlist")
	f.BoolVar(&o.unsandboxed, "unsandboxed", false, "allow the backend named process, which provides no isolation")
	return cmd
}

func (a *app) approveSkill(ctx context.Context, name string, o *approveFlags) error {
	a.ShowPending = strings.Contains(name, "/") // a name alone means the skill that agents get
	rt, c, err := a.OpenScripts(ctx)
	if err != nil {
		return err
	}
	defer rt.Close()
	entry, err := a.resolveSkill(ctx, rt, name)
	if err != nil {
		return a.approveTool(ctx, name, o, err)
	}
	presence := ""
	confirmation := setup.Confirmation{Question: "Approve this skill?", Args: a.approveArgs(name, o), Hint: unattendedHint(name), Ask: true, Yes: o.yes, DigestGiven: len(o.digests) > 0}
	if !o.dryRun {
		if presence, err = a.requireApprover(ctx, name, o); err != nil {
			return err
		}
		if err := a.CheckConfirmable(ctx, confirmation); err != nil {
			return err
		}
		if entry.Server == "" {
			a.installServerPackages(ctx, rt, name) // the approval covers the code that npx and uvx start
		}
	}
	r, err := a.reviewSkill(ctx, rt, name, o)
	if err != nil {
		return err
	}
	if err := checkDigests(r, o.digests); err != nil {
		return err
	}
	out := approvalOutput{Review: r}
	if !a.JSON {
		fmt.Fprint(a.Stdout, a.formatReview(r, c))
	}
	if !o.dryRun {
		confirmation.Show = func() { fmt.Fprint(a.Stdout, a.formatReview(r, c)) }
		if err := a.confirmApproval(ctx, r, confirmation); err != nil {
			return err
		}
		if out.Grant, err = a.grantReviewed(ctx, r, r.Grant(), o.expires, presence); err != nil {
			return err
		}
		for _, g := range r.ServedGrants(o.allowedTools) {
			if _, err := a.grantReviewed(ctx, r, g, o.expires, presence); err != nil {
				return err
			}
		}
	}
	switch {
	case a.JSON:
		return a.PrintJSON(out)
	case out.Grant != nil:
		a.printApproved(r)
	case c.Managed():
		a.printForOperator(r)
	}
	return nil
}

// printForOperator prints the configuration with which the administrator of
// the machine can approve a skill.
func (a *app) printForOperator(r *review.Review) {
	fmt.Fprintf(a.Stdout, "\nAn administrator can approve it in %s:\n\npolicy:\n  approved:\n    - %s=%s\n", a.Operator.Path(), plain(r.Name), r.Digest)
	for _, n := range r.Needs {
		fmt.Fprintf(a.Stdout, "    - %s=%s\n", plain(n.Name), n.Digest)
	}
}

// installServerPackages installs the packages of a skill's servers. It only
// prints a note on failure, because the other servers and the scripts can still
// be approved.
func (a *app) installServerPackages(ctx context.Context, rt *loadout.Runtime, name string) {
	done := a.ShowProgress("installing server packages")
	err := rt.InstallPackages(ctx, name, nil)
	done()
	if err != nil && !isType[*execution.ServersError](err) && !errors.Is(err, loadout.ErrNoScripts) {
		a.Note("cannot install a package of %s, so its server will not start: %v", name, err)
	}
}

// reviewSkill reads and scans a skill for the user to review.
func (a *app) reviewSkill(ctx context.Context, rt *loadout.Runtime, name string, o *approveFlags) (*review.Review, error) {
	request, err := rt.ReadApprovalRequest(ctx, name)
	if isType[*execution.ServersError](err) {
		return nil, exit.Errorf(exit.Refused, "fix mcpServers in its SKILL.md, and try again", "%w", err)
	}
	if err != nil {
		return nil, err
	}
	r := review.New(request, review.Options{Secrets: a.GrantedSecrets(ctx, request.Digest, request.Needs),
		WorkspaceWrite: o.workspace, HostNetwork: o.host, Unsandboxed: o.unsandboxed})
	if err := r.ReadHidden(ctx, rt); err != nil {
		return nil, err
	}
	done := a.ShowProgress("scanning the skill")
	r.Scan(ctx, rt, review.PromptScanTimeout)
	done()
	return r, r.ReadLimits(ctx, rt)
}

// confirmApproval asks the user at the terminal to confirm the approval.
func (a *app) confirmApproval(ctx context.Context, r *review.Review, c setup.Confirmation) error {
	yes, err := a.ConfirmUser(ctx, c)
	if err == nil && !yes {
		err = exit.Errorf(exit.Refused, "to review it again: loadout approve "+console.ShellQuote(r.Name)+" --dry-run", "skill %s not approved", r.Name)
	}
	return err
}

// grantReviewed records a grant for a reviewed skill. It expires after the given
// time; 0 means that it does not expire. presence is the evidence that the user
// approved.
func (a *app) grantReviewed(ctx context.Context, r *review.Review, g policy.Grant, expires time.Duration, presence string) (*policy.Grant, error) {
	g.Presence = presence
	if expires > 0 {
		g.Expires = time.Now().Add(expires)
	}
	g, err := a.GrantStore().Put(ctx, g)
	if err != nil {
		return nil, fmt.Errorf("approve %s: %w", r.Name, err)
	}
	return &g, a.RecordGrant(ctx, "approve", g)
}
