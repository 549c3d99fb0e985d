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
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/upstream"
)

// approveFlags are the flags of loadout approve.
type approveFlags struct {
	list, revoke, dryRun, yes, workspace, host, unsandboxed bool
	expires                                                 time.Duration
}

// approval is approve --json.
type approval struct {
	Name     string             `json:"name"`
	Origin   string             `json:"origin"`
	Path     string             `json:"path"`
	Digest   policy.Digest      `json:"digest"`
	Files    int                `json:"files"`
	Bytes    int64              `json:"bytes"`
	Scripts  []string           `json:"scripts"`
	Asks     policy.Allows      `json:"asks"`
	Inject   []policy.Injection `json:"inject"`
	Needs    []policy.Need      `json:"needs"`
	Limits   *limits            `json:"limits,omitempty"` // that the skill asks for
	Problems []policy.Problem   `json:"problems"`
	// Servers are what it starts or speaks to when it is loaded.
	Servers []loadout.WishedService `json:"servers"`
	// Findings are those of a scan, which advises and decides nothing.
	Findings *advised      `json:"findings"`
	Grant    *policy.Grant `json:"grant"` // what was recorded; null for --dry-run
}

// what names what there is to use of a skill.
func (p *approval) what() string {
	var out []string
	if len(p.Scripts) > 0 {
		out = append(out, "scripts")
	}
	for _, s := range p.Servers {
		kind := "servers"
		switch {
		case s.Lender != "":
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
		return "it, which has nothing to run,"
	case 1:
		return "its " + out[0]
	default:
		return "its " + strings.Join(out[:n-1], ", ") + " and " + out[n-1]
	}
}

// listedGrant is a grant in approve --list --json.
type listedGrant struct {
	policy.Grant
	Changed bool `json:"changed,omitempty"` // the skill, or what it needs, is another by now: the grant does not count for it
}

type listedGrants struct {
	Grants   []listedGrant    `json:"grants"`
	Problems []policy.Problem `json:"problems"`
}

type approvals struct {
	Grants   []policy.Grant   `json:"grants"`
	Problems []policy.Problem `json:"problems"`
}

func (a *app) approveCommand() *cobra.Command {
	var o approveFlags
	cmd := &cobra.Command{
		Use:   "approve NAME",
		Short: "Let agents run the scripts of a skill, as it is now",
		Long: `Show what a skill would run and what it asks for, and let agents run its scripts
from now on. What is approved is these very files and those of the skills it needs:
when a byte of them changes, it has to be approved again. On a terminal it asks
first; where standard input or standard error is none, and with --json, it acts at
once, without --yes. Calls of tools are approved where you are asked about one:
--list shows those that you answered with always or session too, and --revoke
withdraws them by the tool's name.`,
		Example: `  loadout approve pdf
  loadout approve pdf --dry-run             only show it
  loadout approve pdf --expires 24h
  loadout approve --list
  loadout approve --revoke pdf
  loadout approve --revoke github__create_issue`,
		Args: func(cmd *cobra.Command, args []string) error {
			if o.list {
				return want(0, 0, "")(cmd, args)
			}
			return want(1, 1, "the NAME of a skill")(cmd, args)
		},
		ValidArgsFunction: a.completeSkill,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := exclusive(cmd, "list", "revoke"); err != nil {
				return err
			}
			if err := someTime(cmd, "expires", o.expires); err != nil {
				return err
			}
			switch {
			case o.list:
				return a.listGrants(cmd.Context())
			case o.revoke:
				return a.revoke(cmd.Context(), args[0])
			}
			return a.approve(cmd.Context(), args[0], &o)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.list, "list", false, "list what was approved: skills, and calls of tools")
	f.BoolVar(&o.revoke, "revoke", false, "withdraw it, by name, id or digest; what runs by it is ended")
	f.BoolVar(&o.dryRun, "dry-run", false, "show what would be approved, and record nothing")
	f.BoolVarP(&o.yes, "yes", "y", false, "do not ask on a terminal")
	f.DurationVar(&o.expires, "expires", 0, "only for this `TIME`, as 24h")
	f.BoolVar(&o.workspace, "write-workspace", false, "let them write in the directory that agents work on")
	f.BoolVar(&o.host, "host-network", false, "let them use this machine's network, without the allow-list")
	f.BoolVar(&o.unsandboxed, "unsandboxed", false, "let them run by the back end process, which does not isolate")
	return cmd
}

func (a *app) approve(ctx context.Context, name string, o *approveFlags) error {
	rt, c, err := a.openScripts(ctx)
	if err != nil {
		return err
	}
	defer rt.Close()
	if _, err := a.resolve(ctx, rt, name); err != nil {
		return err
	}
	if !o.dryRun { // so that it is known, and approved, what npx and uvx start
		done := a.progress("installing packages of its servers")
		err := rt.Prepare(ctx, name, nil)
		done()
		if _, untold := errors.AsType[*loadout.ServersError](err); err != nil && !untold && !errors.Is(err, loadout.ErrNoScripts) {
			a.note("what a server of %s starts could not be installed, so that it will not start: %v", name, err)
		}
	}
	w, err := rt.Wish(ctx, name)
	if _, untold := errors.AsType[*loadout.ServersError](err); untold {
		return fail(exitRefused, "mend mcpServers in its SKILL.md, and try again", "%w", err)
	}
	if err != nil {
		return err
	}
	allows := a.allowsOf(ctx, w)
	allows.WorkspaceWrite = o.workspace
	allows.HostNetwork, allows.Unsandboxed = o.host, o.unsandboxed
	out := approvalOf(w, allows)
	done := a.progress("scanning it")
	out.Findings = a.advise(ctx, rt, w.Entry)
	done()
	if out.Limits, err = limitsOf(ctx, rt, w); err != nil {
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
		yes, err := a.confirm(ctx, "Approve it?")
		if err != nil {
			return err
		}
		if !yes {
			return fail(exitRefused, "to see it again: loadout approve "+quoted(name)+" --dry-run", "skill %s was not approved", w.Entry.Name)
		}
	}
	g := policy.Grant{Principal: policy.Local(), By: policy.Local(), Subject: w.Digest, Name: w.Entry.Name, Origin: w.Entry.Origin,
		Allows: allows, Needs: w.Needs, Scope: policy.Always}
	if o.expires > 0 {
		g.Expires = time.Now().Add(o.expires)
	}
	kept, err := a.grants().Put(ctx, g)
	if err != nil {
		return fmt.Errorf("approve %s: %w", w.Entry.Name, err)
	}
	if err := a.record(ctx, "approve", kept); err != nil {
		return err
	}
	if out.Grant = &kept; a.json {
		return a.printJSON(out)
	}
	fmt.Fprintf(a.stdout, "\n%s Agents may use %s until a file changes. To withdraw it: loadout approve --revoke %s%s\n",
		a.green("Approved."), out.what(), quoted(w.Entry.Name), a.flags())
	if dead := unstarted(w.Services); len(dead) > 0 {
		fmt.Fprintf(a.stdout, "Will not start: %s. What npx or uvx starts has to be installed first: approve it again when it can be.\n", plain(strings.Join(dead, ", ")))
	}
	return nil
}

// allowsOf is what a skill asks for, with the secrets that its servers name and those
// that were granted to it.
func (a *app) allowsOf(ctx context.Context, w *loadout.Wish) policy.Allows {
	allows := w.Ask.Allows()
	allows.Run, allows.WorkspaceWrite = true, false
	for _, s := range w.Services { // those that its servers name are shown, and given, with them
		if s.Refused != "" {
			continue
		}
		for _, v := range s.Variables {
			if v.Kind == upstream.FromSecret && !slices.Contains(allows.Secrets, v.Name) {
				allows.Secrets = append(slices.Clone(allows.Secrets), v.Name)
			}
		}
	}
	for _, name := range a.grantedSecrets(ctx, w.Digest, w.Needs) { // by loadout secret grant
		if !slices.Contains(allows.Secrets, name) {
			allows.Secrets = append(slices.Clone(allows.Secrets), name)
		}
	}
	return allows
}

// unstarted are the servers whose package is not installed, so that the approval
// does not name it.
func unstarted(all []loadout.WishedService) []string {
	var out []string
	for _, s := range all {
		if s.Fetches && s.Package == nil {
			out = append(out, "server "+s.Name)
		}
	}
	return out
}

// record keeps what was done to a grant in the audit log.
func (a *app) record(ctx context.Context, action string, g policy.Grant) error {
	log := a.audit()
	if log == nil {
		return nil
	}
	err := log.Append(ctx, policy.Record{Principal: policy.Local(), Action: action, Subject: g.Subject, Name: g.Name, Decision: policy.Allowed,
		Details: map[string]string{"grant": g.ID, "network": strings.Join(g.Allows.Network, " "), "secrets": strings.Join(g.Allows.Secrets, " ")}})
	if err != nil {
		return fmt.Errorf("record it: %w", err)
	}
	return nil
}

func approvalOf(w *loadout.Wish, allows policy.Allows) *approval {
	out := &approval{Name: w.Entry.Name, Origin: w.Entry.Origin, Path: w.Entry.Path, Digest: w.Digest, Files: len(w.Manifest), Bytes: w.Manifest.Size(),
		Scripts: []string{}, Asks: allows, Inject: append([]policy.Injection{}, w.Inject...), Needs: append([]policy.Need{}, w.Needs...),
		Problems: append([]policy.Problem{}, w.Problems...), Servers: append([]loadout.WishedService{}, w.Services...)}
	for _, f := range w.Manifest {
		if f.Script {
			out.Scripts = append(out.Scripts, f.Path)
		}
	}
	return out
}

func (a *app) printApproval(out *approval, w *loadout.Wish, c *config.Config) {
	fmt.Fprint(a.stdout, a.approvalText(out, w, c))
}

// approvalText is what a person decides about.
func (a *app) approvalText(out *approval, w *loadout.Wish, c *config.Config) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s from %s: %s\n\n", a.bold(plain(out.Name)), out.Origin, plain(out.Path))
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%s %s\n", a.faint(fmt.Sprintf("%-10s", name)), plain(value))
		}
	}
	row("digest", string(out.Digest))
	row("files", fmt.Sprintf("%d, %s", out.Files, sized(out.Bytes)))
	for i, s := range out.Scripts {
		row(map[bool]string{true: "scripts", false: ""}[i == 0], s)
	}
	if len(out.Scripts)+len(out.Servers) == 0 {
		row("scripts", "none: there is nothing to run")
	}
	for _, s := range out.Servers {
		row("server", serverText(s))
		if s.Refused != "" {
			continue // it is given nothing
		}
		for _, text := range variableTexts(s.Variables) {
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
		row("", fmt.Sprintf("%s is added to requests to %s as %s", in.Secret, in.Pattern(), in.Header))
	}
	for _, n := range out.Needs {
		row("needs", fmt.Sprintf("%s, as %s", n.Name, n.Digest.Short()))
	}
	if l := out.Limits; l != nil {
		row("limits", l.text(c))
		if l.MinTier > 0 {
			row("isolation", fmt.Sprintf("at least tier %v, else it does not run", sandbox.Tier(max(l.MinTier, 1))))
		}
	}
	for _, also := range []struct {
		set  bool
		what string
	}{
		{out.Asks.WorkspaceWrite, "write in the directory that agents work on"},
		{out.Asks.HostNetwork, "all of this machine's network"},
		{out.Asks.Unsandboxed, "run without isolation, by the back end process"},
	} {
		if also.set {
			row("also", also.what)
		}
	}
	if w.Ask.WorkspaceWrite && !out.Asks.WorkspaceWrite {
		row("not given", "it asks to write in the directory that agents work on; to let it: --write-workspace")
	}
	for _, p := range out.Problems {
		row("left out", p.String())
	}
	if w.Entry.Scope == catalog.Bundled {
		fmt.Fprintf(&b, "\nIt came with Loadout: agents may run its scripts already.\n")
	}
	fmt.Fprintf(&b, "\n%s", a.advisedText(out.Findings))
	fmt.Fprintf(&b, "\nTo read it: loadout show %s%s\n", quoted(out.Name), a.flags())
	return b.String()
}

