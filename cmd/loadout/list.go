package main

import (
	"context"
	"fmt"
	"slices"

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
another of the same name hides. What does not go to a terminal is not cut.`,
		Example: `  loadout list
  loadout list --skills ~/work/skills
  loadout list --json | jq '.skills[].name'`,
		Args: want(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			rt, err := a.open(cmd.Context())
			if err != nil {
				return err
			}
			defer rt.Close()
			return a.list(cmd, rt, full)
		},
	}
	cmd.Flags().BoolVar(&full, "full", false, "read every file, for digests, numbers of files, and which have scripts")
	a.profileFlag(cmd.Flags())
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
	// Newer says what the last loadout update --check found newer, if it did.
	Newer string `json:"newer,omitempty"`
}

type listOutput struct {
	Skills   []listedSkill     `json:"skills"`
	Problems []catalog.Problem `json:"problems"`
	Shadowed []catalog.Shadow  `json:"shadowed"`
}

func (a *app) list(cmd *cobra.Command, rt *loadout.Runtime, full bool) error {
	snap := rt.Catalog().Snapshot()
	skills, unread, err := a.listed(cmd.Context(), rt, full)
	if err != nil {
		return err
	}
	problems := append(slices.Clone(snap.Problems()), unread...)
	newer := a.newerSkills()
	if a.json {
		noteNewer(skills, newer)
		return a.printJSON(listOutput{Skills: skills, Problems: append([]catalog.Problem{}, problems...), Shadowed: append([]catalog.Shadow{}, snap.Shadowed()...)})
	}
	a.listText(snap, skills)
	a.problems(problems)
	a.listEnd(snap, skills, newer)
	return nil
}

// listed describes the skills; full reads all their files.
func (a *app) listed(ctx context.Context, rt *loadout.Runtime, full bool) (skills []listedSkill, unread []catalog.Problem, err error) {
	if full {
		defer a.progress("reading every file")()
	}
	skills = []listedSkill{}
	for _, e := range rt.Catalog().Snapshot().Skills() {
		s := listed(e)
		if full {
			m, err := rt.Catalog().Manifest(ctx, e)
			switch {
			case ctx.Err() != nil:
				return nil, nil, context.Cause(ctx)
			case err != nil:
				unread = append(unread, catalog.Problem{Path: e.Path, Origin: e.Origin, Diagnostic: skill.Diagnostic{
					Severity: skill.Error, Code: "unreadable", Message: err.Error(), Fix: "check that its files can be read"}})
			default:
				n, scripts := len(m), slices.ContainsFunc(m, func(f skill.File) bool { return f.Script })
				s.Digest, s.Files, s.HasScripts = m.Digest(), &n, &scripts
			}
		}
		skills = append(skills, s)
	}
	return skills, unread, nil
}

func listed(e *catalog.Entry) listedSkill {
	s := listedSkill{Name: e.Name, DisplayName: e.DisplayName, Description: e.Description, Version: e.Version, Origin: e.Origin,
		Scope: e.Scope, Path: e.Path, Status: "ok", ModelInvocable: !e.DisableModelInvocation, UserInvocable: e.UserInvocable}
	if !e.Verbatim || !e.Named {
		s.Status = "degraded"
	}
	return s
}

func (a *app) listText(snap *catalog.Snapshot, skills []listedSkill) {
	if snap.Disabled {
		fmt.Fprintln(a.stdout, "Skills are switched off (skills.enabled: false). See: loadout config show")
		return
	}
	if len(skills) == 0 && a.ghost != "" {
		fmt.Fprintf(a.stdout, "Profile %s has no skill that is here. To see all there are: loadout list%s\n", plain(a.ghost), a.flags())
		return
	}
	if len(skills) == 0 {
		fmt.Fprintf(a.stdout, "No skills were found. Make one with: loadout new NAME; or see where they are looked for: loadout doctor%s\n", a.flags())
		return
	}
	a.table("", a.rows(skills, len(originsOf(skills)) > 1 || a.width() == 0))
}

// listEnd says behind a list, which may be long, what else there is.
func (a *app) listEnd(snap *catalog.Snapshot, skills []listedSkill, newer []newer) {
	if a.quiet || len(skills) == 0 {
		return
	}
	if n := len(snap.Shadowed()); n > 0 {
		fmt.Fprintf(a.stderr, "%s hidden by others of the same name: loadout explain NAME%s\n", map[bool]string{true: "1 skill is", false: counted(n, "skill") + " are"}[n == 1], a.flags())
	}
	if len(newer) > 0 {
		fmt.Fprintf(a.stderr, "%s: %s. To see and get it: loadout update\n", newerCount(newer), newerNames(newer))
	}
	if isTerminal(a.stdout) && isTerminal(a.stderr) {
		from := skills[0].Origin
		if n := len(originsOf(skills)); n > 1 {
			from = counted(n, "place")
		}
		fmt.Fprintf(a.stderr, "\n%s from %s. To read one: loadout show NAME%s\n", counted(len(skills), "skill"), from, a.flags())
	}
}

func originsOf(skills []listedSkill) map[string]bool {
	origins := map[string]bool{}
	for _, s := range skills {
		origins[s.Origin] = true
	}
	return origins
}

func (a *app) rows(skills []listedSkill, origin bool) [][]string {
	var rows [][]string
	for _, s := range skills {
		row := []string{s.Name}
		if origin {
			row = append(row, s.Origin)
		}
		if s.Files != nil {
			scripts := ""
			if *s.HasScripts {
				scripts = "scripts"
			}
			row = append(row, counted(*s.Files, "file"), scripts)
			if a.width() == 0 {
				row = append(row, s.Digest)
			}
		}
		rows = append(rows, append(row, s.Description))
	}
	return rows
}
