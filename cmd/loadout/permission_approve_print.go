package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/decision"
	"github.com/loadout-dev/loadout/internal/review"
	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/skill"
)

// formatReview formats a skill's review for the user, as the basis for an
// approval.
func (a *app) formatReview(r *review.Review, c *config.Config) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s from %s: %s\n\n", a.Bold(plain(r.Name)), r.Origin, plain(r.Path))
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%s %s\n", a.Faint(fmt.Sprintf("%-10s", name)), plain(value))
		}
	}
	row("digest", string(r.Digest))
	row("files", fmt.Sprintf("%d, %s", r.Files, console.FormatSize(r.Bytes)))
	for i, s := range r.Scripts {
		row(map[bool]string{true: "scripts", false: ""}[i == 0], s)
	}
	if len(r.Scripts)+len(r.Servers) == 0 {
		row("scripts", "none: nothing to run")
	}
	for _, s := range r.Servers {
		row("server", formatServer(s))
		if s.RefusedReason != "" {
			continue // it receives no variables
		}
		for _, text := range review.DescribeVariables(s.Variables) {
			row("", text)
		}
	}
	or := func(list []string, none string) string {
		if len(list) == 0 {
			return none
		}
		return strings.Join(list, ", ")
	}
	row("network", or(r.Permissions.Network, "none"))
	row("secrets", or(r.Permissions.Secrets, "none"))
	for _, in := range r.Inject {
		row("", fmt.Sprintf("%s: added to requests to %s as %s", in.Secret, in.Pattern(), in.Header))
	}
	if len(r.AllowedTools) > 0 {
		row("tools", strings.Join(r.AllowedTools, ", ")+": ignored unless you approve with --allowed-tools")
	}
	for _, n := range r.Needs {
		row("needs", fmt.Sprintf("%s at %s", decision.DescribeNeed(n), n.Digest.Short()))
	}
	if l := r.Limits; l != nil {
		row("limits", formatLimits(l, c))
		if l.MinTier > 0 {
			row("isolation", fmt.Sprintf("at least tier %v, or it does not run", sandbox.Tier(max(l.MinTier, 1))))
		}
	}
	for _, also := range []struct {
		set  bool
		what string
	}{
		{r.Permissions.WorkspaceWrite, "write to the workspace directory"},
		{r.Permissions.HostNetwork, "use the whole network of this machine"},
		{r.Permissions.Unsandboxed, "run without isolation (backend: process)"},
	} {
		if also.set {
			row("also", also.what)
		}
	}
	if r.Request.Requested.WorkspaceWrite && !r.Permissions.WorkspaceWrite {
		grant := "; to grant it: --write-workspace"
		if a.IsManaged() {
			grant = ": an administrator cannot grant it"
		}
		row("not granted", "writing to the workspace directory"+grant)
	}
	for _, p := range r.Problems {
		row("ignored", p.String())
	}
	for _, d := range r.Missing {
		row("missing", fmt.Sprintf("%s:%d:%d: %s", skill.FileName, d.Line, d.Column, d.Message))
	}
	if r.Request.Entry.Scope == catalog.Bundled {
		fmt.Fprintf(&b, "\nBundled with Loadout: agents can run its scripts without an approval.\n")
	}
	if r.Hidden != nil {
		b.WriteString("\n" + a.formatHidden(r.Hidden))
	}
	fmt.Fprintf(&b, "\n%s", a.formatScanSummary(r.Findings))
	fmt.Fprintf(&b, "\nTo read it: loadout show %s%s\n", console.ShellQuote(r.Name), a.SkillFlags())
	return b.String()
}

// formatHidden lists the lines of a skill that have hidden characters.
func (a *app) formatHidden(h *review.Hidden) string {
	var b strings.Builder
	b.WriteString("Hidden characters, here as ⟨U+…⟩. Agents read them after the approval:\n")
	for _, l := range h.Lines {
		fmt.Fprintf(&b, "  %s\n      %s\n", a.Red(plain(fmt.Sprintf("%s:%d", l.File, l.Number))), plain(l.Text))
	}
	if h.Others > 0 {
		fmt.Fprintf(&b, "  and %s\n", console.Pluralize(h.Others, "more line"))
	}
	return b.String()
}

// formatServer describes what a skill's server starts or connects to.
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

// formatLimits formats the limits that a skill requests. Where the configured
// limit is lower, it adds that limit.
func formatLimits(l *review.Limits, c *config.Config) string {
	var out []string
	add := func(requested, most int, format string) {
		if requested <= 0 {
			return
		}
		s := fmt.Sprintf(format, requested)
		if most > 0 && requested > most {
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

// printApproved prints what agents can do now, and how to revoke the approval.
func (a *app) printApproved(r *review.Review) {
	fmt.Fprintf(a.Stdout, "\n%s Agents can use %s until a file changes. To revoke: loadout approve --revoke %s%s\n",
		a.Green("Approved."), describeContents(r), console.ShellQuote(r.Name), a.SkillFlags())
	if dead := r.UninstalledServers(); len(dead) > 0 {
		fmt.Fprintf(a.Stdout, "Will not start: %s. Approve the skill again when its package can be installed.\n", plain("server "+strings.Join(dead, ", server ")))
	}
}

// describeContents returns a phrase that lists the executable parts of a skill.
func describeContents(r *review.Review) string {
	var out []string
	if len(r.Scripts) > 0 {
		out = append(out, "scripts")
	}
	for _, s := range r.Servers {
		kind := "servers"
		switch {
		case s.ProviderSkill != "":
			kind = "tools from other skills"
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