// serverText is what a server of a skill starts or speaks to.
func serverText(s loadout.WishedService) string {
	text := s.Name + ": "
	if s.Lender != "" {
		text += "the provider of the skill " + s.Lender + ", as that was approved, makes"
		for _, name := range slices.Sorted(maps.Keys(s.Tools)) {
			if text += " " + name; s.Tools[name] != nil {
				config, _ := json.Marshal(s.Tools[name])
				text += " with " + string(config)
			}
		}
		return text
	}
	switch {
	case s.Refused != "":
		return text + "it will not start: " + s.Refused
	case len(s.Command) > 0:
		text += strings.Join(s.Command, " ")
	default:
		text += strings.Join(s.Hosts, ", ")
	}
	switch p := s.Package; {
	case p != nil:
		text += fmt.Sprintf(", which is %s@%s", p.Name, p.Version)
	case s.Fetches:
		text += ", which is not installed"
	}
	if len(s.Env) > 0 {
		text += "; it sets " + strings.Join(s.Env, ", ")
	}
	return text
}

// limits are what a skill asks for of those that can only narrow.
type limits struct {
	Seconds   int `json:"seconds,omitempty"`
	MemoryMB  int `json:"memory_mb,omitempty"`
	Processes int `json:"processes,omitempty"`
	DiskMB    int `json:"disk_mb,omitempty"`
	MinTier   int `json:"min_tier,omitempty"`
}

