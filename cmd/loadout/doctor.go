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
	"github.com/loadout-dev/loadout/mcpserver"
	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/sandbox/auto"
	"github.com/loadout-dev/loadout/skill"
	"github.com/loadout-dev/loadout/upstream"
)

type doctorOutput struct {
	Version  versionOutput        `json:"version"`
	Config   []string             `json:"config"`
	Ignored  []config.Note        `json:"ignored"`
	Disabled bool                 `json:"disabled"`
	Sources  []doctorSource       `json:"sources"`
	Skills   int                  `json:"skills"`
	Problems []catalog.Problem    `json:"problems"`
	Shadowed []catalog.Shadow     `json:"shadowed"`
	Unserved []mcpserver.Unserved `json:"unserved"`
	Sandbox  doctorSandbox        `json:"sandbox"`
	Servers  doctorServers        `json:"servers"`
	Profiles doctorProfiles       `json:"profiles"`
	Secrets  doctorSecrets        `json:"secrets"`
	// Installed are the directories that loadout add put skills into.
	Installed []doctorInstalled `json:"installed"`
}

// doctorSandbox is what isolates scripts here.
type doctorSandbox struct {
	Enabled bool            `json:"enabled"`
	Backend string          `json:"backend"` // "" where none can be used
	Tier    int             `json:"tier"`
	Layers  []sandbox.Layer `json:"layers"`
	Missing []string        `json:"missing"` // why none can be used
	Fixes   []string        `json:"fixes"`   // and ways to get one
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
		Short: "Say what was found where, what was skipped, and why",
		Long: `Say which configuration is in force, where skills are looked for and what is
there, which skills do not load or were repaired and how to mend them, which are
hidden by others, which cannot be served as MCP skill resources, and what isolates
scripts; which MCP servers, profiles and secrets there are, and what is wrong with
them, without connecting anything. Exits with 1 if a skill does not load.`,
		Example: "  loadout doctor\n  loadout doctor --json | jq .problems",
		Args:    want(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.settings(nil)
			if err != nil {
				return err
			}
			rt, err := a.runtime(cmd.Context(), c, false)
			if err != nil {
				return err
			}
			defer rt.Close()
			out := a.examine(rt, c)
			out.Sandbox = a.examineSandbox(cmd.Context(), c)
			var own []*upstream.Config
			out.Servers, own = a.examineServers(c)
			out.Profiles = a.examineProfiles(rt, own)
			out.Secrets = a.examineSecrets()
			out.Installed = a.examineInstalled()
			if a.json {
				err = a.printJSON(out)
			} else {
				a.printDoctor(out)
			}
			for _, p := range out.Problems {
				if err == nil && p.Severity == skill.Error {
					return errFound
				}
			}
			return err
		},
	}
}

