package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/doctor"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/setup"
	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/mcpserver"
	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/skill"
)

type doctorOutput struct {
	Version   setup.Version     `json:"version"`
	Config    []string          `json:"config"`
	Ignored   []config.Note     `json:"ignored"`
	Managed   bool              `json:"managed"`
	Disabled  bool              `json:"disabled"`
	Sources   []doctor.Source   `json:"sources"`
	Skills    int               `json:"skills"`
	Problems  []catalog.Problem `json:"problems"`
	Shadowed  []catalog.Shadow  `json:"shadowed"`
	NotServed []notServed       `json:"unserved"`
	Sandbox   doctor.Sandbox    `json:"sandbox"`
	Servers   doctor.Servers    `json:"servers"`
	Profiles  doctorProfiles    `json:"profiles"`
	Secrets   doctor.Secrets    `json:"secrets"`
	// Installed lists the directories with skills installed by loadout add.
	Installed []doctorInstalled `json:"installed"`
}

func (a *app) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Diagnose your setup: skills, servers, sandbox, configuration",
		Long: `Diagnose your setup without connecting to anything. doctor shows the configuration
files, the locations that Loadout searches for skills, and the skills that are broken,
repaired, shadowed or not available as MCP resources, with a fix for each. It also
checks the sandbox for scripts, and your MCP servers, profiles and secrets. Exits with
status 1 if a skill does not load.`,
		Example: "  loadout doctor\n  loadout doctor --json | jq .problems",
		Args:    argCount(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.LoadConfig(nil)
			if err != nil {
				return err
			}
			rt, err := a.NewRuntime(cmd.Context(), c, false)
			if err != nil {
				return err
			}
			defer rt.Close()
			out := a.inspectSkills(cmd.Context(), rt, c)
			out.Sandbox = a.inspectSandbox(cmd.Context(), c)
			var own []*upstream.Config
			out.Servers, own = a.inspectServers(c)
			out.Profiles = a.inspectProfiles(rt, own)
			out.Secrets = a.inspectSecrets()
			out.Installed = a.inspectInstalled()
			if a.JSON {
				err = a.PrintJSON(out)
			} else {
				a.printDoctor(out)
			}
			for _, p := range out.Problems {
				if err == nil && p.Severity == skill.Error {
					return exit.Reported
				}
			}
			return err
		},
	}
}

// notServed is a skill that is not available as MCP skill resources.
type notServed struct {
	Name   string `json:"name"`
	Path   string `json:"path"`
	Reason string `json:"reason"` // why it is not available, and what to change
}

// inspectSkills returns the output of doctor with the parts about the
// configuration and the skills.
func (a *app) inspectSkills(ctx context.Context, rt *loadout.Runtime, c *config.Config) doctorOutput {
	snap := rt.Catalog().Snapshot()
	out := doctorOutput{Version: setup.ReadVersion(), Config: append([]string{}, c.Files...), Ignored: append([]config.Note{}, c.Notes...),
		Managed: c.Managed(), Disabled: snap.Disabled, Skills: len(snap.Skills()), Sources: doctor.Sources(rt.Catalog()),
		Problems: append([]catalog.Problem{}, snap.Problems()...), Shadowed: append([]catalog.Shadow{}, snap.Shadowed()...)}
	s := mcpserver.New(rt, nil)
	defer s.Close()
	out.NotServed = []notServed{}
	var known []string
	for e, reason := range s.NotServed() {
		known = append(known, e.Path)
		out.NotServed = append(out.NotServed, notServed{Name: untrusted.New(e.Name).ForTerminal(), Path: untrusted.New(e.Path).ForTerminal(), Reason: reason})
	}
	for _, o := range doctor.OversizedSkills(ctx, rt.Catalog(), known) {
		out.NotServed = append(out.NotServed, notServed{Name: o.Name, Path: o.Path,
			Reason: fmt.Sprintf("%d files with %s; MCP clients need not accept more than %d files and 16 MiB", o.Files, console.FormatSize(o.Bytes), skillfile.PortableFiles)})
	}
	return out
}

func (a *app) inspectSandbox(ctx context.Context, c *config.Config) doctor.Sandbox {
	if !c.Sandbox.Enabled {
		return doctor.CheckSandbox(ctx, nil, 0)
	}
	return doctor.CheckSandbox(ctx, a.NewBackend(c).Renew, sandbox.Tier(c.Sandbox.MinTier))
}

