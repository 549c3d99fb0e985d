package terminal

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/loadout-dev/loadout/internal/approval"
)

// dialog is a prompt that is shown instead of the input line.
type dialog interface {
	// show renders the dialog in up to height lines. x and y are the cursor
	// position.
	show(width, height int) (lines []line, x, y int)
	// key handles a key press. A non-nil answer resolves the request.
	key(name, text string) *approval.Answer
	// paste inserts text pasted by the user.
	paste(text string)
	// render renders the complete request for the scrollback.
	render(width int) []line
}

// form asks for one field after another, or for yes or no if it has none.
type form struct {
	message string
	fields  []Field
	at      int
	chosen  int // index of the selected choice
	input   editor
	wrong   string
	content map[string]any
}

func newForm(q *approval.Request) (*form, error) {
	fields, err := Fields(q.Schema)
	if err != nil {
		return nil, err
	}
	if len(fields) == 0 {
		yesOrNo := property{Type: "boolean"}
		fields = []Field{yesOrNo.field("", true)}
	}
	f := &form{message: q.Message, fields: fields, content: map[string]any{}}
	f.showField(0)
	return f, nil
}

// showField makes the field at the given index the current one.
func (f *form) showField(at int) {
	f.at, f.wrong, f.chosen = at, "", -1
	f.input = editor{secret: f.fields[at].Secret}
	if d := f.fields[at].Default; d != "" {
		f.chosen = matchChoice(d, f.fields[at].Choices)
	}
}

func (f *form) field() *Field { return &f.fields[f.at] }

// usesList reports whether the user picks the field's value from a list.
func (f *form) usesList() bool { return len(f.field().Choices) > 0 && !f.field().Several }

func (f *form) paste(text string) {
	if !f.usesList() {
		f.input.insert(strings.ReplaceAll(text, "\n", " "))
	}
}

func (f *form) key(name, text string) *approval.Answer {
	f.wrong = ""
	switch {
	case name == "esc" || name == "ctrl+c":
		return &approval.Answer{Outcome: approval.Cancelled}
	case name == "ctrl+x":
		return &approval.Answer{Outcome: approval.Declined}
	case name == "shift+tab" && f.at > 0:
		f.showField(f.at - 1)
	case f.usesList() && (name == "up" || name == "shift+tab"):
		f.chosen = max(f.chosen-1, 0)
	case f.usesList() && (name == "down" || name == "tab"):
		f.chosen = min(f.chosen+1, len(f.field().Choices)-1)
	case name == "enter":
		return f.acceptField()
	case f.usesList():
		f.selectChoice(text)
	default:
		f.input.key(name, text)
	}
	return nil
}

// selectChoice selects the next choice that starts with text.
func (f *form) selectChoice(text string) {
	all := f.field().Choices
	for i := range all {
		j := (max(f.chosen, -1) + 1 + i) % len(all)
		if text != "" && strings.HasPrefix(strings.ToLower(all[j]), strings.ToLower(text)) {
			f.chosen = j
			return
		}
	}
}

// acceptField accepts the current field's value. After the last field it
// returns the answer to the request.
func (f *form) acceptField() *approval.Answer {
	field := f.field()
	typed := strings.TrimSpace(f.input.String())
	if typed == "" {
		typed = field.Default
	}
	if f.usesList() {
		if typed = ""; f.chosen >= 0 {
			typed = field.Choices[f.chosen]
		}
	}
	delete(f.content, field.Name)
	if typed != "" {
		value, ok := field.Value(typed)
		if !ok {
			f.wrong = "expected " + field.Expected()
			return nil
		}
		f.content[field.Name] = value
	} else if field.Required || field.Name == "decision" {
		f.wrong = "required: " + field.Expected()
		return nil
	}
	if f.at+1 < len(f.fields) {
		f.showField(f.at + 1)
		return nil
	}
	return AnswerOf(f.content)
}

// AnswerOf returns an answer with the values of the fields. For a form without
// fields, content[""] is yes or no, and "no" declines.
func AnswerOf(content map[string]any) *approval.Answer {
	yes, bare := content[""].(bool)
	if bare && !yes || content["decision"] == "no" {
		return &approval.Answer{Outcome: approval.Declined}
	}
	if bare {
		return &approval.Answer{Outcome: approval.Accepted}
	}
	raw, err := json.Marshal(content)
	if err != nil {
		return &approval.Answer{Outcome: approval.Cancelled}
	}
	return &approval.Answer{Outcome: approval.Accepted, Content: raw}
}

func (f *form) render(width int) []line {
	var out []line
	for _, l := range textLines(f.message, normal) {
		out = append(out, l.wrap(width, nil)...)
	}
	return out
}

func (f *form) show(width, height int) (out []line, x, y int) {
	field := f.field()
	var below []line
	if field.Name != "" {
		title := line{{field.Title, bold}}
		if len(f.fields) > 1 {
			title = append(title, span{fmt.Sprintf("  %d of %d", f.at+1, len(f.fields)), faint})
		}
		if !field.Required && field.Name != "decision" {
			title = append(title, span{"  optional", faint})
		}
		below = append(below, title.clip(width))
		if field.Help != "" {
			below = append(below, styledText(field.Help, faint).wrap(width, nil)...)
		}
	}
	if f.usesList() {
		var lines []line
		lines, y = f.renderChoices(width, max(height/2, 3))
		y += len(below)
		below = append(below, lines...)
	} else {
		rows, cx, cy := f.input.rows(width - 2)
		x, y = cx+2, len(below)+cy
		for _, r := range rows {
			below = append(below, line{{"› ", cyan}, {r, normal}})
		}
		if f.input.empty() && field.Default != "" {
			below[len(below)-1] = append(below[len(below)-1], span{field.Default, faint})
		}
	}
	if f.wrong != "" {
		below = append(below, styledText(f.wrong, red).clip(width))
	}
	hint := "Enter next · Esc cancel · Ctrl-X decline"
	if f.at+1 == len(f.fields) {
		hint = "Enter answer · Esc cancel · Ctrl-X decline"
	}
	if f.usesList() {
		hint = "↑↓ " + hint
	}
	below = append(below, line{{hint, faint}}.wrap(width, nil)...)
	above := cutMiddle(f.render(width), max(height-len(below), 3), "Ctrl-T")
	return append(above, below...), x, y + len(above)
}

// renderChoices renders the choices near the selected one. at is the row of the
// selected choice.
func (f *form) renderChoices(width, limit int) (out []line, at int) {
	all := f.field().Choices
	from := max(min(f.chosen-limit/2, len(all)-limit), 0)
	for i := from; i < min(from+limit, len(all)); i++ {
		mark, st := "  ", normal
		if i == f.chosen {
			mark, st, at = "› ", bold, len(out)
		}
		out = append(out, line{{mark, cyan}, {expandTabs(all[i]), st}}.clip(width))
	}
	if left := len(all) - len(out); left > 0 {
		out = append(out, line{{fmt.Sprintf("  %d more", left), faint}})
	}
	return out, at
}

// cutMiddle omits lines from the middle, because a dangerous part may be at the
// end. The user can press key to show all lines.
func cutMiddle(lines []line, limit int, key string) []line {
	if len(lines) <= limit {
		return lines
	}
	head := (limit - 1) / 2
	tail := limit - 1 - head
	out := append([]line{}, lines[:head]...)
	out = append(out, line{{fmt.Sprintf("… %d more lines; %s shows all", len(lines)-head-tail, key), faint}})
	return append(out, lines[len(lines)-tail:]...)
}
