package main

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/install"
	"github.com/loadout-dev/loadout/internal/setup"
	"github.com/loadout-dev/loadout/skill"
)

func (a *app) listCommand() *cobra.Command {
	var full bool
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List installed and available skills",
		Long: `List the available skills with their source and description. Problems are printed to
standard error. --json also lists problems and shadowed skills. Output is truncated only
on a terminal.`,
		Example: `  loadout list
  loadout list --skills ~/work/skills
  loadout list --json | jq '.skills[].name'`,
		Args: argCount(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.JSON && a.Getenv("GOGC") == "" {
				setGCPercent(5) // a catalog is live memory, and the rest of a list is garbage
			}
			rt, err := a.OpenRuntime(cmd.Context())
			if err != nil {
				return err
			}
			defer rt.Close()
			return a.listSkills(cmd, rt, full)
		},
	}
	cmd.Flags().BoolVar(&full, "full", false, "read all files, to show digests, file counts and scripts")
	a.profileFlag(cmd.Flags())
	return cmd
}

// listedSkill describes a skill in the output of list --json.
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
	// Newer describes the update found by the last loadout update --check.
	Newer string `json:"newer,omitempty"`
	// Signature describes a limit of the skill's signature, such as an expired
	// key. The skill can be used in any case.
	Signature string `json:"signature,omitempty"`
}

// pendingSkill describes a project's skill that would replace another, or that was
// added after the project was first listed. It is not available until the user
// confirms it.
type pendingSkill struct {
	Name     string `json:"name"`
	Origin   string `json:"origin"`
	Path     string `json:"path"`
	Replaces string `json:"replaces"` // key of the other skill; "" if there is none
	Reason   string `json:"reason"`   // why the user must confirm the skill, with the command for it
}

func listPending(snap *catalog.Snapshot) []pendingSkill {
	out := []pendingSkill{}
	for _, r := range snap.Pending() {
		p := pendingSkill{Name: r.Entry.Name, Origin: r.Entry.Origin, Path: r.Entry.Path, Reason: r.Reason}
		if r.Replaced != nil {
			p.Replaces = r.Replaced.Key()
		}
		out = append(out, p)
	}
	return out
}

func (a *app) listSkills(cmd *cobra.Command, rt *loadout.Runtime, full bool) error {
	snap := rt.Catalog().Snapshot()
	newer, warnings := a.availableUpdates(), a.signatureWarnings()
	if a.JSON && !full {
		return a.printListJSON(snap, snap.Problems(), func(yield func(any) bool) {
			updates := updateReasons(newer)
			for _, e := range snap.Skills() {
				s := newListedSkill(e)
				s.Newer, s.Signature = updates[s.Path], warnings[s.Path].Text
				if !yield(&s) {
					return
				}
			}
		})
	}
	skills, unread, err := a.describeSkills(cmd.Context(), rt, full)
	if err != nil {
		return err
	}
	problems := append(slices.Clone(snap.Problems()), unread...)
	if a.JSON {
		updates := updateReasons(newer)
		for i, s := range skills {
			skills[i].Newer, skills[i].Signature = updates[s.Path], warnings[s.Path].Text
		}
		return a.printListJSON(snap, problems, console.JSONItems(skills))
	}
	a.printList(snap, skills)
	a.printProblems(problems)
	for _, p := range listPending(snap) {
		if !a.Quiet {
			fmt.Fprintf(a.Stderr, "%s is %s\n", plain(p.Name), plain(p.Reason))
		}
	}
	a.printListFooter(snap, skills, newer)
	for _, s := range skills {
		if w := warnings[s.Path]; w.StopsUpdates && !a.Quiet {
			fmt.Fprintf(a.Stderr, "%s: %s\n", plain(s.Name), plain(w.Text))
		}
	}
	return nil
}

// printListJSON prints one skill at a time, because there may be very many.
func (a *app) printListJSON(snap *catalog.Snapshot, problems []catalog.Problem, skills iter.Seq[any]) error {
	lists := []console.JSONList{{Name: "skills", Items: skills}}
	if pending := listPending(snap); len(pending) > 0 {
		lists = append(lists, console.JSONList{Name: "pending", Items: console.JSONItems(pending)})
	}
	return a.PrintJSONLists(append(lists, console.JSONList{Name: "problems", Items: console.JSONItems(problems)},
		console.JSONList{Name: "shadowed", Items: console.JSONItems(snap.Shadowed())})...)
}

