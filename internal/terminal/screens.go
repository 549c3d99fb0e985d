package terminal

import (
	"time"

	tea "charm.land/bubbletea/v2"
)

// renderedScreen holds the size of a rendered screen and its cursor row.
type renderedScreen struct {
	at     time.Time
	rows   int
	cursor int // row of the cursor
}

// frame is the maximum time until a rendered screen is displayed.
const frame = 50 * time.Millisecond

// recordScreen records a rendered screen and forgets older screens that can no
// longer be displayed.
func (m *model) recordScreen(d renderedScreen) {
	m.recent = append(m.recent, d)
	for len(m.recent) > 1 && d.at.Sub(m.recent[1].at) > frame {
		m.recent = m.recent[1:]
	}
}

// maxHeight returns the maximum height of any screen that may be displayed now.
func (m *model) maxHeight() int {
	rows := len(m.screen().rows)
	for _, d := range m.recent {
		rows = max(rows, d.rows)
	}
	return rows
}

// minHeight returns the minimum height of the next screen. If the next screen
// ended above the previous cursor, the renderer would misplace the cursor and
// not clear the rows below.
func (m *model) minHeight() int {
	rows := 0
	for _, d := range m.recent {
		rows = max(rows, d.cursor+1)
	}
	return rows
}

// redrawIfPadded redraws the screen if it was padded to the minimum height.
func (m *model) redrawIfPadded() tea.Cmd {
	if len(m.screen().rows) >= m.minHeight() {
		return nil
	}
	return tea.Tick(2*frame, func(time.Time) tea.Msg { return redrawMsg{} })
}