// limitsOf reads the limits that a skill asks for, nil where it asks for none.
func limitsOf(ctx context.Context, rt *loadout.Runtime, w *loadout.Wish) (*limits, error) {
	s, _, err := rt.Catalog().Read(ctx, w.Entry)
	if err != nil {
		return nil, err
	}
	front, err := s.FrontmatterJSON()
	if err != nil {
		return nil, err
	}
	b, _ := policy.ParseAsk(front) // what is wrong is among the problems of the wish
	l := limits{b.Seconds, b.MemoryMB, b.Processes, b.DiskMB, b.MinTier}
	if l == (limits{}) {
		return nil, nil
	}
	return &l, nil
}

// text names the limits, with what is given where that is less.
func (l *limits) text(c *config.Config) string {
	var out []string
	add := func(asked, most int, format string) {
		if asked <= 0 {
			return
		}
		s := fmt.Sprintf(format, asked)
		if most > 0 && asked > most {
			s += fmt.Sprintf(" (%d are given)", most)
		}
		out = append(out, s)
	}
	add(l.Seconds, c.Sandbox.Seconds, "%d s")
	add(l.MemoryMB, c.Sandbox.MemoryMB, "%d MiB of memory")
	add(l.Processes, 0, "%d processes")
	add(l.DiskMB, c.Sandbox.DiskMB, "%d MiB of files")
	return strings.Join(out, ", ")
}

