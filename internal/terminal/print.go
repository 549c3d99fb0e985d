package terminal

import (
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// printer prints lines into the scrollback in order. It prints no more at once than fit
// above the screen, because more would push the screen into the scrollback.
type printer struct {
	waiting []string
	busy    bool // a print is in progress
}

// printedMsg reports that a print is complete.
type printedMsg struct{}

func (p *printer) add(rows ...string) { p.waiting = append(p.waiting, rows...) }

// next prints the lines that fit into room rows at the given width.
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
		text = " " // an empty string would not be printed
	}
	return tea.Sequence(tea.Println(text), func() tea.Msg { return printedMsg{} })
}

// idle reports whether everything was printed.
func (p *printer) idle() bool { return !p.busy && len(p.waiting) == 0 }
