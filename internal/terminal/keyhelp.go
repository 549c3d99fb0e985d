package terminal

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// keyHelp lists the keys of the input with their effects.
var keyHelp = [][2]string{
	{"Enter", "sends, or queues while an answer comes"},
	{"Ctrl-J", "starts a new line, like Alt-Enter or a backslash before Enter"},
	{"@", "and a path attaches a file"},
	{"Tab", "completes, or unfolds pasted text before the cursor"},
	{"↑ ↓", "browse earlier input"},
	{"Ctrl-R", "searches earlier input"},
	{"Esc", "stops the answer, like Ctrl-C"},
	{"Ctrl-O", "shows the last calls in full"},
	{"Ctrl-D", "exits, like Ctrl-C twice"},
}

// KeyHelp returns the keys of the input and their effects as a Markdown list.
func KeyHelp() string {
	var b strings.Builder
	for _, k := range keyHelp {
		fmt.Fprintf(&b, "- %s: %s\n", k[0], k[1])
	}
	return b.String()
}

// keyLines lists the keys of the input next to their effects.
func keyLines(width int) []line {
	column := 0
	for _, k := range keyHelp {
		column = max(column, ansi.StringWidth(k[0]))
	}
	var out []line
	for _, k := range keyHelp {
		pad := strings.Repeat(" ", column-ansi.StringWidth(k[0])+2)
		out = append(out, line{{"  " + k[0] + pad, cyan}, {k[1], faint}}.clip(width))
	}
	return out
}
