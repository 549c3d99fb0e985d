package terminal

import (
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// printer brings lines into the scrollback, in their order and no more at once than
// have room above what is drawn: more would push that into the scrollback too.
type printer struct {
	waiting []string
	busy    bool // some are on their way
}

// printedMsg says that what was on its way is there.
type printedMsg struct{}

func (p *printer) add(rows ...string) { p.waiting = append(p.waiting, rows...) }

// next sends what has room on a screen of that width, in room rows.
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
		text = " " // an empty text would not be printed
	}
	return tea.Sequence(tea.Println(text), func() tea.Msg { return printedMsg{} })
}

// idle says that everything is printed.
func (p *printer) idle() bool { return !p.busy && len(p.waiting) == 0 }
