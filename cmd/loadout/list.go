package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/skill"
)

func (a *app) listCommand() *cobra.Command {
	var full bool
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the skills that were found",
		Long: `List the skills that answer to their names, where they come from and what they
are for. Problems go to standard error; --json has them, and the skills that
another of the same name hides.`,
		Example: `  loadout list
  loadout list --skills ~/work/skills
  loadout list --json | jq '.skills[].name'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			rt, err := a.open(cmd.Context())
			if err != nil {
				return err
			}
			defer rt.Close()
			return a.list(cmd, rt, full)
		},
	}
	cmd.Flags().BoolVar(&full, "full", false, "read every file: digests and numbers of files (with --json)")
	return cmd
}

// listedSkill is a skill in list --json.
type listedSkill struct {
	Name           string        `json:"name"`
	DisplayName    string        `json:"displayName"`
	Description    string        `json:"description"`
	Version        string        `json:"version"`
	Origin         string        `json:"origin"`
	Scope          catalog.Scope `json:"scope"`
	Path           string        `json:"path"`
	Status         string        `json:"status"`
	ModelInvocable bool          `json:"modelInvocable"`
	UserInvocable  bool          `json:"userInvocable"`
	Digest         string        `json:"digest,omitempty"`
	Files          *int          `json:"files,omitempty"`
	HasScripts     *bool         `json:"hasScripts,omitempty"`
}

type listOutput struct {
	Skills   []listedSkill     `json:"skills"`
	Problems []catalog.Problem `json:"problems"`
	Shadowed []catalog.Shadow  `json:"shadowed"`
}

func (a *app) list(cmd *cobra.Command, rt *loadout.Runtime, full bool) error {
	snap := rt.Catalog().Snapshot()
	if !a.json {
		return a.listText(snap)
	}
	out := listOutput{Skills: []listedSkill{}, Problems: append([]catalog.Problem{}, snap.Problems()...), Shadowed: append([]catalog.Shadow{}, snap.Shadowed()...)}
	for _, e := range snap.Skills() {
		s := listed(e)
		if full {
			m, err := rt.Catalog().Manifest(cmd.Context(), e)
			if err != nil {
				out.Problems = append(out.Problems, catalog.Problem{Path: e.Path, Origin: e.Origin, Diagnostic: skill.Diagnostic{
					Severity: skill.Error, Code: "unreadable", Message: err.Error(), Fix: "check that its files can be read"}})
				continue
			}
			n, scripts := len(m), false
			for _, f := range m {
				scripts = scripts || f.Script
			}
			s.Digest, s.Files, s.HasScripts = m.Digest(), &n, &scripts
		}
		out.Skills = append(out.Skills, s)
	}
	return a.printJSON(out)
}

func listed(e *catalog.Entry) listedSkill {
	s := listedSkill{Name: e.Name, DisplayName: e.DisplayName, Description: e.Description, Version: e.Version, Origin: e.Origin,
		Scope: e.Scope, Path: e.Path, Status: "ok", ModelInvocable: !e.DisableModelInvocation, UserInvocable: e.UserInvocable}
	if !e.Verbatim || !e.Named {
		s.Status = "degraded"
	}
	return s
}

func (a *app) listText(snap *catalog.Snapshot) error {
	a.problems(snap.Problems())
	if snap.Disabled {
		fmt.Fprintln(a.stdout, "Skills are switched off (skills.enabled: false). See: loadout config show")
		return nil
	}
	if len(snap.Skills()) == 0 {
		fmt.Fprintln(a.stdout, "No skills were found. Make one with: loadout new NAME; or see where they are looked for: loadout doctor")
		return nil
	}
	var rows [][]string
	for _, e := range snap.Skills() {
		rows = append(rows, []string{e.Name, e.Origin, e.Description})
	}
	a.table(rows)
	if n := len(snap.Shadowed()); n > 0 && !a.quiet {
		fmt.Fprintf(a.stderr, "%d skills are hidden by others of the same name: loadout explain NAME\n", n)
	}
	return nil
}
