package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/sandbox"
)

// approveFlags are the flags of loadout approve.
type approveFlags struct {
	list, revoke, dryRun, yes, workspace, host, unsandboxed bool
	expires                                                 time.Duration
}

// approvalOutput is the output of approve --json.
type approvalOutput struct {
	Name     string             `json:"name"`
	Origin   string             `json:"origin"`
	Path     string             `json:"path"`
	Digest   policy.Digest      `json:"digest"`
	Files    int                `json:"files"`
	Bytes    int64              `json:"bytes"`
	Scripts  []string           `json:"scripts"`
	Asks     policy.Permissions `json:"asks"`
	Inject   []policy.Injection `json:"inject"`
	Needs    []policy.Need      `json:"needs"`
	Limits   *limits            `json:"limits,omitempty"` // limits requested by the skill
	Problems []policy.Problem   `json:"problems"`
	// Servers are the servers that start or connect when the skill is loaded.
	Servers []loadout.RequestedService `json:"servers"`
	// Findings are the results of the scan. They never block the approval.
	Findings *scanSummary  `json:"findings"`
	Grant    *policy.Grant `json:"grant"` // the recorded grant; null with --dry-run
}

// describeContents names the executable parts of a skill, for a sentence.
func (p *approvalOutput) describeContents() string {
	var out []string
	if len(p.Scripts) > 0 {
		out = append(out, "scripts")
	}
	for _, s := range p.Servers {
		kind := "servers"
		switch {
		case s.ProviderSkill != "":
			kind = "borrowed tools"
		case s.Name == "provider":
			kind = "provider"
		}
		if !slices.Contains(out, kind) {
			out = append(out, kind)
		}
	}
	switch n := len(out); n {
	case 0:
		return "the skill, which has nothing to run,"
	case 1:
		return "its " + out[0]
	default:
		return "its " + strings.Join(out[:n-1], ", ") + " and " + out[n-1]
	}
}

func (a *app) approveCommand() *cobra.Command {
	var o approveFlags
	cmd := &cobra.Command{
		Use:   "approve NAME",
		Short: "Approve the scripts and servers of a skill",
		Long: `Show what a skill runs and which permissions it requests, and allow agents to run it.

An approval covers the exact files of the skill and of the skills it depends on. If
any of them changes, the skill needs a new approval. approve asks for confirmation on
a terminal. It does not ask with --yes or --json, or if standard input or standard
error is not a terminal.

You approve tool calls when an agent makes them. --list also shows the tool calls you
allowed for a session or always; --revoke NAME revokes them by tool name.`,
		Example: `  loadout approve pdf
  loadout approve pdf --dry-run             show it only
  loadout approve pdf --expires 24h
  loadout approve --list
  loadout approve --revoke pdf
  loadout approve --revoke github__create_issue`,
		Args: func(cmd *cobra.Command, args []string) error {
			if o.list {
				return argCount(0, 0, "")(cmd, args)
			}
			return argCount(1, 1, "the NAME of a skill")(cmd, args)
		},
		ValidArgsFunction: a.completeSkill,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkExclusive(cmd, "list", "revoke"); err != nil {
				return err
			}
			if err := checkDuration(cmd, "expires", o.expires); err != nil {
				return err
			}
			switch {
			case o.list:
				return a.listGrants(cmd.Context())
			case o.revoke:
				return a.revokeGrants(cmd.Context(), args[0])
			}
			return a.approveSkill(cmd.Context(), args[0], &o)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.list, "list", false, "list approvals of skills and tool calls")
	f.BoolVar(&o.revoke, "revoke", false, "revoke an approval by name, id or digest, and stop what it allows")
	f.BoolVar(&o.dryRun, "dry-run", false, "show what would be approved without recording it")
	f.BoolVarP(&o.yes, "yes", "y", false, "do not ask for confirmation")
	f.DurationVar(&o.expires, "expires", 0, "let the approval expire after `TIME`, such as 24h")
	f.BoolVar(&o.workspace, "write-workspace", false, "allow writing to the workspace directory")
	f.BoolVar(&o.host, "host-network", false, "allow the network of this machine, without the allow-list")
	f.BoolVar(&o.unsandboxed, "unsandboxed", false, "allow the back end process, which does not isolate")
	return cmd
}

