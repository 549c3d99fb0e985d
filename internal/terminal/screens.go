package terminal

import (
	"time"

	tea "charm.land/bubbletea/v2"
)

// renderedScreen describes a rendered screen.
type renderedScreen struct {
	at     time.Time
	rows   int
	cursor int // row of the cursor
}

// frame is the maximum delay until a rendered screen is displayed.
const frame = 50 * time.Millisecond

// recordScreen records a rendered screen and drops those that can no longer be
// displayed.
func (m *model) recordScreen(d renderedScreen) {
	m.recent = append(m.recent, d)
	for len(m.recent) > 1 && d.at.Sub(m.recent[1].at) > frame {
		m.recent = m.recent[1:]
	}
}

// maxHeight returns the maximum height of the displayed screen.
func (m *model) maxHeight() int {
	rows := len(m.screen().rows)
	for _, d := range m.recent {
		rows = max(rows, d.rows)
	}
	return rows
}

// minHeight returns the minimum height of the next screen. If a screen ends above the previous
// cursor row, the renderer misplaces the cursor and does not clear the rows below.
func (m *model) minHeight() int {
	rows := 0
	for _, d := range m.recent {
		rows = max(rows, d.cursor+1)
	}
	return rows
}

// redrawIfPadded redraws once after blank rows were added to reach that height.
func (m *model) redrawIfPadded() tea.Cmd {
	if len(m.screen().rows) >= m.minHeight() {
		return nil
	}
	return tea.Tick(2*frame, func(time.Time) tea.Msg { return redrawMsg{} })
}
