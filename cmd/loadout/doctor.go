package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/mcpserver"
	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/sandbox/auto"
	"github.com/loadout-dev/loadout/skill"
)

type doctorOutput struct {
	Version  versionOutput         `json:"version"`
	Config   []string              `json:"config"`
	Ignored  []config.Note         `json:"ignored"`
	Disabled bool                  `json:"disabled"`
	Sources  []doctorSource        `json:"sources"`
	Skills   int                   `json:"skills"`
	Problems []catalog.Problem     `json:"problems"`
	Shadowed []catalog.Shadow      `json:"shadowed"`
	Unserved []mcpserver.NotServed `json:"unserved"`
	Sandbox  doctorSandbox         `json:"sandbox"`
	Servers  doctorServers         `json:"servers"`
	Profiles doctorProfiles        `json:"profiles"`
	Secrets  doctorSecrets         `json:"secrets"`
	// Installed are the directories with skills installed by loadout add.
	Installed []doctorInstalled `json:"installed"`
}

// doctorSandbox describes the sandbox for scripts.
type doctorSandbox struct {
	Enabled bool            `json:"enabled"`
	Backend string          `json:"backend"` // "" if none is usable
	Tier    int             `json:"tier"`
	Layers  []sandbox.Layer `json:"layers"`
	Missing []string        `json:"missing"` // why none is usable
	Fixes   []string        `json:"fixes"`   // how to get a sandbox
}

type doctorSource struct {
	Origin   string        `json:"origin"`
	Scope    catalog.Scope `json:"scope"`
	Path     string        `json:"path"`
	Exists   bool          `json:"exists"`
	Skills   int           `json:"skills"`
	Problems int           `json:"problems"`
}

func (a *app) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Diagnose your setup: skills, servers, sandbox, configuration",
		Long: `Diagnose your setup without connecting to anything. doctor shows the configuration
files, where skills are searched for, and which skills are broken, repaired, shadowed
or not available as MCP resources, with a fix for each. It also checks the sandbox for
scripts, and your MCP servers, profiles and secrets. Exits with 1 if a skill does not
load.`,
		Example: "  loadout doctor\n  loadout doctor --json | jq .problems",
		Args:    argCount(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.loadConfig(nil)
			if err != nil {
				return err
			}
			rt, err := a.newRuntime(cmd.Context(), c, false)
			if err != nil {
				return err
			}
			defer rt.Close()
			out := a.inspectSources(rt, c)
			out.Sandbox = a.inspectSandbox(cmd.Context(), c)
			var own []*upstream.Config
			out.Servers, own = a.inspectServers(c)
			out.Profiles = a.inspectProfiles(rt, own)
			out.Secrets = a.inspectSecrets()
			out.Installed = a.inspectInstalled()
			if a.json {
				err = a.printJSON(out)
			} else {
				a.printDoctor(out)
			}
			for _, p := range out.Problems {
				if err == nil && p.Severity == skill.Error {
					return errReported
				}
			}
			return err
		},
	}
}

func (a *app) inspectSources(rt *loadout.Runtime, c *config.Config) doctorOutput {
	snap := rt.Catalog().Snapshot()
	out := doctorOutput{Version: buildVersion(), Config: append([]string{}, c.Files...), Ignored: append([]config.Note{}, c.Notes...),
		Disabled: snap.Disabled, Skills: len(snap.Skills()), Sources: []doctorSource{},
		Problems: append([]catalog.Problem{}, snap.Problems()...), Shadowed: append([]catalog.Shadow{}, snap.Shadowed()...)}
	s := mcpserver.New(rt, nil)
	defer s.Close()
	out.Unserved = append(append([]mcpserver.NotServed{}, s.NotServed()...), oversizedSkills(rt, s.NotServed())...)
	found := map[string]int{}
	for e := range snap.All() {
		found[e.Origin]++
	}
	wrong := map[string]int{}
	for _, p := range snap.Problems() {
		wrong[p.Origin]++
	}
	for _, src := range rt.Catalog().Sources() {
		d := doctorSource{Origin: src.Origin(), Scope: src.Scope(), Exists: true, Skills: found[src.Origin()], Problems: wrong[src.Origin()]}
		if at, ok := src.(interface{ Root() string }); ok {
			d.Path = at.Root()
			_, err := os.Stat(d.Path)
			d.Exists = err == nil
		}
		out.Sources = append(out.Sources, d)
	}
	return out
}

// probeTimeout bounds the test of sandboxes. A working one answers within a
// tenth of a second.
const probeTimeout = 5 * time.Second