func (a *app) approveSkill(ctx context.Context, name string, o *approveFlags) error {
	rt, c, err := a.openScripts(ctx)
	if err != nil {
		return err
	}
	defer rt.Close()
	if _, err := a.resolveSkill(ctx, rt, name); err != nil {
		return err
	}
	if !o.dryRun { // what npx and uvx start becomes known, and part of the approval
		done := a.showProgress("installing server packages")
		err := rt.InstallPackages(ctx, name, nil)
		done()
		if _, untold := errors.AsType[*loadout.ServersError](err); err != nil && !untold && !errors.Is(err, loadout.ErrNoScripts) {
			a.note("cannot install a package of %s, so its server will not start: %v", name, err)
		}
	}
	w, err := rt.ReadApprovalRequest(ctx, name)
	if _, untold := errors.AsType[*loadout.ServersError](err); untold {
		return fail(exitRefused, "fix mcpServers in its SKILL.md, and try again", "%w", err)
	}
	if err != nil {
		return err
	}
	allows := a.requestedPermissions(ctx, w)
	allows.WorkspaceWrite = o.workspace
	allows.HostNetwork, allows.Unsandboxed = o.host, o.unsandboxed
	out := newApprovalOutput(w, allows)
	done := a.showProgress("scanning the skill")
	out.Findings = a.summarizeScan(ctx, rt, w.Entry)
	done()
	if out.Limits, err = readLimits(ctx, rt, w); err != nil {
		return err
	}
	if !a.json {
		a.printApproval(out, w, c)
	}
	if o.dryRun {
		if a.json {
			return a.printJSON(out)
		}
		return nil
	}
	if !o.yes && !a.json && isTerminal(a.stdin) && isTerminal(a.stderr) {
		fmt.Fprintln(a.stderr)
		yes, err := a.confirm(ctx, "Approve this skill?")
		if err != nil {
			return err
		}
		if !yes {
			return fail(exitRefused, "to review it again: loadout approve "+shellQuote(name)+" --dry-run", "skill %s not approved", w.Entry.Name)
		}
	}
	g := policy.Grant{Principal: policy.LocalUser(), By: policy.LocalUser(), Subject: w.Digest, Name: w.Entry.Name, Origin: w.Entry.Origin,
		Permissions: allows, Needs: w.Needs, Scope: policy.Always}
	if o.expires > 0 {
		g.Expires = time.Now().Add(o.expires)
	}
	kept, err := a.grantStore().Put(ctx, g)
	if err != nil {
		return fmt.Errorf("approve %s: %w", w.Entry.Name, err)
	}
	if err := a.recordGrant(ctx, "approve", kept); err != nil {
		return err
	}
	if out.Grant = &kept; a.json {
		return a.printJSON(out)
	}
	fmt.Fprintf(a.stdout, "\n%s Agents can use %s until a file changes. To revoke: loadout approve --revoke %s%s\n",
		a.green("Approved."), out.describeContents(), shellQuote(w.Entry.Name), a.skillFlags())
	if dead := uninstalledServers(w.Services); len(dead) > 0 {
		fmt.Fprintf(a.stdout, "Will not start: %s. Approve the skill again when its package can be installed.\n", plain(strings.Join(dead, ", ")))
	}
	return nil
}

// requestedPermissions returns the permissions a skill requests, with the
// secrets that its servers use and those already granted to it.
func (a *app) requestedPermissions(ctx context.Context, w *loadout.ApprovalRequest) policy.Permissions {
	allows := w.Requested.Permissions()
	allows.Run, allows.WorkspaceWrite = true, false
	for _, s := range w.Services { // secrets of servers are shown, and granted, with the server
		if s.RefusedReason != "" {
			continue
		}
		for _, v := range s.Variables {
			if v.Kind == upstream.FromSecret && !slices.Contains(allows.Secrets, v.Name) {
				allows.Secrets = append(slices.Clone(allows.Secrets), v.Name)
			}
		}
	}
	for _, name := range a.grantedSecrets(ctx, w.Digest, w.Needs) { // granted with loadout secret grant
		if !slices.Contains(allows.Secrets, name) {
			allows.Secrets = append(slices.Clone(allows.Secrets), name)
		}
	}
	return allows
}

