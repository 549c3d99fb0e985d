package terminal

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// maxText is how many columns text has at most: longer lines are hard to read.
const maxText = 100

// maxTail is how many rows what is under way has at most: fewer flicker less.
const maxTail = 12

// textWidth leaves the last column free, after which a terminal may break a line.
func (m *model) textWidth() int { return max(min(m.width-1, maxText), 10) }

// screen is what is drawn below the scrollback.
type screen struct {
	rows []string
	x, y int // of the cursor, which is always to be seen: else nobody knows where it is
}

// View is the loop's.
func (m *model) View() tea.View {
	s := m.screen()
	for !m.leaving && len(s.rows) < m.least() {
		s.rows = append(s.rows, "")
	}
	m.draw(drawn{m.now(), len(s.rows), s.y})
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
	rest := m.height - 2 // a line above, and one less than there are
	below, x, y := m.asksOrInput(width, rest)
	above := m.underWay(width, max(rest-len(below)-1, 0))
	if len(above) > 0 {
		above = append(above, nil)
	}
	if m.spoke {
		above = append([]line{nil}, above...)
	}
	y += len(above)
	all := append(above, below...)
	if over := len(all) - max(m.height-1, 1); over > 0 { // a very low terminal
		all, y = all[over:], max(y-over, 0)
	}
	for i := range all {
		all[i] = all[i].clip(max(m.width-1, 1))
	}
	return screen{m.paintAll(all), x, y}
}

// asksOrInput is the question that waits, or what is typed, and the status line.
func (m *model) asksOrInput(width, height int) (out []line, x, y int) {
	status := statusLine(m.status, width)
	if m.dialog != nil {
		out, x, y = m.dialog.show(width, max(height-3, 4))
		if n := len(m.asks) - 1; n > 0 {
			out = append(out, line{{fmt.Sprintf("%d more question%s after this", n, plural(n)), faint}})
		}
		return append(append(out, nil), status), x, y
	}
	rows, x, y := m.input.rows(max(width-2, 8))
	rows, above, y := around(rows, y, max(height/2, 2))
	if above > 0 {
		out = append(out, words(fmt.Sprintf("%d line%s above", above, plural(above)), faint))
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
		hint := "Say something, or / for commands"
		if m.turn != nil {
			hint = "What you say now waits its turn"
		}
		out = []line{append(line{{"> ", cyan}}, words(hint, faint)...)}
	}
	x += 2
	if offers := m.completion.lines(width); len(offers) > 0 {
		return append(out, offers...), x, y
	}
	if m.armed {
		status = words("Ctrl-C again leaves; or Ctrl-D", faint)
	}
	return append(append(out, nil), status), x, y
}

// around are the rows around that of the cursor that have room in most, one of which
// says how many are above: above is 0 where that needs no row.
func around(rows []string, y, most int) (shown []string, above, at int) {
	if len(rows) <= most {
		return rows, 0, y
	}
	from := max(min(y-most/2, len(rows)-most), 0)
	if from == 0 {
		return rows[:most], 0, y
	}
	above = from + 1 // the first of them gives its place
	return rows[above : from+most], above, y - above
}

// underWay is what comes just now, in at most so many lines: the end of the answer,
// the calls, and how long it has been.
func (m *model) underWay(width, most int) []line {
	t := m.turn
	if t == nil {
		return nil
	}
	var out []line
	if text := t.stream.end(); text != "" {
		out = wrapAll(textLines(text, normal), width)
	}
	open := m.calls.open()
	if len(open) > 0 && len(out) > 0 {
		out = append(out, nil)
	}
	for i, c := range open {
		if i == 8 {
			out = append(out, line{{"  " + plusMore(len(open)-i), faint}})
			break
		}
		out = append(out, c.folded(width, m.now()))
	}
	if m.dialog == nil {
		if len(out) > 0 {
			out = append(out, nil)
		}
		out = append(out, m.working().clip(width))
		for _, w := range m.waiting {
			out = append(out, line{{"then: ", faint}, {Clip(w, width-6), faint}})
		}
	}
	return out[max(len(out)-min(most, maxTail), 0):]
}

// working says what is being done, and for how long.
func (m *model) working() line {
	what := "working"
	switch {
	case m.turn.stopped:
		what = "stopping"
	case len(m.calls.open()) > 0:
		what = "waiting for the tool"
	case m.turn.stream.text == "" && m.thought != "":
		what = "thinking"
	}
	if d := duration(m.now().Sub(m.turn.begun), false); d != "" {
		what += " " + d
	}
	return line{{"… ", cyan}, {what, faint}, {" · Esc stops", faint}}
}
