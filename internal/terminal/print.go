package terminal

import (
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// printer prints lines into the scrollback in order. It prints only as many
// lines at once as fit above the screen. More lines would push the screen into
// the scrollback.
type printer struct {
	waiting []string
	busy    bool // whether a print is in progress
}

// printedMsg is sent when a print is complete.
type printedMsg struct{}

func (p *printer) add(rows ...string) { p.waiting = append(p.waiting, rows...) }

// next returns a command that prints as many lines as fit into room rows of the
// given width.
func (p *printer) next(width, room int) tea.Cmd {
	if p.busy || len(p.waiting) == 0 || width == 0 {
		return nil
	}
	n, used := 0, 0
	for n < len(p.waiting) {
		rows := 1 + max(ansi.StringWidth(p.waiting[n])-1, 0)/width
		if n > 0 && used+rows > room {
			break
		}
		n, used = n+1, used+rows
	}
	text := strings.Join(p.waiting[:n], "\n")
	p.waiting, p.busy = p.waiting[n:], true
	if text == "" {
		text = " " // the program ignores an empty string
	}
	return tea.Sequence(tea.Println(text), func() tea.Msg { return printedMsg{} })
}

// isIdle reports whether all lines have been printed.
func (p *printer) isIdle() bool { return !p.busy && len(p.waiting) == 0 }