// changed reports which grants are for a skill that is here and another by now,
// or needs others, by their ids.
func (a *app) changed(ctx context.Context, grants []policy.Grant) map[string]bool {
	if len(grants) == 0 {
		return nil
	}
	rt, err := a.open(ctx)
	if err != nil {
		a.note("whether skills changed since cannot be said: %v", err)
		return nil
	}
	defer rt.Close()
	out := map[string]bool{}
	for _, g := range grants {
		if g.Allows.Call { // what a tool is now, a call of it finds out
			continue
		}
		w, err := rt.Wish(ctx, g.Origin+"/"+g.Name)
		if _, untold := errors.AsType[*loadout.ServersError](err); untold {
			out[g.ID] = true // what could not be approved as it is
			continue
		}
		if err != nil { // it is not here, or does not load
			continue
		}
		out[g.ID] = w.Digest != g.Subject || !g.NeedsExactly(w.Needs)
	}
	return out
}

func (a *app) listGrants(ctx context.Context) error {
	grants, problems, err := a.grants().List(ctx)
	if err != nil {
		return err
	}
	changed := a.changed(ctx, grants)
	if a.json {
		out := listedGrants{[]listedGrant{}, append([]policy.Problem{}, problems...)}
		for _, g := range grants {
			out.Grants = append(out.Grants, listedGrant{g, changed[g.ID]})
		}
		return a.printJSON(out)
	}
	for _, p := range problems {
		a.note("an approval that cannot be read counts for nothing: %s", p)
	}
	if len(grants) == 0 {
		fmt.Fprintln(a.stdout, "Nothing was approved. To approve a skill: loadout approve NAME. Calls of tools are approved when they are asked about.")
		return nil
	}
	rows := [][]string{}
	for _, g := range grants {
		what := "run"
		if g.Allows.Call {
			what = "call, of " + g.Origin
		}
		for _, more := range []struct { // the widest first, as the end of a line may be cut
			set  bool
			what string
		}{{g.Allows.Unsandboxed, "unsandboxed"}, {g.Allows.HostNetwork, "host-network"}, {g.Allows.WorkspaceWrite, "write-workspace"}} {
			if more.set {
				what += ", " + more.what
			}
		}
		if len(g.Allows.Network) > 0 {
			what += ", network " + strings.Join(g.Allows.Network, " ")
		}
		if len(g.Allows.Secrets) > 0 {
			what += ", secrets " + strings.Join(g.Allows.Secrets, " ")
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
		if changed[g.ID] {
			what = "changed since; " + what
		}
		rows = append(rows, []string{g.Name, g.Subject.Short(), g.Created.Local().Format("2006-01-02 15:04"), what})
	}
	a.table("", rows)
	return nil
}

func (a *app) revoke(ctx context.Context, what string) error {
	gone, err := a.grants().Revoke(ctx, what)
	switch {
	case errors.Is(err, policy.ErrNotGranted):
		return fail(exitNotFound, "see what was approved: loadout approve --list", "nothing was approved as %s", what)
	case err != nil:
		return fmt.Errorf("withdraw the approval of %s: %w", what, err)
	}
	for _, g := range gone {
		if err := a.record(ctx, "revoke", g); err != nil {
			return err
		}
	}
	if a.json {
		return a.printJSON(approvals{gone, []policy.Problem{}})
	}
	for _, g := range gone {
		fmt.Fprintf(a.stdout, "Withdrawn: %s %s\n", plain(g.Name), g.Subject.Short())
	}
	return nil
}
