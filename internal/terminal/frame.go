package terminal

import (
	"time"

	tea "charm.land/bubbletea/v2"
)

// drawn is a screen that was drawn.
type drawn struct {
	at     time.Time
	rows   int
	cursor int // its row
}

// frame is how long it may take until what was drawn is on the screen.
const frame = 50 * time.Millisecond

// draw notes what is drawn, and forgets what can be on the screen no more.
func (m *model) draw(d drawn) {
	m.drawn = append(m.drawn, d)
	for len(m.drawn) > 1 && d.at.Sub(m.drawn[1].at) > frame {
		m.drawn = m.drawn[1:]
	}
}

// tallest are the most rows that the screen may have now.
func (m *model) tallest() int {
	rows := len(m.screen().rows)
	for _, d := range m.drawn {
		rows = max(rows, d.rows)
	}
	return rows
}

// least are the rows that a screen must have: where the next one ends above the cursor,
// the renderer takes the cursor for higher than it is, and leaves rows behind.
func (m *model) least() int {
	rows := 0
	for _, d := range m.drawn {
		rows = max(rows, d.cursor+1)
	}
	return rows
}

// settleDown draws once more where blank rows were added for that.
func (m *model) settleDown() tea.Cmd {
	if len(m.screen().rows) >= m.least() {
		return nil
	}
	return tea.Tick(2*frame, func(time.Time) tea.Msg { return redrawMsg{} })
}
