package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/terminal"
)

// askAboutChanges makes a run ask the user about changes to files that
// configure programs or agents, such as CLAUDE.md, if the user is at a
// terminal.
func (a *app) askAboutChanges(r *loadout.Run, line *console.ProgressLine) {
	in, ok := a.Stdin.(*os.File)
	if !ok || !r.ByUser || a.JSON || !console.IsTerminal(in) || !console.IsTerminal(a.Stderr) {
		return
	}
	shared := console.NewSharedInput(in)
	r.Stdin = shared.Command()
	r.ApproveChanges = func(ctx context.Context, changes []loadout.HeldChange) (bool, error) {
		line.End()
		in := shared.Prompt() // discards what was typed to the script
		fmt.Fprint(a.Stderr, "\n"+heldChangesText(changes))
		return a.ConfirmOn(ctx, in, a.Stderr, fmt.Sprintf("Apply %s?", console.Pluralize(len(changes), "change")))
	}
}

// heldChangesText describes held changes with their diffs.
func heldChangesText(changes []loadout.HeldChange) string {
	var b strings.Builder
	b.WriteString("The script changed files that configure programs or agents:\n")
	for _, c := range changes {
		fmt.Fprintf(&b, "\n%s %s (read by %s)\n", terminal.Plain(c.Op), terminal.Plain(c.Path), terminal.Plain(c.Reader))
		b.WriteString(terminal.Safe(c.Diff))
	}
	return b.String() + "\n"
}
