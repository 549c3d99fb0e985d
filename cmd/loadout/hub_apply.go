package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/hubclient"
	"github.com/loadout-dev/loadout/skill"
)

// applyOutput is the JSON output of the apply command.
type applyOutput struct {
	Hub     string             `json:"hub"`
	DryRun  bool               `json:"dry_run"`
	Saved   bool               `json:"kept"`
	Changes []hubclient.Change `json:"changes"`
}

type applyFlags struct {
	files []string
	dry   bool
	hub   string
}

func (a *app) applyCommand() *cobra.Command {
	var o applyFlags
	cmd := &cobra.Command{
		Use:   "apply -f FILE",
		Short: "Create or update hub resources from files",
		Long: `Create or update hub resources from documents of the kinds Skill, Ghost, Bot, Team,
Model and MCPServer. A file contains one or more YAML documents, or JSON. Either all
documents are applied, or none. Applying them again changes nothing. Wegent documents
are accepted unchanged; documents of other kinds are skipped.

  kind: Ghost
  metadata: {name: analyst}
  spec:
    systemPrompt: You analyze spreadsheets.
    skills: [spreadsheets]

metadata.namespace is the owner of a resource: the name of a group, or public for
everyone. By default, you own the resource. LOADOUT_HUB is the URL of the hub; the
default is the hub on this machine. LOADOUT_HUB_TOKEN is your access token.`,
		Example: "  loadout apply -f team.yaml --dry-run      show the changes\n  loadout apply -f ghosts.yaml -f bots.yaml --hub https://hub.example.com\n  cat team.yaml | loadout apply -f -",
		Args:    argCount(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.applyDocuments(cmd.Context(), o) },
	}
	f := cmd.Flags()
	f.StringArrayVarP(&o.files, "file", "f", nil, "read documents from `FILE`, or from standard input with - (repeatable)")
	f.BoolVar(&o.dry, "dry-run", false, "show the changes without applying them")
	f.StringVar(&o.hub, "hub", "", "`URL` of the hub; default: LOADOUT_HUB")
	return cmd
}

func (a *app) applyDocuments(ctx context.Context, o applyFlags) error {
	if len(o.files) == 0 {
		return exit.Errorf(exit.Usage, "loadout apply -f FILE", "no file given")
	}
	hub, err := hubclient.New(cmp.Or(o.hub, a.Getenv("LOADOUT_HUB"), hubclient.DefaultAddress), a.Getenv("LOADOUT_HUB_TOKEN"))
	if err != nil {
		return err
	}
	docs, err := hubclient.ReadDocuments(o.files, a.Stdin)
	if err != nil {
		return err
	}
	path := "/apply"
	if o.dry {
		path += "?dry=true"
	}
	answer, err := hub.Send(ctx, "POST", path, docs.Kind, docs.Text)
	if err != nil {
		return err
	}
	out := applyOutput{Hub: hub.Address(), DryRun: o.dry}
	if err := json.Unmarshal(answer.Body, &out); err != nil || out.Changes == nil { // even an error response can contain changes
		if err := answer.Decode(&out); err != nil {
			return err
		}
	}
	for i := range out.Changes {
		docs.Locate(&out.Changes[i])
	}
	if a.JSON {
		if out.Changes == nil {
			out.Changes = []hubclient.Change{}
		}
		if err := a.PrintJSON(out); err != nil {
			return err
		}
	} else {
		a.printApplied(out)
	}
	switch {
	case answer.Status == 403:
		return answer.Err()
	case answer.Status >= 300 || out.counts()["refused"] > 0:
		return exit.Reported
	}
	return nil
}

func (o *applyOutput) counts() map[string]int {
	out := map[string]int{}
	for _, c := range o.Changes {
		out[c.Outcome]++
	}
	return out
}

// printApplied prints each document with its changes and findings, and a
// summary.
func (a *app) printApplied(o applyOutput) {
	for _, c := range o.Changes {
		style := map[string]func(string) string{"created": a.Green, "updated": a.Green, "refused": a.Red}[c.Outcome]
		if style == nil {
			style = a.Faint
		}
		fmt.Fprintf(a.Stdout, "%s %s\n", style(fmt.Sprintf("%-9s", plain(c.Outcome))), a.Bold(plain(c.Title())))
		a.printFieldChanges(c)
		for _, f := range c.Findings {
			if f.Severity != skill.Info {
				a.printDocumentFinding(c, f)
			}
		}
	}
	fmt.Fprintln(a.Stdout, o.summary())
}

// printFieldChanges prints the changed fields of an updated resource.
func (a *app) printFieldChanges(c hubclient.Change) {
	if c.Outcome != "updated" {
		return
	}
	for _, f := range c.Diff {
		if f.Old != "" {
			fmt.Fprintln(a.Stdout, "  "+a.Red("- "+plain(f.Path)+": "+plain(f.Old)))
		}
		if f.New != "" {
			fmt.Fprintln(a.Stdout, "  "+a.Green("+ "+plain(f.Path)+": "+plain(f.New)))
		}
	}
}

func (a *app) printDocumentFinding(c hubclient.Change, f skill.Diagnostic) {
	fmt.Fprintf(a.Stdout, "  %s:%d:%d: %s: %s [%s]\n", plain(c.File), max(cmp.Or(f.Line, c.Line), 1), max(f.Column, 1), plain(string(f.Severity)), plain(f.Message), plain(f.Code))
	if f.Fix != "" {
		fmt.Fprintf(a.Stdout, "      %s\n", plain(f.Fix))
	}
}

func (o *applyOutput) summary() string {
	n := o.counts()
	var parts []string
	for _, outcome := range []string{"created", "updated", "unchanged", "skipped", "refused"} {
		if n[outcome] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n[outcome], outcome))
		}
	}
	all := console.Pluralize(len(o.Changes), "document")
	if len(parts) > 0 {
		all += ": " + strings.Join(parts, ", ")
	}
	switch {
	case n["refused"] > 0:
		return all + ". Nothing was changed."
	case o.DryRun:
		return all + ". Dry run: nothing was changed."
	}
	return all + "."
}
