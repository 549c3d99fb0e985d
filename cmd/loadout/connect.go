package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout/internal/client"
	"github.com/loadout-dev/loadout/internal/config"
)

type connectOptions struct {
	scope, name, url, file, command string
	print, undo, yes                bool
}

type connectOutput struct {
	Client string        `json:"client"`
	File   string        `json:"file"`
	Action client.Action `json:"action"`
	Entry  string        `json:"entry,omitempty"` // with --print
	Backup string        `json:"backup,omitempty"`
	Notes  []string      `json:"notes,omitempty"`
	Diff   string        `json:"diff,omitempty"`
}

func (a *app) connectCommand() *cobra.Command {
	var o connectOptions
	cmd := &cobra.Command{
		Use:   "connect CLIENT",
		Short: "Write Loadout into an MCP client's configuration",
		Long: fmt.Sprintf(`Write an entry for Loadout into the configuration file of an MCP client. The
change is shown first, and a backup is kept; everything else in the file stays as
it is. Running it again changes nothing; --undo takes the entry out.

It asks before it writes where a person can answer, which is on a terminal and
without --json and --yes. The entry starts this program with the --skills and
--config given here.

Clients: %s.`, strings.Join(client.Names(), ", ")),
		Example: `  loadout connect claude-code
  loadout connect cursor --scope project
  loadout connect vscode --url http://127.0.0.1:8485/mcp
  loadout connect codex --print
  loadout connect gemini --undo`,
		Args: want(1, 1, "the name of a CLIENT: "+strings.Join(client.Names(), ", ")),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return client.Names(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, pair := range [][2]string{{"print", "undo"}, {"url", "command"}, {"url", "skills"}, {"url", "config"}, {"file", "scope"}} {
				if err := exclusive(cmd, pair[0], pair[1]); err != nil {
					return err
				}
			}
			return a.connect(cmd.Context(), args[0], o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.scope, "scope", "", "for you in every project (user) or for everybody in this one (project)")
	f.StringVar(&o.name, "name", client.DefaultName, "`NAME` of the entry")
	f.StringVar(&o.url, "url", "", "connect over HTTP to a server that runs already, at `URL`")
	f.StringVar(&o.command, "command", "", "the `PATH` that the client starts; default: this program")
	f.StringVar(&o.file, "file", "", "edit this `FILE` instead of the client's usual one")
	f.BoolVar(&o.print, "print", false, "only print the entry, to paste by hand")
	f.BoolVar(&o.undo, "undo", false, "take the entry out again")
	f.BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	complete(cmd, "scope", string(client.User), string(client.Project))
	return cmd
}

func (a *app) connect(ctx context.Context, name string, o connectOptions) error {
	c, err := client.Lookup(name)
	if err != nil {
		hint := "the clients: " + strings.Join(client.Names(), ", ")
		for _, n := range client.Names() {
			if distance(strings.ToLower(name), n) <= 2 || strings.HasPrefix(n, strings.ToLower(name)) {
				hint = "did you mean: loadout connect " + n + "? " + hint
				break
			}
		}
		return fail(exitUsage, hint, "%q is not a client that Loadout knows", name)
	}
	var entry client.Entry
	if !o.undo {
		if entry, err = a.clientEntry(o); err != nil {
			return err
		}
	}
	if o.print {
		return a.printEntry(c, entry)
	}
	change, err := a.planConnect(c, entry, o)
	if err != nil {
		return err
	}
	return a.applyConnect(ctx, c, change, o)
}

// printEntry prints the entry to paste by hand.
func (a *app) printEntry(c client.Client, entry client.Entry) error {
	text, err := client.Snippet(c, entry)
	if err != nil {
		return fail(exitUsage, "see: loadout connect --help", "%w", err)
	}
	if a.json {
		return a.printJSON(connectOutput{Client: c.Name, Action: client.None, Entry: text})
	}
	fmt.Fprint(a.stdout, safe(text))
	return nil
}

func (a *app) planConnect(c client.Client, entry client.Entry, o connectOptions) (*client.Change, error) {
	dir, err := os.Getwd()
	if err != nil {
		dir = "" // what needs it says so
	}
	target := client.Target{Client: c, Scope: client.Scope(o.scope), File: o.file,
		Place: client.Place{OS: runtime.GOOS, Home: a.home(), Dir: dir, Getenv: a.getenv}}
	var change *client.Change
	if o.undo {
		change, err = client.PlanUndo(target, o.name)
	} else {
		change, err = client.Plan(target, entry)
	}
	switch {
	case errors.Is(err, client.ErrUnsupported):
		return nil, fail(exitUsage, "see: loadout connect --help", "%w", err)
	case err != nil:
		return nil, connectFailed(c, o, err)
	}
	return change, nil
}

// connectFailed ends an error about a client's file in the next step, which
// the error may have itself.
func connectFailed(c client.Client, o connectOptions, err error) error {
	hint := "nothing was changed; or paste it by hand: loadout connect " + c.Name + " --print"
	if o.undo {
		hint = "nothing was changed; or take it out of the file by hand"
	}
	if fe, ok := errors.AsType[*client.FileError](err); ok {
		hint = fe.Fix + "; " + hint
		at := fe.File
		if fe.Line > 0 {
			at = fmt.Sprintf("%s:%d:%d", fe.File, fe.Line, fe.Column)
		}
		err = fmt.Errorf("%s: %s", at, fe.Problem)
	}
	return fail(exitFound, hint, "%w", err)
}

func (a *app) applyConnect(ctx context.Context, c client.Client, change *client.Change, o connectOptions) error {
	out := connectOutput{Client: c.Name, File: change.File, Action: change.Action, Backup: change.Backup, Notes: change.Notes, Diff: change.Diff()}
	if !a.json {
		a.printChange(c, change, o)
	}
	if change.Action == client.None {
		if a.json {
			return a.printJSON(out)
		}
		return nil
	}
	if !o.yes && !a.json && isTerminal(a.stdin) {
		switch yes, err := a.confirm(ctx, "Make this change?"); {
		case err != nil:
			return err
		case !yes:
			return fail(exitRefused, "to paste it by hand: loadout connect "+c.Name+" --print", "nothing was changed, as you said")
		}
	}
	if err := change.Apply(); err != nil {
		return connectFailed(c, o, err)
	}
	if a.json {
		return a.printJSON(out)
	}
	fmt.Fprintln(a.stdout, "Done.")
	if change.Backup != "" {
		fmt.Fprintf(a.stdout, "The file as it was is in %s; to go back: loadout connect %s --undo%s\n", plain(change.Backup), c.Name, o.flags())
	}
	if change.Next != "" {
		fmt.Fprintf(a.stdout, "Now %s.\n", plain(change.Next))
	}
	return nil
}

// printChange shows what would be done.
func (a *app) printChange(c client.Client, change *client.Change, o connectOptions) {
	if change.Action == client.None {
		what := "has Loadout already"
		if o.undo {
			what = "has no entry of Loadout"
		}
		fmt.Fprintf(a.stdout, "%s %s; nothing to do.\n", plain(change.File), what)
	} else {
		fmt.Fprintf(a.stdout, "%s: %s\n\n", c.Title, plain(change.File))
		for line := range strings.Lines(safe(change.Diff())) {
			switch {
			case strings.HasPrefix(line, "+"):
				line = a.green(strings.TrimSuffix(line, "\n")) + "\n"
			case strings.HasPrefix(line, "-"):
				line = a.red(strings.TrimSuffix(line, "\n")) + "\n"
			}
			fmt.Fprint(a.stdout, line)
		}
		fmt.Fprintln(a.stdout)
	}
	var b strings.Builder
	for _, n := range change.Notes {
		a.wrap(&b, "", "Note: "+n, same)
	}
	fmt.Fprint(a.stdout, b.String())
}

// flags repeats the flags that chose the file and the entry.
func (o connectOptions) flags() string {
	s := ""
	if o.scope != "" {
		s += " --scope " + quoted(o.scope)
	}
	if o.file != "" {
		s += " --file " + quoted(o.file)
	}
	if o.name != client.DefaultName {
		s += " --name " + quoted(o.name)
	}
	return s
}

// confirm asks the person at the terminal.
func (a *app) confirm(ctx context.Context, question string) (bool, error) {
	line, err := a.askLine(ctx, question+" [y/N] ")
	if err != nil {
		return false, err
	}
	line = strings.ToLower(strings.TrimSpace(line))
	return line == "y" || line == "yes", nil
}

// clientEntry is the server as the client is told to start or reach it.
func (a *app) clientEntry(o connectOptions) (client.Entry, error) {
	e := client.Entry{Name: o.name}
	if o.url != "" {
		e.URL = o.url
		return e, nil
	}
	var err error
	switch {
	case o.command == "":
		e.Command, err = installedCommand()
	case filepath.Base(o.command) == o.command:
		e.Command = o.command // the client finds it in its PATH
	default:
		e.Command, err = filepath.Abs(o.command)
	}
	if err != nil {
		return e, err
	}
	e.Args = []string{"mcp"}
	var paths []string
	for _, d := range a.skills {
		paths = append(paths, "--skills", d)
	}
	if a.config != "" {
		paths = append(paths, "--config", a.config)
	}
	for i := 0; i < len(paths); i += 2 {
		abs, err := filepath.Abs(paths[i+1])
		if err == nil {
			_, err = os.Stat(abs)
		}
		if err != nil {
			code, hint := missing(err, "the path given with "+paths[i])
			return e, fail(code, hint, "%s: %w", paths[i+1], reason(err))
		}
		e.Args = append(e.Args, paths[i], abs)
	}
	c, err := config.Load(a.configInput())
	if err != nil {
		return e, err // the client could not start it
	}
	if c.MCP.Address != "" {
		e.Args = append(e.Args, "--stdio")
	}
	return e, nil
}

// installedCommand is a path to this program that will be there tomorrow:
// what go run builds will not.
func installedCommand() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program: %w", err)
	}
	if !strings.Contains(self, "go-build") {
		return self, nil
	}
	if p, err := exec.LookPath("loadout"); err == nil {
		return filepath.Abs(p)
	}
	return "", fail(exitMissing, "install it with: go install ./cmd/loadout, or name it with --command PATH", "this program is a temporary build, which a client cannot start later")
}