// signatureWarnings maps the paths of installed skills to warnings about their
// signatures.
func (a *app) signatureWarnings() map[string]install.Warning {
	out := map[string]install.Warning{}
	all, err := a.InstallDirs(setup.InstallFlags{})
	if err != nil {
		return out
	}
	for _, p := range all {
		lock, err := p.Lockfile()
		if err != nil {
			continue // loadout doctor reports it
		}
		for _, w := range install.Warnings(lock, a.PublisherKeys()) {
			out[filepath.Join(p.Path(), w.Name)] = w
		}
	}
	return out
}

// describeSkills describes the skills of the catalog. If full is set, it reads
// all of their files.
func (a *app) describeSkills(ctx context.Context, rt *loadout.Runtime, full bool) (skills []listedSkill, unread []catalog.Problem, err error) {
	if full {
		defer a.ShowProgress("reading every file")()
	}
	skills = []listedSkill{}
	for _, e := range rt.Catalog().Snapshot().Skills() {
		s := newListedSkill(e)
		if full {
			m, err := rt.Catalog().Manifest(ctx, e)
			switch {
			case ctx.Err() != nil:
				return nil, nil, context.Cause(ctx)
			case err != nil:
				unread = append(unread, catalog.Problem{Path: e.Path, Origin: e.Origin, Diagnostic: skill.Diagnostic{
					Severity: skill.Error, Code: "unreadable", Message: err.Error(), Fix: "check that its files are readable"}})
			default:
				n, scripts := len(m), slices.ContainsFunc(m, func(f skill.File) bool { return f.Script })
				s.Digest, s.Files, s.HasScripts = m.Digest(), &n, &scripts
			}
		}
		skills = append(skills, s)
	}
	return skills, unread, nil
}

func newListedSkill(e *catalog.Entry) listedSkill {
	s := listedSkill{Name: e.Name, DisplayName: e.DisplayName, Description: e.Description, Version: e.Version, Origin: e.Origin,
		Scope: e.Scope, Path: e.Path, Status: "ok", ModelInvocable: !e.DisableModelInvocation, UserInvocable: e.UserInvocable}
	if !e.Verbatim || !e.HasOwnName {
		s.Status = "degraded"
	}
	return s
}

func (a *app) printList(snap *catalog.Snapshot, skills []listedSkill) {
	if snap.Disabled {
		fmt.Fprintln(a.Stdout, "Skills are disabled (skills.enabled: false). See: loadout config show")
		return
	}
	if len(skills) == 0 && a.ProfileName != "" {
		fmt.Fprintf(a.Stdout, "No skills of profile %s found. To list all skills: loadout list%s\n", plain(a.ProfileName), a.SkillFlags())
		return
	}
	if len(skills) == 0 {
		fmt.Fprintf(a.Stdout, "No skills yet. Create one with: loadout new NAME; or see the searched directories: loadout doctor%s\n", a.SkillFlags())
		return
	}
	a.PrintTable("", a.skillRows(skills, len(skillOrigins(skills)) > 1 || a.TerminalWidth() == 0))
}

// printListFooter prints counts and next steps below the list.
func (a *app) printListFooter(snap *catalog.Snapshot, skills []listedSkill, newer []availableUpdate) {
	if a.Quiet || len(skills) == 0 {
		return
	}
	if n := len(snap.Shadowed()); n > 0 {
		fmt.Fprintf(a.Stderr, "%s shadowed by others of the same name: loadout explain NAME%s\n", map[bool]string{true: "1 skill is", false: console.Pluralize(n, "skill") + " are"}[n == 1], a.SkillFlags())
	}
	if len(newer) > 0 {
		fmt.Fprintf(a.Stderr, "%s: %s. To install: loadout update\n", formatUpdateCount(newer), formatUpdateNames(newer))
	}
	if console.IsTerminal(a.Stdout) && console.IsTerminal(a.Stderr) {
		from := skills[0].Origin
		if n := len(skillOrigins(skills)); n > 1 {
			from = console.Pluralize(n, "source")
		}
		fmt.Fprintf(a.Stderr, "\n%s from %s. To read one: loadout show NAME%s\n", console.Pluralize(len(skills), "skill"), from, a.SkillFlags())
	}
}

func skillOrigins(skills []listedSkill) map[string]bool {
	origins := map[string]bool{}
	for _, s := range skills {
		origins[s.Origin] = true
	}
	return origins
}

func (a *app) skillRows(skills []listedSkill, origin bool) [][]string {
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
			row = append(row, console.Pluralize(*s.Files, "file"), scripts)
			if a.TerminalWidth() == 0 {
				row = append(row, s.Digest)
			}
		}
		rows = append(rows, append(row, describe(s.Description)))
	}
	return rows
}
