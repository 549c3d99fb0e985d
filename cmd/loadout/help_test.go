package main

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/terminal"
)

// Every command has help that fits a terminal, and an example.
func TestHelp(t *testing.T) {
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		if cmd.Hidden {
			return
		}
		path := strings.Fields(cmd.CommandPath())[1:]
		t.Run(cmd.CommandPath(), func(t *testing.T) { checkHelp(t, path) })
		for _, c := range cmd.Commands() {
			visit(c)
		}
	}
	visit((&app{}).command())
}

func checkHelp(t *testing.T, path []string) {
	help := output(t, append(path, "--help"))
	if other := output(t, append([]string{"help"}, path...)); other != help {
		t.Errorf("loadout help says\n%s\nand --help says\n%s", other, help)
	}
	for line := range strings.Lines(help) {
		if n := terminal.Width(strings.TrimSuffix(line, "\n")); n > 100 {
			t.Errorf("a line has %d columns: %s", n, line)
		}
	}
	if shells := len(path) == 2 && path[0] == "completion"; !shells && !strings.Contains(help, "\nExamples:\n  ") {
		t.Errorf("no example in\n%s", help)
	}
	if !strings.Contains(help, "\nUsage:\n  loadout") {
		t.Errorf("no usage in\n%s", help)
	}
}

// output runs a command in this process.
func output(t *testing.T, args []string) string {
	t.Helper()
	var out, problems strings.Builder
	code := run(context.Background(), args, environment{stdin: strings.NewReader(""), stdout: &out, stderr: &problems, getenv: func(string) string { return "" }})
	if code != exit.OK || problems.Len() > 0 {
		t.Fatalf("%v: exit code %d: %s", args, code, problems.String())
	}
	return out.String()
}

// A command that is created alone is the same as one that is created with all
// others.
func TestCommandCreatedAloneHasSameHelp(t *testing.T) {
	all := (&app{}).command()
	for _, f := range (&app{}).families(all) {
		for _, s := range f.commands {
			if s.name == manName {
				continue
			}
			one := (&app{}).commandFor([]string{s.name})
			if got := len(one.Commands()); got != 1 {
				t.Errorf("%d commands are created for %s", got, s.name)
			}
			compareCommands(t, all, one, s.name)
		}
	}
	for _, args := range [][]string{nil, {"--json", "list"}, {"lis"}, {"help", "list"}, {"man"}, {"completion"}, {cobra.ShellCompRequestCmd, "list"}} {
		if got, want := len((&app{}).commandFor(args).Commands()), len(all.Commands()); got != want {
			t.Errorf("%d of %d commands are created for %q", got, want, args)
		}
	}
}

// compareCommands compares the help of a command and of its subcommands.
func compareCommands(t *testing.T, all, one *cobra.Command, path ...string) {
	t.Helper()
	a, _, err := all.Find(path)
	if err != nil {
		t.Fatal(err)
	}
	b, _, err := one.Find(path)
	if err != nil {
		t.Fatal(err)
	}
	if b.CommandPath() != "loadout "+strings.Join(path, " ") {
		t.Fatalf("%q is the command %s", path, b.CommandPath())
	}
	if want, got := helpOf(t, a), helpOf(t, b); want != got {
		t.Errorf("%s: got the help\n%s\nwant\n%s", a.CommandPath(), got, want)
	}
	for _, c := range a.Commands() {
		compareCommands(t, all, one, append(slices.Clip(path), c.Name())...)
	}
}

func helpOf(t *testing.T, cmd *cobra.Command) string {
	t.Helper()
	var out strings.Builder
	cmd.SetOut(&out)
	cmd.InitDefaultHelpFlag()
	if err := cmd.Help(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