func (a *app) inspectSandbox(ctx context.Context, c *config.Config) doctorSandbox {
	out := doctorSandbox{Enabled: c.Sandbox.Enabled, Layers: []sandbox.Layer{}, Missing: []string{}, Fixes: []string{}}
	if !out.Enabled {
		return out
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	b, report, err := a.newBackend(c).Choose(ctx)
	if err == nil {
		out.Backend, out.Tier, out.Layers = b.Name(), int(report.Tier), append(out.Layers, report.Layers...)
		return out
	}
	none, ok := errors.AsType[*auto.NoBackendError](err)
	if !ok {
		out.Missing = append(out.Missing, err.Error())
		return out
	}
	for _, o := range none.Outcomes {
		out.Missing = append(out.Missing, o.Err.Error())
	}
	if len(none.Outcomes) == 0 {
		out.Missing = append(out.Missing, fmt.Sprintf("no back end reaches tier %v, the value of sandbox.min_tier", sandbox.Tier(c.Sandbox.MinTier)))
	}
	out.Fixes = append(out.Fixes, none.Fixes()...)
	return out
}

// oversizedSkills returns the skills with more files or bytes than an MCP
// client has to accept, except those in named.
func oversizedSkills(rt *loadout.Runtime, named []mcpserver.NotServed) []mcpserver.NotServed {
	known := map[string]bool{}
	for _, u := range named {
		known[u.Path] = true
	}
	var out []mcpserver.NotServed
	for e := range rt.Catalog().Snapshot().All() {
		if known[e.Path] {
			continue
		}
		m, err := rt.Catalog().ListFiles(context.Background(), e)
		if err == nil && (len(m) > skill.PortableFiles || m.Size() > skill.PortableBytes) {
			out = append(out, mcpserver.NotServed{Name: e.Name, Path: e.Path,
				Reason: fmt.Sprintf("%d files with %s; MCP clients need not accept more than %d files and 16 MiB", len(m), formatSize(m.Size()), skill.PortableFiles)})
		}
	}
	return out
}

func (a *app) printDoctor(d doctorOutput) {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	p("%s %s (%s, %s)\n\n%s\n", a.bold("Loadout"), d.Version.Version, d.Version.Go, d.Version.Platform, a.bold("Configuration"))
	if len(d.Config) == 0 {
		p("  no loadout.yaml; using the defaults\n")
	}
	for _, f := range d.Config {
		p("  %s\n", plain(f))
	}
	for _, n := range d.Ignored {
		p("  ignored: %s: %s\n", plain(n.Where), plain(n.Message))
	}
	if d.Disabled {
		p("  skills are disabled (skills.enabled); see: loadout config show\n")
	}
	fmt.Fprint(a.stdout, b.String())
	b.Reset()
	a.printSources(d)
	a.printFindings(&b, d.Problems)
	if len(d.Shadowed) > 0 {
		p("\n%s: %d\n", a.bold("Shadowed by another skill of the same name"), len(d.Shadowed))
		for _, s := range d.Shadowed {
			p("  %s  %s\n", a.bold(plain(s.Name)), plain(s.Path))
			a.writeWrapped(&b, "      ", s.Reason, a.faint)
		}
	}
	if len(d.Unserved) > 0 {
		p("\n%s: %d\n  They remain available through the tools search_skills and load_skill.\n", a.bold("Not available as MCP skill resources"), len(d.Unserved))
		for _, u := range d.Unserved {
			p("  %s  %s\n", a.bold(plain(u.Name)), plain(u.Path))
			a.writeWrapped(&b, "      ", u.Reason, a.faint)
		}
	}
	a.printSandbox(&b, d.Sandbox)
	a.printSetup(&b, d)
	fmt.Fprint(a.stdout, b.String())
}

func (a *app) printSandbox(b *strings.Builder, s doctorSandbox) {
	fmt.Fprintf(b, "\n%s\n", a.bold("Scripts of skills"))
	switch {
	case !s.Enabled:
		fmt.Fprintf(b, "  are disabled (sandbox.enabled); see: loadout config show\n")
		return
	case s.Backend == "":
		fmt.Fprintf(b, "  %s: no sandbox is usable\n", a.red("cannot run"))
		for _, m := range s.Missing {
			a.writeWrapped(b, "    ", m, noStyle)
		}
		for _, f := range s.Fixes {
			a.writeWrapped(b, "    ", "to get one: "+f, a.faint)
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
		all = pluralize(len(missing), "layer") + " of " + strconv.Itoa(len(s.Layers)) + " not enforced"
	}
	a.writeWrapped(b, "  ", fmt.Sprintf("run in the sandbox %s, tier %v; %s", s.Backend, sandbox.Tier(s.Tier), all), noStyle)
	for _, l := range missing {
		a.writeWrapped(b, "    ", strings.TrimSuffix(strings.ReplaceAll(l.Name, "_", " ")+" is not enforced: "+l.By, ": "), noStyle)
		if l.Fix != "" {
			a.writeWrapped(b, "      ", l.Fix, a.faint)
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
			rows = append(rows, []string{s.Origin, pluralize(s.Skills, "skill"), s.Scope.String(), at, ""}) // the last column is empty so that the path is not cut
		}
	}
	hidden := ""
	if all > d.Skills {
		hidden = fmt.Sprintf(", and %d shadowed by others of the same name", all-d.Skills)
	}
	fmt.Fprintf(a.stdout, "\n%s: %s%s\n", a.bold("Sources"), pluralize(d.Skills, "skill"), hidden)
	a.printTable("  ", rows)
	if absent := len(d.Sources) - len(rows); absent > 0 {
		fmt.Fprintf(a.stdout, "  %s not found; list them with --json\n", pluralize(absent, "more location"))
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
	fmt.Fprintf(b, "\n%s: %s, %s, %s\n", a.bold("Findings about skills"), pluralize(count[skill.Error], "error"), pluralize(count[skill.Warning], "warning"), pluralize(count[skill.Info], "remark"))
	for _, sev := range []skill.Severity{skill.Error, skill.Warning, skill.Info} {
		for _, p := range problems {
			if p.Severity == sev {
				a.printFinding(b, p)
			}
		}
	}
}

// printFinding prints a finding in the form that editors understand, with its
// fix.
func (a *app) printFinding(b *strings.Builder, p catalog.Problem) {
	severity := string(p.Severity)
	if p.Severity == skill.Error {
		severity = a.red(severity)
	}
	if a.terminalWidth() == 0 {
		fmt.Fprintf(b, "  %s: %s: %s [%s]\n", formatPosition(p), severity, plain(p.Message), p.Code)
	} else {
		fmt.Fprintf(b, "  %s: %s\n", formatPosition(p), severity)
		a.writeWrapped(b, "      ", fmt.Sprintf("%s [%s]", p.Message, p.Code), noStyle)
	}
	a.writeWrapped(b, "      ", p.Fix, a.faint)
}