func (a *app) examine(rt *loadout.Runtime, c *config.Config) doctorOutput {
	snap := rt.Catalog().Snapshot()
	out := doctorOutput{Version: buildVersion(), Config: append([]string{}, c.Files...), Ignored: append([]config.Note{}, c.Notes...),
		Disabled: snap.Disabled, Skills: len(snap.Skills()), Sources: []doctorSource{},
		Problems: append([]catalog.Problem{}, snap.Problems()...), Shadowed: append([]catalog.Shadow{}, snap.Shadowed()...)}
	s := mcpserver.New(rt, nil)
	defer s.Close()
	out.Unserved = append(append([]mcpserver.Unserved{}, s.Unserved()...), oversized(rt, s.Unserved())...)
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

// sandboxPatience bounds what trying sandboxes may take where something hangs;
// one that works answers within a tenth of a second.
const sandboxPatience = 5 * time.Second

func (a *app) examineSandbox(ctx context.Context, c *config.Config) doctorSandbox {
	out := doctorSandbox{Enabled: c.Sandbox.Enabled, Layers: []sandbox.Layer{}, Missing: []string{}, Fixes: []string{}}
	if !out.Enabled {
		return out
	}
	ctx, cancel := context.WithTimeout(ctx, sandboxPatience)
	defer cancel()
	b, report, err := a.backend(c).Choose(ctx)
	if err == nil {
		out.Backend, out.Tier, out.Layers = b.Name(), int(report.Tier), append(out.Layers, report.Layers...)
		return out
	}
	none, ok := errors.AsType[*auto.NoneError](err)
	if !ok {
		out.Missing = append(out.Missing, err.Error())
		return out
	}
	for _, o := range none.Outcomes {
		out.Missing = append(out.Missing, o.Err.Error())
	}
	if len(none.Outcomes) == 0 {
		out.Missing = append(out.Missing, fmt.Sprintf("no back end has tier %v, which sandbox.min_tier asks for", sandbox.Tier(c.Sandbox.MinTier)))
	}
	out.Fixes = append(out.Fixes, none.Fixes()...)
	return out
}

// oversized lists the skills that are served in parts only, as no host has to
// accept so many files or bytes; those that are named already are left out.
func oversized(rt *loadout.Runtime, named []mcpserver.Unserved) []mcpserver.Unserved {
	known := map[string]bool{}
	for _, u := range named {
		known[u.Path] = true
	}
	var out []mcpserver.Unserved
	for e := range rt.Catalog().Snapshot().All() {
		if known[e.Path] {
			continue
		}
		m, err := rt.Catalog().Files(context.Background(), e)
		if err == nil && (len(m) > skill.PortableFiles || m.Size() > skill.PortableBytes) {
			out = append(out, mcpserver.Unserved{Name: e.Name, Path: e.Path,
				Reason: fmt.Sprintf("it has %d files and %s; MCP clients need not accept more than %d and 16 MiB", len(m), sized(m.Size()), skill.PortableFiles)})
		}
	}
	return out
}

func (a *app) printDoctor(d doctorOutput) {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	p("%s %s (%s, %s)\n\n%s\n", a.bold("Loadout"), d.Version.Version, d.Version.Go, d.Version.Platform, a.bold("Configuration"))
	if len(d.Config) == 0 {
		p("  no loadout.yaml; the defaults are in force\n")
	}
	for _, f := range d.Config {
		p("  %s\n", plain(f))
	}
	for _, n := range d.Ignored {
		p("  ignored: %s: %s\n", plain(n.Where), plain(n.Message))
	}
	if d.Disabled {
		p("  skills are switched off (skills.enabled); see: loadout config show\n")
	}
	fmt.Fprint(a.stdout, b.String())
	b.Reset()
	a.printSources(d)
	a.printFindings(&b, d.Problems)
	if len(d.Shadowed) > 0 {
		p("\n%s: %d\n", a.bold("Hidden by another skill of the same name"), len(d.Shadowed))
		for _, s := range d.Shadowed {
			p("  %s  %s\n", a.bold(plain(s.Name)), plain(s.Path))
			a.wrap(&b, "      ", s.Reason, a.faint)
		}
	}
	if len(d.Unserved) > 0 {
		p("\n%s: %d\n  They work through the tools (search_skills, load_skill) all the same.\n", a.bold("Not served as MCP skill resources"), len(d.Unserved))
		for _, u := range d.Unserved {
			p("  %s  %s\n", a.bold(plain(u.Name)), plain(u.Path))
			a.wrap(&b, "      ", u.Reason, a.faint)
		}
	}
	a.printSandbox(&b, d.Sandbox)
	a.printMore(&b, d)
	fmt.Fprint(a.stdout, b.String())
}

func (a *app) printSandbox(b *strings.Builder, s doctorSandbox) {
	fmt.Fprintf(b, "\n%s\n", a.bold("Scripts of skills"))
	switch {
	case !s.Enabled:
		fmt.Fprintf(b, "  are switched off (sandbox.enabled); see: loadout config show\n")
		return
	case s.Backend == "":
		fmt.Fprintf(b, "  %s, as no sandbox can be had:\n", a.red("cannot run"))
		for _, m := range s.Missing {
			a.wrap(b, "    ", m, same)
		}
		for _, f := range s.Fixes {
			a.wrap(b, "    ", "to get one: "+f, a.faint)
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
		all = counted(len(missing), "layer") + " of " + strconv.Itoa(len(s.Layers)) + " not enforced"
	}
	a.wrap(b, "  ", fmt.Sprintf("run in the sandbox %s, tier %v; %s", s.Backend, sandbox.Tier(s.Tier), all), same)
	for _, l := range missing {
		a.wrap(b, "    ", strings.TrimSuffix(strings.ReplaceAll(l.Name, "_", " ")+" is not enforced: "+l.By, ": "), same)
		if l.Fix != "" {
			a.wrap(b, "      ", l.Fix, a.faint)
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
				at += " (cannot be read)"
			}
			rows = append(rows, []string{s.Origin, counted(s.Skills, "skill"), s.Scope.String(), at, ""}) // the path is not cut
		}
	}
	hidden := ""
	if all > d.Skills {
		hidden = fmt.Sprintf(", and %d hidden by others of the same name", all-d.Skills)
	}
	fmt.Fprintf(a.stdout, "\n%s: %s%s\n", a.bold("Sources"), counted(d.Skills, "skill"), hidden)
	a.table("  ", rows)
	if absent := len(d.Sources) - len(rows); absent > 0 {
		fmt.Fprintf(a.stdout, "  %s looked at and not there; --json lists them\n", counted(absent, "more place"))
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
	fmt.Fprintf(b, "\n%s: %s, %s, %s\n", a.bold("Findings about skills"), counted(count[skill.Error], "error"), counted(count[skill.Warning], "warning"), counted(count[skill.Info], "remark"))
	for _, sev := range []skill.Severity{skill.Error, skill.Warning, skill.Info} {
		for _, p := range problems {
			if p.Severity == sev {
				a.finding(b, p)
			}
		}
	}
}

// finding prints what is wrong in the form that editors know, and how to mend
// it.
func (a *app) finding(b *strings.Builder, p catalog.Problem) {
	severity := string(p.Severity)
	if p.Severity == skill.Error {
		severity = a.red(severity)
	}
	if a.width() == 0 {
		fmt.Fprintf(b, "  %s: %s: %s [%s]\n", where(p), severity, plain(p.Message), p.Code)
	} else {
		fmt.Fprintf(b, "  %s: %s\n", where(p), severity)
		a.wrap(b, "      ", fmt.Sprintf("%s [%s]", p.Message, p.Code), same)
	}
	a.wrap(b, "      ", p.Fix, a.faint)
}
