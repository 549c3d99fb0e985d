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

	"github.com/loadout-dev/loadout/skill"
)

// applyOutput is what loadout apply --json prints.
type applyOutput struct {
	Hub     string        `json:"hub"`
	DryRun  bool          `json:"dry_run"`
	Kept    bool          `json:"kept"`
	Changes []applyChange `json:"changes"`
}

// applyChange is what came of one document.
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
		Short: "Make Ghosts, Bots, Teams and the like on a hub what files say",
		Long: `Make on a hub what the documents in files say: Skill, Ghost, Bot, Team, Model and
MCPServer, as YAML, several in a file, or JSON. All of it is applied or, where one
document is refused, nothing; applied again, nothing changes. Documents of Wegent
are read as they are; those of other kinds are passed over.

  kind: Ghost
  metadata: {name: analyst}
  spec:
    systemPrompt: You read numbers.
    skills: [spreadsheets]

A document is yours, or that of the group, or of everybody with public, that its
metadata.namespace names. The hub is that of LOADOUT_HUB, or one on this machine;
LOADOUT_HUB_TOKEN says who you are.`,
		Example: "  loadout apply -f team.yaml --dry-run      what would change\n  loadout apply -f ghosts.yaml -f bots.yaml --hub https://hub.example.com\n  cat team.yaml | loadout apply -f -",
		Args:    want(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.apply(cmd.Context(), o) },
	}
	f := cmd.Flags()
	f.StringArrayVarP(&o.files, "file", "f", nil, "the documents in `FILE`; - is standard input (repeatable)")
	f.BoolVar(&o.dry, "dry-run", false, "only say what would be done")
	f.StringVar(&o.hub, "hub", "", "the `URL` of the hub, instead of LOADOUT_HUB")
	return cmd
}

func (a *app) apply(ctx context.Context, o applyFlags) error {
	if len(o.files) == 0 {
		return fail(exitUsage, "as: loadout apply -f FILE", "apply needs a file")
	}
	hub, err := a.hub(o.hub)
	if err != nil {
		return err
	}
	docs, err := a.documents(o.files)
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
	out := applyOutput{Hub: hub.at.String(), DryRun: o.dry}
	if err := json.Unmarshal(answer.body, &out); err != nil || out.Changes == nil { // an error may have changes too
		if err := answer.into(&out); err != nil {
			return err
		}
	}
	for i := range out.Changes {
		docs.place(&out.Changes[i])
	}
	if a.json {
		if out.Changes == nil {
			out.Changes = []applyChange{}
		}
		if err := a.printJSON(out); err != nil {
			return err
		}
	} else {
		a.showApplied(out)
	}
	switch {
	case answer.status == 403:
		return answer.problem()
	case answer.status >= 300 || out.counts()["refused"] > 0:
		return errFound
	}
	return nil
}

// documents are files as one text.
type documents struct {
	text   []byte
	kind   string   // of media
	files  []string // as they are called
	begins []int    // the line of text before that with which each begins
}

// documents reads files. Of several one stream of YAML is made, of which the documents of
// JSON are a part as well.
func (a *app) documents(files []string) (*documents, error) {
	out := &documents{kind: "application/yaml"}
	var b strings.Builder
	line, stdin := 0, false
	for i, name := range files {
		if name == "-" && stdin {
			return nil, fail(exitUsage, "give -f - once", "standard input is named twice")
		}
		stdin = stdin || name == "-"
		data, err := a.documentFile(name)
		if err != nil {
			return nil, err
		}
		text := strings.TrimPrefix(string(data), "\ufeff")
		if len(files) == 1 && strings.HasSuffix(strings.ToLower(name), ".json") {
			out.kind = "application/json"
		}
		if i > 0 { // the end of what was before, whatever it ends with
			between := "\n...\n---\n"
			if strings.HasPrefix(text, "%") { // a directive, which is before the beginning
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

func (a *app) documentFile(name string) ([]byte, error) {
	const most = 1 << 20 // as a hub reads
	in := a.stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			code, hint := missing(err, "the path given with -f")
			return nil, fail(code, hint, "%s: %w", name, reason(err))
		}
		defer f.Close()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, most+1))
	if err != nil {
		return nil, fail(exitFound, "name a file, not a directory", "read %s: %w", name, reason(err))
	}
	if len(data) > most {
		return nil, fail(exitFound, "apply it in parts", "%s has more than %s", name, sized(most))
	}
	if len(strings.TrimSpace(string(data))) == 0 {
		if name == "-" {
			return nil, fail(exitFound, "send documents to it; see: loadout apply --help", "standard input is empty")
		}
		return nil, fail(exitFound, "write documents into it; see: loadout apply --help", "%s is empty", name)
	}
	return data, nil
}

// place says of a change in which file it is.
func (d *documents) place(c *applyChange) {
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

// showApplied prints a line for each document, what changes below it, and what came of
// all of it.
func (a *app) showApplied(o applyOutput) {
	for _, c := range o.Changes {
		style := map[string]func(string) string{"created": a.green, "updated": a.green, "refused": a.red}[c.Outcome]
		if style == nil {
			style = a.faint
		}
		fmt.Fprintf(a.stdout, "%s %s\n", style(fmt.Sprintf("%-9s", plain(c.Outcome))), a.bold(plain(c.title())))
		a.showFields(c)
		for _, f := range c.Findings {
			if f.Severity != skill.Info {
				a.showFinding(c, f)
			}
		}
	}
	fmt.Fprintln(a.stdout, o.summary())
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

// showFields prints what of a thing that was there is another.
func (a *app) showFields(c applyChange) {
	if c.Outcome != "updated" {
		return
	}
	for _, f := range c.Diff {
		if f.Old != "" {
			fmt.Fprintln(a.stdout, "  "+a.red("- "+plain(f.Path)+": "+plain(f.Old)))
		}
		if f.New != "" {
			fmt.Fprintln(a.stdout, "  "+a.green("+ "+plain(f.Path)+": "+plain(f.New)))
		}
	}
}

func (a *app) showFinding(c applyChange, f skill.Diagnostic) {
	fmt.Fprintf(a.stdout, "  %s:%d:%d: %s: %s [%s]\n", plain(c.File), max(cmp.Or(f.Line, c.Line), 1), max(f.Column, 1), plain(string(f.Severity)), plain(f.Message), plain(f.Code))
	if f.Fix != "" {
		fmt.Fprintf(a.stdout, "      %s\n", plain(f.Fix))
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
	all := counted(len(o.Changes), "document")
	if len(parts) > 0 {
		all += ": " + strings.Join(parts, ", ")
	}
	switch {
	case n["refused"] > 0:
		return all + ". Nothing was changed."
	case o.DryRun:
		return all + ". It was a dry run: nothing was changed."
	}
	return all + "."
}
