package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/skill"
)

// applyOutput is the output of loadout apply --json.
type applyOutput struct {
	Hub     string        `json:"hub"`
	DryRun  bool          `json:"dry_run"`
	Saved   bool          `json:"kept"`
	Changes []applyChange `json:"changes"`
}

// applyChange is the result for one document.
type applyChange struct {
	File      string             `json:"file"`
	Line      int                `json:"line"`
	Kind      string             `json:"kind"`
	Namespace string             `json:"namespace"`
	Name      string             `json:"name"`
	Outcome   string             `json:"outcome"`
	Diff      []applyField       `json:"diff"`
	Findings  []skill.Diagnostic `json:"findings"`
}

type applyField struct {
	Path string `json:"path"`
	Old  string `json:"old,omitempty"`
	New  string `json:"new,omitempty"`
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
		Long: `Create or update the resources of a hub from documents: Skill, Ghost, Bot, Team, Model
and MCPServer, as YAML (several per file) or JSON. Either all documents are applied or
none. Applying them again changes nothing. Wegent documents are accepted as they are;
documents of other kinds are skipped.

  kind: Ghost
  metadata: {name: analyst}
  spec:
    systemPrompt: You read numbers.
    skills: [spreadsheets]

metadata.namespace selects the owner of a resource: you by default, a group, or
everyone with public. LOADOUT_HUB names the hub; by default it is the hub on this
machine. LOADOUT_HUB_TOKEN authenticates you.`,
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
	hub, err := a.newHubClient(o.hub)
	if err != nil {
		return err
	}
	docs, err := a.readDocuments(o.files)
	if err != nil {
		return err
	}
	path := "/apply"
	if o.dry {
		path += "?dry=true"
	}
	answer, err := hub.send(ctx, "POST", path, docs.kind, docs.text)
	if err != nil {
		return err
	}
	out := applyOutput{Hub: hub.baseURL.String(), DryRun: o.dry}
	if err := json.Unmarshal(answer.body, &out); err != nil || out.Changes == nil { // an error response may contain changes too
		if err := answer.decode(&out); err != nil {
			return err
		}
	}
	for i := range out.Changes {
		docs.locateChange(&out.Changes[i])
	}
	if a.JSON {
		if out.Changes == nil {
			out.Changes = []applyChange{}
		}
		if err := a.PrintJSON(out); err != nil {
			return err
		}
	} else {
		a.printApplied(out)
	}
	switch {
	case answer.status == 403:
		return answer.problemError()
	case answer.status >= 300 || out.counts()["refused"] > 0:
		return exit.Reported
	}
	return nil
}

// documents is the content of several files joined into one text.
type documents struct {
	text   []byte
	kind   string   // media type
	files  []string // display names
	begins []int    // for each file, the number of lines in text before it
}

// readDocuments reads and joins files. Several files become one YAML stream;
// JSON documents are valid parts of it.
func (a *app) readDocuments(files []string) (*documents, error) {
	out := &documents{kind: "application/yaml"}
	var b strings.Builder
	line, stdin := 0, false
	for i, name := range files {
		if name == "-" && stdin {
			return nil, exit.Errorf(exit.Usage, "name - only once", "standard input given twice")
		}
		stdin = stdin || name == "-"
		data, err := a.readDocument(name)
		if err != nil {
			return nil, err
		}
		text := strings.TrimPrefix(string(data), "\ufeff")
		if len(files) == 1 && strings.HasSuffix(strings.ToLower(name), ".json") {
			out.kind = "application/json"
		}
		if i > 0 { // ends the previous document, however it ends
			between := "\n...\n---\n"
			if strings.HasPrefix(text, "%") { // a directive must come before the document start
				between = "\n...\n"
			}
			b.WriteString(between)
			line += strings.Count(between, "\n")
		}
		if name == "-" {
			name = "standard input"
		}
		out.files, out.begins = append(out.files, name), append(out.begins, line)
		b.WriteString(text)
		line += strings.Count(text, "\n")
	}
	out.text = []byte(b.String())
	return out, nil
}

func (a *app) readDocument(name string) ([]byte, error) {
	const most = 1 << 20 // limit of the hub
	in := a.Stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			code, hint := exit.FileHint(err, "the path given with -f")
			return nil, exit.Errorf(code, hint, "%s: %w", name, exit.FileCause(err))
		}
		defer f.Close()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, most+1))
	if err != nil {
		return nil, exit.Errorf(exit.Failure, "name a file, not a directory", "read %s: %w", name, exit.FileCause(err))
	}
	if len(data) > most {
		return nil, exit.Errorf(exit.Failure, "split it into several files", "%s is larger than %s", name, console.FormatSize(most))
	}
	if len(strings.TrimSpace(string(data))) == 0 {
		if name == "-" {
			return nil, exit.Errorf(exit.Failure, "see: loadout apply --help", "standard input has no documents")
		}
		return nil, exit.Errorf(exit.Failure, "see: loadout apply --help", "%s has no documents", name)
	}
	return data, nil
}

// locateChange sets the file of a change and makes its line numbers relative to
// that file.
func (d *documents) locateChange(c *applyChange) {
	at := 0
	for i, before := range d.begins {
		if c.Line > before {
			at = i
		}
	}
	c.File, c.Line = d.files[at], max(c.Line-d.begins[at], 0)
	for i := range c.Findings {
		if f := &c.Findings[i]; f.Line > d.begins[at] {
			f.Line -= d.begins[at]
		}
	}
	if c.Diff == nil {
		c.Diff = []applyField{}
	}
	if c.Findings == nil {
		c.Findings = []skill.Diagnostic{}
	}
}

func (o *applyOutput) counts() map[string]int {
	out := map[string]int{}
	for _, c := range o.Changes {
		out[c.Outcome]++
	}
	return out
}

// printApplied prints a line for each document, its changes and findings, and a
// summary.
func (a *app) printApplied(o applyOutput) {
	for _, c := range o.Changes {
		style := map[string]func(string) string{"created": a.Green, "updated": a.Green, "refused": a.Red}[c.Outcome]
		if style == nil {
			style = a.Faint
		}
		fmt.Fprintf(a.Stdout, "%s %s\n", style(fmt.Sprintf("%-9s", plain(c.Outcome))), a.Bold(plain(c.title())))
		a.printFieldChanges(c)
		for _, f := range c.Findings {
			if f.Severity != skill.Info {
				a.printDocumentFinding(c, f)
			}
		}
	}
	fmt.Fprintln(a.Stdout, o.summary())
}

func (c applyChange) title() string {
	parts := []string{c.Kind, c.Namespace, c.Name}
	if c.Namespace == "" {
		parts = []string{c.Kind, c.Name}
	}
	if c.Name == "" {
		return strings.TrimSpace(fmt.Sprintf("%s (%s:%d)", c.Kind, c.File, max(c.Line, 1)))
	}
	return strings.Join(parts, "/")
}

// printFieldChanges prints the changed fields of an updated resource.
func (a *app) printFieldChanges(c applyChange) {
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

func (a *app) printDocumentFinding(c applyChange, f skill.Diagnostic) {
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
