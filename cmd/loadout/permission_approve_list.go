package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/review"
	"github.com/loadout-dev/loadout/internal/skillname"
	"github.com/loadout-dev/loadout/policy"
)

// listedGrant is a grant in the output of approve --list --json.
type listedGrant struct {
	policy.Grant
	Changed bool `json:"changed,omitempty"` // whether the skill or one of its dependencies changed after the approval, so that the grant does not apply
	// Configured is set if the grant comes from policy.approved. Each listing
	// gives such a grant a new ID and the current time.
	Configured bool `json:"configured,omitempty"`
	// SupersededBy is the digest of the newer version that was approved. The
	// grant applies only in projects where the user chose its version.
	SupersededBy policy.Digest `json:"superseded_by,omitempty"`
}

type listedGrants struct {
	Grants   []listedGrant    `json:"grants"`
	Problems []policy.Problem `json:"problems"`
}

type revokeOutput struct {
	Grants   []policy.Grant   `json:"grants"`
	Problems []policy.Problem `json:"problems"`
}

func (a *app) listGrants(ctx context.Context) error {
	grants, problems, err := a.GrantStore().List(ctx)
	if err != nil {
		return err
	}
	older, err := a.SupersededApprovals()
	if err != nil {
		return err
	}
	stated, err := a.ConfiguredApprovals(ctx)
	if err != nil {
		a.Note("cannot read the approvals in the configuration: %v", err)
	}
	changed := a.changedGrants(ctx, grants)
	if a.JSON {
		out := listedGrants{[]listedGrant{}, append([]policy.Problem{}, problems...)}
		for _, g := range grants {
			out.Grants = append(out.Grants, listedGrant{Grant: g, Changed: changed[g.ID]})
		}
		for _, g := range stated {
			out.Grants = append(out.Grants, listedGrant{Grant: g, Configured: true})
		}
		for _, s := range older {
			out.Grants = append(out.Grants, listedGrant{Grant: s.Grant, SupersededBy: s.By})
		}
		return a.PrintJSON(out)
	}
	for _, p := range problems {
		a.Note("approval ignored: %s", p)
	}
	if len(grants)+len(stated)+len(older) == 0 {
		fmt.Fprintln(a.Stdout, "No approvals yet. To approve a skill: loadout approve NAME. Tool calls are approved when an agent makes them.")
		return nil
	}
	rows := [][]string{}
	for _, g := range grants {
		rows = append(rows, []string{g.Name, g.Subject.Short(), g.Created.Local().Format("2006-01-02 15:04"), describeGrant(g, changed[g.ID])})
	}
	for _, g := range stated {
		rows = append(rows, []string{g.Name, g.Subject.Short(), "policy.approved", describeGrant(g, false)})
	}
	for _, s := range older {
		rows = append(rows, []string{s.Grant.Name, s.Grant.Subject.Short(), s.Grant.Created.Local().Format("2006-01-02 15:04"), "superseded by " + s.By.Short()})
	}
	a.PrintTable("", rows)
	return nil
}

// describeGrant describes what a grant allows, and for how long.
func describeGrant(g policy.Grant, changed bool) string {
	what := "run"
	switch {
	case g.Permissions.Call && skillname.IsServed(g.Name, g.Origin):
		what = "allowed-tools or hidden characters"
	case g.Permissions.Call:
		what = "call, server " + g.Origin
	}
	for _, more := range []struct { // broadest first, because the end of a line may be truncated
		set  bool
		what string
	}{{g.Permissions.Unsandboxed, "unsandboxed"}, {g.Permissions.HostNetwork, "host-network"}, {g.Permissions.WorkspaceWrite, "write-workspace"}} {
		if more.set {
			what += ", " + more.what
		}
	}
	if len(g.Permissions.Network) > 0 {
		what += ", network " + strings.Join(g.Permissions.Network, " ")
	}
	if len(g.Permissions.Secrets) > 0 {
		what += ", secrets " + strings.Join(g.Permissions.Secrets, " ")
	}
	switch g.Scope {
	case policy.ForSession:
		what += ", in session " + g.Session
	case policy.Once:
		what += ", once"
	}
	switch {
	case g.Expired(time.Now()):
		what = "expired"
	case g.Expires.IsZero() && g.Scope == policy.Always:
		what += ", always"
	case !g.Expires.IsZero():
		what += ", until " + g.Expires.Local().Format("2006-01-02 15:04")
	}
	if changed {
		what = "changed since; " + what
	}
	return what
}

// changedGrants returns the IDs of the grants whose skill or dependencies
// changed after the approval.
func (a *app) changedGrants(ctx context.Context, grants []policy.Grant) map[string]bool {
	if len(grants) == 0 {
		return nil
	}
	rt, err := a.OpenRuntime(ctx)
	if err != nil {
		a.Note("cannot check whether skills changed: %v", err)
		return nil
	}
	defer rt.Close()
	return review.ChangedGrants(ctx, rt, grants)
}

func (a *app) revokeGrants(ctx context.Context, what string) error {
	gone, err := a.GrantStore().Revoke(ctx, what)
	switch {
	case errors.Is(err, policy.ErrNotGranted) && a.isConfigured(ctx, what):
		return exit.Errorf(exit.Refused, "remove it from the file that loadout config show names", "approval of %s is set in policy.approved", what)
	case errors.Is(err, policy.ErrNotGranted):
		return exit.Errorf(exit.NotFound, "list the approvals: loadout approve --list", "no approval for %s", what)
	case err != nil:
		return fmt.Errorf("revoke approval of %s: %w", what, err)
	}
	for _, g := range gone {
		if err := a.RecordGrant(ctx, "revoke", g); err != nil {
			return err
		}
	}
	if a.JSON {
		return a.PrintJSON(revokeOutput{gone, []policy.Problem{}})
	}
	for _, g := range gone {
		fmt.Fprintf(a.Stdout, "Revoked: %s %s\n", plain(g.Name), g.Subject.Short())
	}
	return nil
}

// isConfigured reports whether policy.approved approves a skill.
func (a *app) isConfigured(ctx context.Context, name string) bool {
	stated, err := a.ConfiguredApprovals(ctx)
	return err == nil && slices.ContainsFunc(stated, func(g policy.Grant) bool { return g.Name == name || strings.HasPrefix(string(g.Subject), name) })
}
