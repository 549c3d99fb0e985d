package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout/internal/clientconfig"
	"github.com/loadout-dev/loadout/internal/clientimport"
	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/setup"
	"github.com/loadout-dev/loadout/policy"
)

type importFlags struct {
	file                    string
	undo, dryRun, keep, yes bool
	allProjects             bool
}

// importOutput is the JSON output of the import command.
type importOutput struct {
	Client  string                     `json:"client"`
	File    string                     `json:"file"`
	Action  string                     `json:"action"`  // none, import or undo
	Done    bool                       `json:"done"`    // false with --dry-run and for the action none
	Servers []clientimport.Server      `json:"servers"` // servers in the client's configuration
	Secrets []clientimport.MovedSecret `json:"secrets"` // values moved to secrets, or to be set by the user
	Into    string                     `json:"into"`    // the user's servers file
	Backup  string                     `json:"backup,omitempty"`
	Notes   []string                   `json:"notes"`
	Next    []string                   `json:"next"` // commands for the user to run
	Diff    string                     `json:"diff,omitempty"`
}

func (a *app) importCommand() *cobra.Command {
	var o importFlags
	cmd := &cobra.Command{
		Use:   "import CLIENT",
		Short: "Import the MCP servers of a client",
		Long: fmt.Sprintf(`Import the MCP servers configured in a client into %s beside your configuration.
In the client, a single entry for Loadout replaces them and provides their tools.

The changes are shown first. The client's file is backed up, and nothing else in it
changes. Tokens move to secrets, in a file that only you can read. Logins stay with the
client; servers that need one are listed. From Claude Code, the servers of the current
project (added with "claude mcp add") are imported too, or those of all projects with
--all-projects. Running import again adds new servers; --undo restores the file.

The backup contains the tokens in clear text and is readable only by you. Delete it
when everything works; --undo deletes it after restoring everything. import asks for
confirmation on a terminal. It does not ask with --yes or --json, or if standard input
is not a terminal. It refuses if an agent runs it, or if it has no controlling terminal.

Clients: %s.`, setup.ServersFileName, strings.Join(clientconfig.ImportNames(), ", ")),
		Example: `  loadout import claude-code --dry-run
  loadout import claude-code --all-projects
  loadout import cursor
  loadout import vscode --keep          do not change the client's file
  loadout import codex --undo`,
		Args: argCount(1, 1, "the name of a CLIENT: "+strings.Join(clientconfig.ImportNames(), ", ")),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return clientconfig.ImportNames(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkExclusive(cmd, "keep", "undo"); err != nil {
				return err
			}
			if err := checkExclusive(cmd, "all-projects", "undo"); err != nil {
				return err
			}
			return a.importClient(cmd.Context(), args[0], o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.file, "file", "", "read `FILE` instead of the client's default file")
	f.BoolVar(&o.undo, "undo", false, "undo earlier imports from this client")
	f.BoolVar(&o.dryRun, "dry-run", false, "show the changes without applying them")
	f.BoolVar(&o.keep, "keep", false, "do not change the client's file")
	f.BoolVar(&o.allProjects, "all-projects", false, "import the servers of all projects (claude-code)")
	f.BoolVarP(&o.yes, "yes", "y", false, "do not ask for confirmation")
	return cmd
}

// importRun holds the state of one import.
type importRun struct {
	app    *app
	flags  importFlags
	client clientconfig.Client
	out    importOutput

	presence string // evidence that the user runs the import
}

func (a *app) importClient(ctx context.Context, name string, o importFlags) error {
	c, err := clientconfig.Lookup(name)
	if err != nil {
		return exit.Errorf(exit.Usage, "known clients: "+strings.Join(clientconfig.ImportNames(), ", "), "unknown client %q", name)
	}
	if !c.Importable {
		return exit.Errorf(exit.Usage, "to connect it: loadout connect "+c.Name, "cannot import servers from %s; clients: %s", c.Title, strings.Join(clientconfig.ImportNames(), ", "))
	}
	im := &importRun{app: a, flags: o, client: c}
	from, err := im.open()
	if err != nil {
		return err
	}
	plan, err := im.plan(from)
	if err != nil {
		return im.explain(err)
	}
	im.setOutput(from.File(), plan)
	if do, err := im.confirm(ctx); !do || err != nil {
		return err
	}
	if err := plan.Apply(ctx); err != nil {
		return im.explain(err)
	}
	im.out.Done = true
	if err := im.recordAudit(ctx, plan); err != nil {
		return err
	}
	return im.printResult(plan.Next)
}

// open opens the client's file and the user's servers.
func (im *importRun) open() (*clientimport.Importer, error) {
	a := im.app
	if im.out.Into = a.ServersFile(); im.out.Into == "" || a.StateDir() == "" {
		return nil, exit.Errorf(exit.Failure, "set HOME, or XDG_CONFIG_HOME and LOADOUT_STATE", "no directory for the servers file")
	}
	store, err := a.SecretStore()
	if err != nil {
		return nil, err
	}
	from, err := clientimport.Open(clientimport.Options{Target: a.clientTarget(im.client, clientconfig.User, im.flags.file),
		ServersFile: im.out.Into, RecordDir: filepath.Join(a.StateDir(), "imports"), Secrets: store})
	if err != nil {
		return nil, im.explain(err)
	}
	return from, nil
}

func (im *importRun) plan(from *clientimport.Importer) (*clientimport.Plan, error) {
	if im.flags.undo {
		return from.PlanUndo()
	}
	entry, err := im.app.clientEntry(connectOptions{name: clientconfig.DefaultName})
	if err != nil {
		return nil, err
	}
	entry = im.client.WithVariables(entry, im.app.clientEnvironment())
	return from.PlanImport(clientimport.Selection{Entry: entry, AllProjects: im.flags.allProjects, KeepFile: im.flags.keep})
}

// explain adds the next step to an error from the import.
func (im *importRun) explain(err error) error {
	e, ok := errors.AsType[*clientimport.Error](err)
	if !ok {
		return err
	}
	switch e.Part {
	case clientimport.ClientFile:
		return connectError(im.client, connectOptions{undo: true}, e.Err)
	case clientimport.SecretStore:
		return im.app.secretError(e.Err)
	case clientimport.Projects:
		return exit.Errorf(exit.Usage, "omit --all-projects", "%w", err)
	}
	hint := map[clientimport.Part]string{
		clientimport.ServersFile: "fix the file, or move it away, and try again",
		clientimport.Record:      "move it away; --undo is not possible then",
		clientimport.Backup:      "delete it yourself",
	}[e.Part]
	return exit.Errorf(exit.Failure, hint, "%w", err)
}

// setOutput sets the JSON output according to the plan.
func (im *importRun) setOutput(file string, p *clientimport.Plan) {
	o := &im.out
	o.Client, o.File, o.Action, o.Backup, o.Diff = im.client.Name, file, p.Action, p.Backup, p.Diff
	o.Servers, o.Secrets = append([]clientimport.Server{}, p.Servers...), append([]clientimport.MovedSecret{}, p.Secrets...)
	o.Notes, o.Next = []string{}, []string{}
	if p.OtherServers > 0 {
		o.Notes = append(o.Notes, fmt.Sprintf("other projects have %s; to import them: loadout import %s --all-projects%s",
			console.Pluralize(p.OtherServers, "server"), im.client.Name, im.fileFlag()))
	}
	o.Notes = append(o.Notes, p.Notes...)
	for _, name := range p.Unset {
		o.Next = append(o.Next, "loadout secret set "+name)
	}
	for _, s := range p.Servers {
		if s.Login && s.State == clientimport.Added {
			o.Next = append(o.Next, "loadout servers login "+console.ShellQuote(s.As))
		}
	}
	if slices.ContainsFunc(p.Servers, func(s clientimport.Server) bool { return s.State == clientimport.Added }) {
		o.Notes = append(o.Notes, "agents see which tools a new server has after its first connection; `loadout servers` connects to all")
		o.Next = append(o.Next, "loadout servers")
	}
}

// confirm prints the planned changes and reports whether to apply them.
func (im *importRun) confirm(ctx context.Context) (bool, error) {
	a := im.app
	idle := im.out.Action == "none"
	if !idle && !im.flags.dryRun {
		var err error
		if im.presence, err = a.RequireUser(ctx, "", im.command()...); err != nil {
			return false, err
		}
	}
	if a.JSON {
		if idle || im.flags.dryRun {
			return false, a.PrintJSON(im.out)
		}
	} else {
		im.printPlan()
	}
	if idle || im.flags.dryRun {
		return false, nil
	}
	yes, err := a.ConfirmUser(ctx, setup.Confirmation{Question: "Apply these changes?", Show: im.printPlan, Args: im.command(), Ask: true, Yes: im.flags.yes})
	if err == nil && !yes {
		err = exit.Errorf(exit.Refused, "to see the changes again: loadout import "+im.client.Name+" --dry-run", "Cancelled. Nothing was changed.")
	}
	return yes, err
}

func (im *importRun) printPlan() {
	a := im.app
	fmt.Fprintf(a.Stdout, "%s: %s\n", im.client.Title, plain(im.out.File))
	var rows [][]string
	for _, s := range im.out.Servers {
		rows = append(rows, []string{s.Name, s.Transport, describeImport(s)})
	}
	a.PrintTable("  ", rows)
	for _, m := range im.out.Secrets {
		fmt.Fprintf(a.Stdout, "  %s of %s: move to the secret %s\n", plain(m.Where), plain(m.Server), m.Secret)
	}
	if im.out.Action == "none" {
		fmt.Fprintln(a.Stdout, "Nothing to do.")
	} else if im.out.Diff != "" {
		fmt.Fprintf(a.Stdout, "\n%s\n", safe(im.out.Diff))
	}
	var b strings.Builder
	for _, n := range im.out.Notes {
		a.WriteWrapped(&b, "", "Note: "+n, console.NoStyle)
	}
	fmt.Fprint(a.Stdout, b.String())
}

// describeImport describes what the import does with a server.
func describeImport(s clientimport.Server) string {
	what := s.State
	switch {
	case s.State == clientimport.Added && s.As != s.Name:
		what = "import as " + s.As
	case s.State == clientimport.Added:
		what = "import"
	case s.State == clientimport.Present:
		what = "is in " + setup.ServersFileName + " already"
	case s.State == clientimport.Skipped:
		what = "skip: " + strings.Join(s.Problems, "; ")
	case s.State == clientimport.Removed:
		what = "remove"
	case s.State == clientimport.Kept:
		what = "changed since, or used by another client; kept in " + setup.ServersFileName
	}
	if s.Project != "" {
		what += ", project " + s.Project
	}
	if len(s.Problems) > 0 && s.State != clientimport.Skipped {
		what += "; " + strings.Join(s.Problems, "; ")
	}
	return what
}

// recordAudit records the import in the audit log.
func (im *importRun) recordAudit(ctx context.Context, p *clientimport.Plan) error {
	action := "import"
	if im.flags.undo {
		action = "import-undo"
	}
	return im.app.Record(ctx, policy.Record{Action: action, Name: im.client.Name,
		Details: map[string]string{"file": im.out.File, "servers": strings.Join(p.ChangedServers(), " "), "presence": im.presence}})
}

// printResult prints what the user has to do next. restart describes how the
// client notices the change.
func (im *importRun) printResult(restart string) error {
	a := im.app
	if a.JSON {
		return a.PrintJSON(im.out)
	}
	fmt.Fprintln(a.Stdout, "Done.")
	if im.out.Backup != "" {
		fmt.Fprintf(a.Stdout, "Backup: %s. To undo: loadout import %s --undo%s\n", plain(im.out.Backup), im.client.Name, im.fileFlag())
		fmt.Fprintln(a.Stdout, "The backup contains tokens in clear text. Delete it when everything works; --undo deletes it too.")
	}
	for _, n := range im.out.Next {
		fmt.Fprintf(a.Stdout, "Next: %s\n", plain(n))
	}
	if restart != "" {
		fmt.Fprintf(a.Stdout, "Now %s.\n", plain(restart))
	}
	return nil
}

// command returns the arguments of the import as the user would type them.
func (im *importRun) command() []string {
	out := []string{"import", im.client.Name}
	for _, f := range []struct {
		set  bool
		name string
	}{{im.flags.allProjects, "--all-projects"}, {im.flags.keep, "--keep"}, {im.flags.undo, "--undo"}} {
		if f.set {
			out = append(out, f.name)
		}
	}
	if im.flags.file != "" {
		out = append(out, "--file", im.flags.file)
	}
	return out
}

func (im *importRun) fileFlag() string {
	if im.flags.file == "" {
		return ""
	}
	return " --file " + console.ShellQuote(im.flags.file)
}
