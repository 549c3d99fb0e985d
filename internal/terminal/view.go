package terminal

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// maxText is the maximum width of text in columns, for readability.
const maxText = 100

// maxTail is the maximum height of the progress display in lines. A smaller
// display flickers less.
const maxTail = 12

// textWidth returns the width for text. It leaves the last column free, because
// a terminal may wrap after it.
func (m *model) textWidth() int { return max(min(m.width-1, maxText), 10) }

// screen is the part of the terminal below the scrollback.
type screen struct {
	rows []string
	x, y int // position of the cursor, whose row is always visible
}

// View implements [tea.Model].
func (m *model) View() tea.View {
	s := m.screen()
	for !m.leaving && len(s.rows) < m.minHeight() {
		s.rows = append(s.rows, "")
	}
	m.recordScreen(renderedScreen{m.now(), len(s.rows), s.y})
	v := tea.NewView(strings.Join(s.rows, "\n"))
	if len(s.rows) > 0 {
		v.Cursor = tea.NewCursor(s.x, s.y)
		v.Cursor.Blink = false
	}
	return v
}

func (m *model) screen() screen {
	if m.leaving && m.turn == nil {
		return screen{}
	}
	width := m.textWidth()
	rest := m.height - 2 // leave a blank line above and one terminal row unused
	below, x, y := m.promptOrInput(width, rest)
	above := m.progressLines(width, max(rest-len(below)-1, 0))
	if len(above) > 0 {
		above = append(above, nil)
	}
	if m.printed {
		above = append([]line{nil}, above...)
	}
	y += len(above)
	all := append(above, below...)
	if over := len(all) - max(m.height-1, 1); over > 0 { // the terminal is very small
		all, y = all[over:], max(y-over, 0)
	}
	for i := range all {
		all[i] = all[i].clip(max(m.width-1, 1))
	}
	return screen{m.paintAll(all), x, y}
}

// promptOrInput renders the current prompt or the input, and the status line.
func (m *model) promptOrInput(width, height int) (out []line, x, y int) {
	status := statusLine(m.status, width)
	if m.dialog != nil {
		out, x, y = m.dialog.show(width, max(height-3, 4))
		if n := len(m.pending) - 1; n > 0 {
			out = append(out, line{{fmt.Sprintf("%d more question%s pending", n, plural(n)), faint}})
		}
		return append(append(out, nil), status), x, y
	}
	if m.picker != nil {
		out, x = m.picker.lines(width, height)
		return out, x, 0
	}
	rows, x, y := m.input.rows(max(width-2, 8))
	rows, above, y := visibleRows(rows, y, max(height/2, 2))
	if above > 0 {
		out = append(out, styledText(fmt.Sprintf("%d line%s above", above, plural(above)), faint))
		y++
	}
	for _, r := range rows {
		out = append(out, line{{r, normal}})
	}
	for i := range out {
		mark := "  "
		if i == 0 {
			mark = "> "
		}
		out[i] = append(line{{mark, cyan}}, out[i]...)
	}
	if m.input.empty() {
		hint := "Message… (/ commands, ? keys)"
		if m.turn != nil {
			hint = "Message… (queued until the answer is complete)"
		}
		out = []line{append(line{{"> ", cyan}}, styledText(hint, faint)...)}
	}
	x += 2
	if offers := m.completion.lines(width); len(offers) > 0 {
		return append(out, offers...), x, y
	}
	if m.showKeys {
		keys := keyLines(width)
		return append(out, keys[:max(min(len(keys), height-len(out)), 0)]...), x, y
	}
	if m.quitArmed {
		status = styledText("Press Ctrl-C again or Ctrl-D to quit", faint)
	}
	return append(append(out, nil), status), x, y
}

// visibleRows returns up to limit rows near row y. above is the number of hidden
// rows before them. If above is not 0, visibleRows leaves room for a line with
// that number. at is the position of row y in shown.
func visibleRows(rows []string, y, limit int) (shown []string, above, at int) {
	if len(rows) <= limit {
		return rows, 0, y
	}
	from := max(min(y-limit/2, len(rows)-limit), 0)
	if from == 0 {
		return rows[:limit], 0, y
	}
	above = from + 1 // the count replaces the first row
	return rows[above : from+limit], above, y - above
}

// progressLines renders a turn's progress in up to limit lines: the end of the
// response, the running calls and the elapsed time.
func (m *model) progressLines(width, limit int) []line {
	t := m.turn
	if t == nil {
		return nil
	}
	var out []line
	if text := t.stream.visibleEnd(); text != "" {
		out = wrapAll(textLines(text, normal), width)
	}
	open := m.calls.runningCalls()
	if len(open) > 0 && len(out) > 0 {
		out = append(out, nil)
	}
	for i, c := range open {
		if i == 8 {
			out = append(out, line{{"  " + formatRemainder(len(open)-i), faint}})
			break
		}
		out = append(out, c.summaryLine(width, m.now()))
	}
	if m.dialog == nil {
		if len(out) > 0 {
			out = append(out, nil)
		}
		out = append(out, m.activityLine().clip(width))
		for _, w := range m.waiting {
			out = append(out, line{{"then: ", faint}, {Clip(w.shown(), width-6), faint}})
		}
	}
	return out[max(len(out)-min(limit, maxTail), 0):]
}

// activityLine describes the current activity and its duration.
func (m *model) activityLine() line {
	what := "working"
	switch {
	case m.turn.stopped:
		what = "stopping"
	case len(m.calls.runningCalls()) > 0:
		what = "waiting for the tool"
	case m.turn.stream.text == "" && m.thinking != "":
		what = "thinking"
	}
	if d := formatDuration(m.now().Sub(m.turn.start), false); d != "" {
		what += " " + d
	}
	return line{{"… ", cyan}, {what, faint}, {" · Esc stops", faint}}
}
