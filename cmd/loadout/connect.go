package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout/internal/client"
)

type connectOptions struct {
	scope, name, url, file, command string
	print, undo, yes                bool
}

type connectOutput struct {
	Client string        `json:"client"`
	File   string        `json:"file"`
	Action client.Action `json:"action"`
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
change is shown before it is made, and a backup is kept; everything else in the
file stays as it is. Running it again changes nothing; --undo takes the entry out.

Clients: %s.`, strings.Join(client.Names(), ", ")),
		Example: `  loadout connect claude-code
  loadout connect cursor --scope project
  loadout connect vscode --url http://127.0.0.1:8485/mcp
  loadout connect codex --print
  loadout connect gemini --undo`,
		Args:      cobra.ExactArgs(1),
		ValidArgs: client.Names(),
		RunE:      func(_ *cobra.Command, args []string) error { return a.connect(args[0], o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.scope, "scope", "", "user or project; default: the client's usual")
	f.StringVar(&o.name, "name", client.DefaultName, "`NAME` of the entry")
	f.StringVar(&o.url, "url", "", "connect over HTTP to a server that runs already, at `URL`")
	f.StringVar(&o.command, "command", "", "the `PATH` that the client starts; default: this program")
	f.StringVar(&o.file, "file", "", "edit this `FILE` instead of the client's usual one")
	f.BoolVar(&o.print, "print", false, "only print the entry, to paste by hand")
	f.BoolVar(&o.undo, "undo", false, "take the entry out again")
	f.BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	return cmd
}

func (a *app) connect(name string, o connectOptions) error {
	c, err := client.Lookup(name)
	if err != nil {
		return fail(exitUsage, "give one of "+strings.Join(client.Names(), ", "), "%w", err)
	}
	entry, err := a.clientEntry(o)
	if err != nil {
		return err
	}
	if o.print {
		text, err := client.Snippet(c, entry)
		if err != nil {
			return fail(exitUsage, "see: loadout connect --help", "%w", err)
		}
		fmt.Fprint(a.stdout, text)
		return nil
	}
	change, err := a.planConnect(c, entry, o)
	if err != nil {
		return err
	}
	return a.applyConnect(c, change, o)
}

func (a *app) planConnect(c client.Client, entry client.Entry, o connectOptions) (*client.Change, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
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
		return nil, fail(exitFound, "or paste it by hand: loadout connect "+c.Name+" --print", "%w", err)
	}
	return change, nil
}

func (a *app) applyConnect(c client.Client, change *client.Change, o connectOptions) error {
	out := connectOutput{Client: c.Name, File: change.File, Action: change.Action, Backup: change.Backup, Notes: change.Notes, Diff: change.Diff()}
	if change.Action == client.None {
		if a.json {
			return a.printJSON(out)
		}
		what := "has Loadout already"
		if o.undo {
			what = "has no entry of Loadout"
		}
		fmt.Fprintf(a.stdout, "%s %s; nothing to do.\n", safe(change.File), what)
		return nil
	}
	if !a.json {
		fmt.Fprintf(a.stdout, "%s: %s\n\n%s\n", c.Title, safe(change.File), safe(change.Diff()))
		for _, n := range change.Notes {
			fmt.Fprintf(a.stdout, "Note: %s\n", safe(n))
		}
	}
	if !o.yes && isTerminal(a.stdin) && !a.json && !a.confirm("Make this change?") {
		return fail(exitRefused, "", "nothing was changed")
	}
	if err := change.Apply(); err != nil {
		return fail(exitFound, "nothing was changed; try again, or paste it by hand: loadout connect "+c.Name+" --print", "%w", err)
	}
	if a.json {
		return a.printJSON(out)
	}
	fmt.Fprintln(a.stdout, "Done.")
	if change.Backup != "" {
		fmt.Fprintf(a.stdout, "The file as it was is in %s\n", safe(change.Backup))
	}
	if change.Next != "" {
		fmt.Fprintln(a.stdout, change.Next)
	}
	return nil
}

// confirm asks the person at the terminal.
func (a *app) confirm(question string) bool {
	fmt.Fprintf(a.stdout, "%s [y/N] ", question)
	line, err := bufio.NewReader(a.stdin).ReadString('\n')
	if err != nil {
		fmt.Fprintln(a.stdout)
		return false
	}
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes"
}

// clientEntry is the server as the client is told to start or reach it.
func (a *app) clientEntry(o connectOptions) (client.Entry, error) {
	e := client.Entry{Name: o.name}
	if o.url != "" {
		e.URL = o.url
		return e, nil
	}
	e.Command = o.command
	if e.Command == "" {
		var err error
		if e.Command, err = installedCommand(); err != nil {
			return e, err
		}
	}
	e.Args = []string{"mcp"}
	for _, d := range a.skills {
		abs, err := filepath.Abs(d)
		if err != nil {
			return e, err
		}
		e.Args = append(e.Args, "--skills", abs)
	}
	if a.config != "" {
		abs, err := filepath.Abs(a.config)
		if err != nil {
			return e, err
		}
		e.Args = append(e.Args, "--config", abs)
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
