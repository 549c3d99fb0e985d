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

	"github.com/loadout-dev/loadout/internal/clientconfig"
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/editdistance"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/fileerror"
)

type connectOptions struct {
	scope, name, url, file, command string
	print, undo, yes                bool
}

type connectOutput struct {
	Client  string              `json:"client"`
	File    string              `json:"file"`
	Action  clientconfig.Action `json:"action"`
	Applied bool                `json:"applied"`         // whether the file was changed
	Entry   string              `json:"entry,omitempty"` // set with --print
	Backup  string              `json:"backup,omitempty"`
	Notes   []string            `json:"notes,omitempty"`
	Diff    string              `json:"diff,omitempty"`
}

func (a *app) connectCommand() *cobra.Command {
	var o connectOptions
	cmd := &cobra.Command{
		Use:   "connect CLIENT",
		Short: "Add Loadout to the configuration of an MCP client",
		Long: fmt.Sprintf(`Add an entry for Loadout to the configuration file of an MCP client. The change is
shown first, the file is backed up, and nothing else in it changes. Running the same
command again has no effect; with other flags, it replaces the entry. --undo removes
the entry.

On a terminal, connect asks for confirmation unless --yes or --json is given. The
entry starts this program with the given --skills and --config. If the format of the
file is known only from the client's documentation, connect prints a note about this,
and --json writes the change only with --yes.

%s`, clientList()),
		Example: `  loadout connect claude-code
  loadout connect cursor --scope project
  loadout connect vscode --url http://127.0.0.1:8485/mcp
  loadout connect codex --print
  loadout connect gemini --undo`,
		Args: argCount(1, 1, "the name of a CLIENT: "+strings.Join(clientconfig.Names(), ", ")),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return clientconfig.Names(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, pair := range [][2]string{{"print", "undo"}, {"url", "command"}, {"url", "skills"}, {"url", "config"}, {"file", "scope"}} {
				if err := checkExclusive(cmd, pair[0], pair[1]); err != nil {
					return err
				}
			}
			return a.connectClient(cmd.Context(), args[0], o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.scope, "scope", "", "`SCOPE` of the entry: user (all your projects) or project (for everyone)")
	f.StringVar(&o.name, "name", clientconfig.DefaultName, "`NAME` of the entry")
	f.StringVar(&o.url, "url", "", "connect over HTTP to a running server at `URL`")
	f.StringVar(&o.command, "command", "", "`PATH` of the program that the client starts; default: this program")
	f.StringVar(&o.file, "file", "", "edit `FILE` instead of the client's default file")
	f.BoolVar(&o.print, "print", false, "print the entry without writing it")
	f.BoolVar(&o.undo, "undo", false, "remove the entry")
	f.BoolVarP(&o.yes, "yes", "y", false, "do not ask for confirmation")
	completeFlag(cmd, "scope", string(clientconfig.User), string(clientconfig.Project))
	return cmd
}

// clientList returns the names of the clients, wrapped to fit a terminal.
func clientList() string {
	text := "Clients:"
	width := len(text)
	for i, n := range clientconfig.Names() {
		if i > 0 {
			text += ","
			width++
		}
		if width += len(n) + 1; width > 85 {
			text += "\n" + n
			width = len(n)
			continue
		}
		text += " " + n
	}
	return text + "."
}

func (a *app) connectClient(ctx context.Context, name string, o connectOptions) error {
	c, err := clientconfig.Lookup(name)
	if err != nil {
		hint := "known clients: " + strings.Join(clientconfig.Names(), ", ")
		for _, n := range clientconfig.Names() {
			if editdistance.Distance([]rune(strings.ToLower(name)), []rune(n), 2) <= 2 || strings.HasPrefix(n, strings.ToLower(name)) {
				verb := "connect"
				if o.undo {
					verb = "disconnect"
				}
				hint = "did you mean: loadout " + verb + " " + n + "? " + hint
				break
			}
		}
		return exit.Errorf(exit.Usage, hint, "unknown client %q", name)
	}
	var entry clientconfig.Entry
	if !o.undo {
		if entry, err = a.clientEntry(o); err != nil {
			return err
		}
		entry = c.WithVariables(entry, a.clientEnvironment())
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

// printEntry prints the configuration entry for the user to paste.
func (a *app) printEntry(c clientconfig.Client, entry clientconfig.Entry) error {
	text, err := clientconfig.Snippet(c, entry)
	if err != nil {
		return exit.Errorf(exit.Usage, "see: loadout connect --help", "%w", err)
	}
	if a.JSON {
		return a.PrintJSON(connectOutput{Client: c.Name, Action: clientconfig.None, Entry: text})
	}
	fmt.Fprint(a.Stdout, safe(text))
	return nil
}

func (a *app) planConnect(c clientconfig.Client, entry clientconfig.Entry, o connectOptions) (*clientconfig.Change, error) {
	target := a.clientTarget(c, clientconfig.Scope(o.scope), o.file)
	var change *clientconfig.Change
	var err error
	if o.undo {
		change, err = clientconfig.PlanUndo(target, o.name)
	} else {
		change, err = clientconfig.Plan(target, entry)
	}
	switch {
	case errors.Is(err, clientconfig.ErrUnsupported):
		return nil, exit.Errorf(exit.Usage, "see: loadout connect --help", "%w", err)
	case err != nil:
		return nil, connectError(c, o, err)
	}
	return change, nil
}

// clientTarget selects the configuration file to edit for a client.
func (a *app) clientTarget(c clientconfig.Client, scope clientconfig.Scope, file string) clientconfig.Target {
	return clientconfig.Target{Client: c, Scope: scope, File: file, Environment: a.clientEnvironment()}
}

// clientEnvironment describes where the configuration files of clients are
// located.
func (a *app) clientEnvironment() clientconfig.Environment {
	dir, err := os.Getwd()
	if err != nil {
		dir = "" // checked where it is needed
	}
	return clientconfig.Environment{OS: runtime.GOOS, Home: a.Home(), Dir: dir, Getenv: a.Getenv}
}

// connectError adds the next step to an error about a client's file. A
// FileError has its own hint.
func connectError(c clientconfig.Client, o connectOptions, err error) error {
	hint := "nothing was changed; to add the entry by hand: loadout connect " + c.Name + " --print"
	if o.undo {
		hint = "nothing was changed; remove the entry by hand"
	}
	if fe, ok := errors.AsType[*clientconfig.FileError](err); ok {
		if fix := fixFor(fe, o.undo); !strings.Contains(hint, fix) {
			hint = fix + "; " + hint
		}
		at := fe.File
		if fe.Line > 0 {
			at = fmt.Sprintf("%s:%d:%d", fe.File, fe.Line, fe.Column)
		}
		err = fmt.Errorf("%s: %s", at, fe.Problem)
	}
	return exit.Errorf(exit.Failure, hint, "%w", err)
}

// fixFor returns the fix that a FileError suggests. If undo is set, it suggests
// removing the entry by hand instead of adding it.
func fixFor(fe *clientconfig.FileError, undo bool) string {
	if undo {
		return strings.ReplaceAll(fe.Fix, "add the entry by hand", "remove the entry by hand")
	}
	return fe.Fix
}

func (a *app) applyConnect(ctx context.Context, c clientconfig.Client, change *clientconfig.Change, o connectOptions) error {
	out := connectOutput{Client: c.Name, File: change.File, Action: change.Action, Backup: change.Backup, Notes: change.Notes, Diff: change.Diff()}
	if !a.JSON {
		a.printChange(c, change, o)
	}
	if change.Action == clientconfig.None {
		if a.JSON {
			return a.PrintJSON(out)
		}
		return nil
	}
	if a.JSON && !o.yes && c.TestedVersion == "" && !o.undo {
		out.Notes = append(out.Notes, "nothing was written: with --json, a format known only from documentation needs --yes")
		return a.PrintJSON(out)
	}
	if !o.yes && !a.JSON && console.IsTerminal(a.Stdin) {
		switch yes, err := a.Confirm(ctx, "Apply this change?"); {
		case err != nil:
			return err
		case !yes:
			return exit.Errorf(exit.Refused, "to add the entry by hand: loadout connect "+c.Name+" --print", "Cancelled. Nothing was changed.")
		}
	}
	if err := change.Apply(); err != nil {
		return connectError(c, o, err)
	}
	out.Applied = true
	if a.JSON {
		return a.PrintJSON(out)
	}
	fmt.Fprintln(a.Stdout, "Done.")
	if change.Backup != "" {
		fmt.Fprintf(a.Stdout, "Backup: %s. To undo: loadout connect %s --undo%s\n", plain(change.Backup), c.Name, o.flags())
	}
	if change.Next != "" {
		fmt.Fprintf(a.Stdout, "Now %s.\n", plain(change.Next))
	}
	return nil
}

// printChange prints the planned change to a client's file, with its notes.
func (a *app) printChange(c clientconfig.Client, change *clientconfig.Change, o connectOptions) {
	if change.Action == clientconfig.None {
		what := "already has Loadout"
		if o.undo {
			what = "has no entry for Loadout"
		}
		fmt.Fprintf(a.Stdout, "%s %s; nothing to do.\n", plain(change.File), what)
	} else {
		fmt.Fprintf(a.Stdout, "%s: %s\n\n", c.Title, plain(change.File))
		for line := range strings.Lines(safe(change.Diff())) {
			switch {
			case strings.HasPrefix(line, "+"):
				line = a.Green(strings.TrimSuffix(line, "\n")) + "\n"
			case strings.HasPrefix(line, "-"):
				line = a.Red(strings.TrimSuffix(line, "\n")) + "\n"
			}
			fmt.Fprint(a.Stdout, line)
		}
		fmt.Fprintln(a.Stdout)
	}
	var b strings.Builder
	for _, n := range change.Notes {
		a.WriteWrapped(&b, "", "Note: "+n, console.NoStyle)
	}
	fmt.Fprint(a.Stdout, b.String())
}

// flags returns the options that select the file and the entry, formatted as
// command-line flags.
func (o connectOptions) flags() string {
	s := ""
	if o.scope != "" {
		s += " --scope " + console.ShellQuote(o.scope)
	}
	if o.file != "" {
		s += " --file " + console.ShellQuote(o.file)
	}
	if o.name != clientconfig.DefaultName {
		s += " --name " + console.ShellQuote(o.name)
	}
	return s
}

// clientEntry returns the server entry for a client's configuration.
func (a *app) clientEntry(o connectOptions) (clientconfig.Entry, error) {
	e := clientconfig.Entry{Name: o.name}
	if o.url != "" {
		e.URL = o.url
		return e, nil
	}
	var err error
	switch {
	case o.command == "":
		e.Command, err = installedCommand()
	case filepath.Base(o.command) == o.command:
		e.Command = o.command // the client finds it in PATH
	default:
		e.Command, err = filepath.Abs(o.command)
	}
	if err != nil {
		return e, err
	}
	e.Args = []string{"mcp"}
	var paths []string
	for _, d := range a.Skills {
		paths = append(paths, "--skills", d)
	}
	if a.ConfigFile != "" {
		paths = append(paths, "--config", a.ConfigFile)
	}
	for i := 0; i < len(paths); i += 2 {
		abs, err := filepath.Abs(paths[i+1])
		if err == nil {
			_, err = os.Stat(abs)
		}
		if err != nil {
			code, hint := exit.FileHint(err, "the path given with "+paths[i])
			return e, exit.Errorf(code, hint, "%s: %w", paths[i+1], fileerror.Cause(err))
		}
		e.Args = append(e.Args, paths[i], abs)
	}
	c, err := config.Load(a.ConfigInput())
	if err != nil {
		return e, err // the client could not start it either
	}
	if c.MCP.Address != "" {
		e.Args = append(e.Args, "--stdio")
	}
	return e, nil
}

// installedCommand returns the path of this program as the user typed it or, if
// they typed only a name, the path of the loadout command in PATH. It does not
// resolve symlinks, because their targets may change with an upgrade, as with
// Homebrew. If this program is a temporary build, such as that of go run, it
// returns the path of the loadout command in PATH.
func installedCommand() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find executable path: %w", err)
	}
	if !strings.Contains(self, "go-build") {
		return typedCommand(os.Args[0], self), nil
	}
	if p, err := exec.LookPath("loadout"); err == nil {
		return filepath.Abs(p)
	}
	return "", exit.Errorf(exit.Missing, "install it with: go install ./cmd/loadout, or name it with --command PATH", "this program is a temporary build, which a client cannot start later")
}

// typedCommand returns the absolute path of the program that a user runs with
// name, without resolving symlinks. If that is not this program, it returns self,
// the path of this program.
func typedCommand(name, self string) string {
	path, err := exec.LookPath(name)
	if err != nil {
		return self
	}
	if path, err = filepath.Abs(path); err != nil || !isSameFile(path, self) {
		return self
	}
	return path
}

// isSameFile reports whether two paths lead to the same file.
func isSameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}