// uninstalledServers returns the servers whose package is not installed and is
// therefore not covered by the approval.
func uninstalledServers(all []loadout.RequestedService) []string {
	var out []string
	for _, s := range all {
		if s.NeedsInstall && s.Package == nil {
			out = append(out, "server "+s.Name)
		}
	}
	return out
}

// recordGrant records an action on a grant in the audit log.
func (a *app) recordGrant(ctx context.Context, action string, g policy.Grant) error {
	log := a.auditLog()
	if log == nil {
		return nil
	}
	err := log.Append(ctx, policy.Record{Principal: policy.LocalUser(), Action: action, Subject: g.Subject, Name: g.Name, Decision: policy.VerdictAllow,
		Details: map[string]string{"grant": g.ID, "network": strings.Join(g.Permissions.Network, " "), "secrets": strings.Join(g.Permissions.Secrets, " ")}})
	if err != nil {
		return fmt.Errorf("write audit log: %w", err)
	}
	return nil
}

func newApprovalOutput(w *loadout.ApprovalRequest, allows policy.Permissions) *approvalOutput {
	out := &approvalOutput{Name: w.Entry.Name, Origin: w.Entry.Origin, Path: w.Entry.Path, Digest: w.Digest, Files: len(w.Manifest), Bytes: w.Manifest.Size(),
		Scripts: []string{}, Asks: allows, Inject: append([]policy.Injection{}, w.Injections...), Needs: append([]policy.Need{}, w.Needs...),
		Problems: append([]policy.Problem{}, w.Problems...), Servers: append([]loadout.RequestedService{}, w.Services...)}
	for _, f := range w.Manifest {
		if f.Script {
			out.Scripts = append(out.Scripts, f.Path)
		}
	}
	return out
}

func (a *app) printApproval(out *approvalOutput, w *loadout.ApprovalRequest, c *config.Config) {
	fmt.Fprint(a.stdout, a.formatApproval(out, w, c))
}

// formatApproval returns the text the user decides on.
func (a *app) formatApproval(out *approvalOutput, w *loadout.ApprovalRequest, c *config.Config) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s from %s: %s\n\n", a.bold(plain(out.Name)), out.Origin, plain(out.Path))
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%s %s\n", a.faint(fmt.Sprintf("%-10s", name)), plain(value))
		}
	}
	row("digest", string(out.Digest))
	row("files", fmt.Sprintf("%d, %s", out.Files, formatSize(out.Bytes)))
	for i, s := range out.Scripts {
		row(map[bool]string{true: "scripts", false: ""}[i == 0], s)
	}
	if len(out.Scripts)+len(out.Servers) == 0 {
		row("scripts", "none: nothing to run")
	}
	for _, s := range out.Servers {
		row("server", formatServer(s))
		if s.RefusedReason != "" {
			continue // it receives no variables
		}
		for _, text := range formatVariables(s.Variables) {
			row("", text)
		}
	}
	or := func(list []string, none string) string {
		if len(list) == 0 {
			return none
		}
		return strings.Join(list, ", ")
	}
	row("network", or(out.Asks.Network, "none"))
	row("secrets", or(out.Asks.Secrets, "none"))
	for _, in := range out.Inject {
		row("", fmt.Sprintf("%s: added to requests to %s as %s", in.Secret, in.Pattern(), in.Header))
	}
	for _, n := range out.Needs {
		row("needs", fmt.Sprintf("%s at %s", n.Name, n.Digest.Short()))
	}
	if l := out.Limits; l != nil {
		row("limits", l.format(c))
		if l.MinTier > 0 {
			row("isolation", fmt.Sprintf("at least tier %v, or it does not run", sandbox.Tier(max(l.MinTier, 1))))
		}
	}
	for _, also := range []struct {
		set  bool
		what string
	}{
		{out.Asks.WorkspaceWrite, "write to the workspace directory"},
		{out.Asks.HostNetwork, "use the whole network of this machine"},
		{out.Asks.Unsandboxed, "run without isolation, in the back end process"},
	} {
		if also.set {
			row("also", also.what)
		}
	}
	if w.Requested.WorkspaceWrite && !out.Asks.WorkspaceWrite {
		row("not granted", "writing to the workspace directory; to grant it: --write-workspace")
	}
	for _, p := range out.Problems {
		row("ignored", p.String())
	}
	if w.Entry.Scope == catalog.Bundled {
		fmt.Fprintf(&b, "\nBundled with Loadout: agents can run its scripts without an approval.\n")
	}
	fmt.Fprintf(&b, "\n%s", a.formatScanSummary(out.Findings))
	fmt.Fprintf(&b, "\nTo read it: loadout show %s%s\n", shellQuote(out.Name), a.skillFlags())
	return b.String()
}

