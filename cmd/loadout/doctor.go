package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/mcpserver"
	"github.com/loadout-dev/loadout/skill"
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
hidden by others, and which cannot be served as MCP skill resources. Exits with 1
if a skill does not load.`,
		Example: "  loadout doctor\n  loadout doctor --json | jq .problems",
		Args:    cobra.NoArgs,
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
	out.Unserved = append([]mcpserver.Unserved{}, s.Unserved()...)
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

func (a *app) printDoctor(d doctorOutput) {
	p := func(format string, args ...any) { fmt.Fprintf(a.stdout, format, args...) }
	p("%s %s (%s, %s)\n\n", a.bold("Loadout"), d.Version.Version, d.Version.Go, d.Version.Platform)
	p("%s\n", a.bold("Configuration"))
	if len(d.Config) == 0 {
		p("  no file; defaults are in force\n")
	}
	for _, f := range d.Config {
		p("  %s\n", safe(f))
	}
	for _, n := range d.Ignored {
		p("  ignored: %s: %s\n", safe(n.Where), safe(n.Message))
	}
	if d.Disabled {
		p("  skills are switched off (skills.enabled)\n")
	}
	p("\n%s: %d skills\n", a.bold("Sources"), d.Skills)
	absent := 0
	for _, s := range d.Sources {
		if !s.Exists && s.Problems == 0 {
			absent++
			continue
		}
		p("  %-24s %4d skills  %-8s %s\n", safe(s.Origin), s.Skills, s.Scope, safe(s.Path))
	}
	if absent > 0 {
		p("  %d places that do not exist are left out; --json lists them\n", absent)
	}
	a.printFindings(d.Problems)
	if len(d.Shadowed) > 0 {
		p("\n%s: %d\n", a.bold("Hidden by another skill of the same name"), len(d.Shadowed))
		for _, s := range d.Shadowed {
			p("  %s at %s: %s\n", safe(s.Name), safe(s.Path), safe(s.Reason))
		}
	}
	if len(d.Unserved) > 0 {
		p("\n%s: %d\n  They work through the tools (search_skills, load_skill) all the same.\n", a.bold("Not served as MCP skill resources"), len(d.Unserved))
		for _, u := range d.Unserved {
			p("  %s at %s: %s\n", safe(u.Name), safe(u.Path), safe(u.Reason))
		}
	}
}

func (a *app) printFindings(problems []catalog.Problem) {
	if len(problems) == 0 {
		fmt.Fprintf(a.stdout, "\nNo findings about skills.\n")
		return
	}
	fmt.Fprintf(a.stdout, "\n%s: %d\n", a.bold("Findings about skills"), len(problems))
	for _, sev := range []skill.Severity{skill.Error, skill.Warning, skill.Info} {
		for _, p := range problems {
			if p.Severity == sev {
				fmt.Fprintf(a.stdout, "  %s\n", safe(p.String()))
			}
		}
	}
}