func (a *app) printDoctor(d doctorOutput) {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	p("%s %s (%s, %s)\n\n%s\n", a.Bold("Loadout"), d.Version.Version, d.Version.Go, d.Version.Platform, a.Bold("Configuration"))
	if len(d.Config) == 0 {
		p("  no loadout.yaml; using the defaults\n")
	}
	for _, f := range d.Config {
		p("  %s\n", plain(f))
	}
	if d.Managed {
		p("  only the administrator's approvals count (policy.presence: managed)\n")
	}
	for _, n := range d.Ignored {
		p("  ignored: %s: %s\n", plain(n.Where), plain(n.Message))
	}
	if d.Disabled {
		p("  skills are disabled (skills.enabled); see: loadout config show\n")
	}
	fmt.Fprint(a.Stdout, b.String())
	b.Reset()
	a.printSources(d)
	a.printFindings(&b, d.Problems)
	if len(d.Shadowed) > 0 {
		p("\n%s: %d\n", a.Bold("Shadowed by another skill of the same name"), len(d.Shadowed))
		for _, s := range d.Shadowed {
			p("  %s  %s\n", a.Bold(plain(s.Name)), plain(s.Path))
			a.WriteWrapped(&b, "      ", s.Reason, a.Faint)
		}
	}
	if len(d.NotServed) > 0 {
		p("\n%s: %d\n  They remain available through the tools search_skills and load_skill.\n", a.Bold("Not available as MCP skill resources"), len(d.NotServed))
		for _, u := range d.NotServed {
			p("  %s  %s\n", a.Bold(plain(u.Name)), plain(u.Path))
			a.WriteWrapped(&b, "      ", u.Reason, a.Faint)
		}
	}
	a.printSandbox(&b, d.Sandbox)
	a.printSetup(&b, d)
	fmt.Fprint(a.Stdout, b.String())
}

func (a *app) printSandbox(b *strings.Builder, s doctor.Sandbox) {
	fmt.Fprintf(b, "\n%s\n", a.Bold("Scripts of skills"))
	switch {
	case !s.Enabled:
		fmt.Fprintf(b, "  are disabled (sandbox.enabled); see: loadout config show\n")
		return
	case s.Backend == "":
		fmt.Fprintf(b, "  %s: no sandbox is usable\n", a.Red("cannot run"))
		for _, m := range s.Missing {
			a.WriteWrapped(b, "    ", m, console.NoStyle)
		}
		for _, f := range s.Fixes {
			a.WriteWrapped(b, "    ", "to get one: "+f, a.Faint)
		}
		return
	}
	var missing []sandbox.Layer
	for _, l := range s.Layers {
		if !l.Enforced {
			missing = append(missing, l)
		}
	}
	all := "all layers are enforced"
	if len(missing) > 0 {
		all = console.Pluralize(len(missing), "layer") + " of " + strconv.Itoa(len(s.Layers)) + " not enforced"
	}
	a.WriteWrapped(b, "  ", fmt.Sprintf("run in the sandbox %s, tier %v; %s", s.Backend, sandbox.Tier(s.Tier), all), console.NoStyle)
	for _, l := range missing {
		a.WriteWrapped(b, "    ", strings.TrimSuffix(strings.ReplaceAll(l.Name, "_", " ")+" is not enforced: "+l.By, ": "), console.NoStyle)
		if l.Fix != "" {
			a.WriteWrapped(b, "      ", l.Fix, a.Faint)
		}
	}
}

func (a *app) printSources(d doctorOutput) {
	all := 0
	var rows [][]string
	for _, s := range d.Sources {
		all += s.Skills
		if s.Exists || s.Problems > 0 {
			at := s.Path
			if !s.Exists {
				at += " (not readable)"
			}
			rows = append(rows, []string{s.Origin, console.Pluralize(s.Skills, "skill"), s.Scope.String(), at, ""}) // the last column is empty so that the path is not truncated
		}
	}
	hidden := ""
	if all > d.Skills {
		hidden = fmt.Sprintf(", and %d shadowed by others of the same name", all-d.Skills)
	}
	fmt.Fprintf(a.Stdout, "\n%s: %s%s\n", a.Bold("Sources"), console.Pluralize(d.Skills, "skill"), hidden)
	a.PrintTable("  ", rows)
	if absent := len(d.Sources) - len(rows); absent > 0 {
		fmt.Fprintf(a.Stdout, "  %s not found; list them with --json\n", console.Pluralize(absent, "more location"))
	}
}

func (a *app) printFindings(b *strings.Builder, problems []catalog.Problem) {
	if len(problems) == 0 {
		fmt.Fprintf(b, "\nNo findings about skills.\n")
		return
	}
	count := map[skill.Severity]int{}
	for _, p := range problems {
		count[p.Severity]++
	}
	fmt.Fprintf(b, "\n%s: %s, %s, %s\n", a.Bold("Findings about skills"), console.Pluralize(count[skill.Error], "error"), console.Pluralize(count[skill.Warning], "warning"), console.Pluralize(count[skill.Info], "remark"))
	for _, sev := range []skill.Severity{skill.Error, skill.Warning, skill.Info} {
		for _, p := range problems {
			if p.Severity == sev {
				a.printFinding(b, p)
			}
		}
	}
}

// printFinding prints a finding with its fix. If the output is not a terminal,
// the finding has the form FILE:LINE:COLUMN: MESSAGE, which editors recognize.
func (a *app) printFinding(b *strings.Builder, p catalog.Problem) {
	severity := string(p.Severity)
	if p.Severity == skill.Error {
		severity = a.Red(severity)
	}
	if a.TerminalWidth() == 0 {
		fmt.Fprintf(b, "  %s: %s: %s [%s]\n", formatPosition(p), severity, plain(p.Message), p.Code)
	} else {
		fmt.Fprintf(b, "  %s: %s\n", formatPosition(p), severity)
		a.WriteWrapped(b, "      ", fmt.Sprintf("%s [%s]", p.Message, p.Code), console.NoStyle)
	}
	a.WriteWrapped(b, "      ", p.Fix, a.Faint)
}
