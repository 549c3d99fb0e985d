package main

import (
	"context"
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
