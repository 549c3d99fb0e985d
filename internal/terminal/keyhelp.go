package terminal

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// keyHelp lists the key bindings of the input: each key and its effect.
var keyHelp = [][2]string{
	{"Enter", "send, or queue while the agent answers"},
	{"Ctrl-J", "start a new line, like Alt-Enter or a backslash before Enter"},
	{"/", "list the commands and skills"},
	{"@PATH", "attach a file"},
	{"Tab", "complete, or show folded text"},
	{"↑ ↓", "browse earlier input"},
	{"Ctrl-R", "search earlier input"},
	{"Esc", "stop the answer, like Ctrl-C"},
	{"Ctrl-O", "show the last calls in full"},
	{"Ctrl-D", "exit, like Ctrl-C twice"},
	{"?", "list the keys; a second one is typed"},
}

// KeyHelp returns the key bindings of the input as a Markdown list.
func KeyHelp() string {
	var b strings.Builder
	for _, k := range keyHelp {
		fmt.Fprintf(&b, "- %s: %s\n", k[0], k[1])
	}
	return b.String()
}

// keyLines formats the key bindings of the input in two columns.
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