// formatServer describes what a server of a skill starts or connects to.
func formatServer(s loadout.RequestedService) string {
	text := s.Name + ": "
	if s.ProviderSkill != "" {
		text += "the approved provider of the skill " + s.ProviderSkill + " provides"
		for _, name := range slices.Sorted(maps.Keys(s.Tools)) {
			if text += " " + name; s.Tools[name] != nil {
				config, _ := json.Marshal(s.Tools[name])
				text += " with " + string(config)
			}
		}
		return text
	}
	switch {
	case s.RefusedReason != "":
		return text + "will not start: " + s.RefusedReason
	case len(s.Command) > 0:
		text += strings.Join(s.Command, " ")
	default:
		text += strings.Join(s.Hosts, ", ")
	}
	switch p := s.Package; {
	case p != nil:
		text += fmt.Sprintf(", package %s@%s", p.Name, p.Version)
	case s.NeedsInstall:
		text += ", not installed"
	}
	if len(s.Env) > 0 {
		text += "; sets " + strings.Join(s.Env, ", ")
	}
	return text
}

// limits are the requested limits of a skill. They can only lower the
// configured ones.
type limits struct {
	Seconds   int `json:"seconds,omitempty"`
	MemoryMB  int `json:"memory_mb,omitempty"`
	Processes int `json:"processes,omitempty"`
	DiskMB    int `json:"disk_mb,omitempty"`
	MinTier   int `json:"min_tier,omitempty"`
}

// readLimits returns the limits that a skill requests, or nil if it requests
// none.
func readLimits(ctx context.Context, rt *loadout.Runtime, w *loadout.ApprovalRequest) (*limits, error) {
	s, _, err := rt.Catalog().Read(ctx, w.Entry)
	if err != nil {
		return nil, err
	}
	front, err := s.FrontmatterJSON()
	if err != nil {
		return nil, err
	}
	b, _ := policy.ParseRequestedBounds(front) // problems are already reported with the requested permissions
	l := limits{b.Seconds, b.MemoryMB, b.Processes, b.DiskMB, b.MinTier}
	if l == (limits{}) {
		return nil, nil
	}
	return &l, nil
}

// format lists the limits, with the configured limit where that is lower.
func (l *limits) format(c *config.Config) string {
	var out []string
	add := func(asked, most int, format string) {
		if asked <= 0 {
			return
		}
		s := fmt.Sprintf(format, asked)
		if most > 0 && asked > most {
			s += fmt.Sprintf(" (limited to %d)", most)
		}
		out = append(out, s)
	}
	add(l.Seconds, c.Sandbox.Seconds, "%d s")
	add(l.MemoryMB, c.Sandbox.MemoryMB, "%d MiB of memory")
	add(l.Processes, 0, "%d processes")
	add(l.DiskMB, c.Sandbox.DiskMB, "%d MiB of files")
	return strings.Join(out, ", ")
}
