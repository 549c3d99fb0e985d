package terminal

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/loadout-dev/loadout/internal/approval"
)

// dialog is a question on the screen, in the place of the line that is typed in.
type dialog interface {
	// show is what it looks like in at most height lines, and where the cursor is.
	show(width, height int) (lines []line, x, y int)
	// key takes a key; an answer settles the question.
	key(name, text string) *approval.Answer
	// paste takes text that was pasted.
	paste(text string)
	// whole is all that is asked, for the scrollback.
	whole(width int) []line
}

// form asks for one field after the other, or for a yes or no.
type form struct {
	message string
	fields  []Field
	at      int
	chosen  int // of the choices of the field
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
	f.begin(0)
	return f, nil
}

// begin goes to a field.
func (f *form) begin(at int) {
	f.at, f.wrong, f.chosen = at, "", -1
	f.input = editor{secret: f.fields[at].Secret}
	if d := f.fields[at].Default; d != "" {
		f.chosen = choiceOf(d, f.fields[at].Choices)
	}
}

func (f *form) field() *Field { return &f.fields[f.at] }

// picks says whether the field is chosen from a list.
func (f *form) picks() bool { return len(f.field().Choices) > 0 && !f.field().Several }

func (f *form) paste(text string) {
	if !f.picks() {
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
		f.begin(f.at - 1)
	case f.picks() && (name == "up" || name == "shift+tab"):
		f.chosen = max(f.chosen-1, 0)
	case f.picks() && (name == "down" || name == "tab"):
		f.chosen = min(f.chosen+1, len(f.field().Choices)-1)
	case name == "enter":
		return f.take()
	case f.picks():
		f.pick(text)
	default:
		f.input.key(name, text)
	}
	return nil
}

// pick goes to the next choice that begins with a letter.
func (f *form) pick(text string) {
	all := f.field().Choices
	for i := range all {
		j := (max(f.chosen, -1) + 1 + i) % len(all)
		if text != "" && strings.HasPrefix(strings.ToLower(all[j]), strings.ToLower(text)) {
			f.chosen = j
			return
		}
	}
}

// take is the end of a field, and after the last one the answer.
func (f *form) take() *approval.Answer {
	field := f.field()
	typed := strings.TrimSpace(f.input.String())
	if typed == "" {
		typed = field.Default
	}
	if f.picks() {
		if typed = ""; f.chosen >= 0 {
			typed = field.Choices[f.chosen]
		}
	}
	delete(f.content, field.Name)
	if typed != "" {
		value, ok := field.Value(typed)
		if !ok {
			f.wrong = "that is not " + field.Wants()
			return nil
		}
		f.content[field.Name] = value
	} else if field.Required || field.Name == "decision" {
		f.wrong = "it has to be said: " + field.Wants()
		return nil
	}
	if f.at+1 < len(f.fields) {
		f.begin(f.at + 1)
		return nil
	}
	return Answered(f.content)
}

// Answered is the answer with values of fields: of a question without fields that of
// "", a yes or no. The decision "no" declines.
func Answered(content map[string]any) *approval.Answer {
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

func (f *form) whole(width int) []line {
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
			title = append(title, span{"  may be left out", faint})
		}
		below = append(below, title.clip(width))
		if field.Help != "" {
			below = append(below, words(field.Help, faint).wrap(width, nil)...)
		}
	}
	if f.picks() {
		var lines []line
		lines, y = f.choices(width, max(height/2, 3))
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
		below = append(below, words(f.wrong, red).clip(width))
	}
	hint := "Enter next · Esc leave · Ctrl-X refuse"
	if f.at+1 == len(f.fields) {
		hint = "Enter answer · Esc leave · Ctrl-X refuse"
	}
	if f.picks() {
		hint = "↑↓ " + hint
	}
	below = append(below, line{{hint, faint}}.wrap(width, nil)...)
	above := middle(f.whole(width), max(height-len(below), 3), "Ctrl-T")
	return append(above, below...), x, y + len(above)
}

// choices are those around the chosen one, and its row.
func (f *form) choices(width, most int) (out []line, at int) {
	all := f.field().Choices
	from := max(min(f.chosen-most/2, len(all)-most), 0)
	for i := from; i < min(from+most, len(all)); i++ {
		mark, st := "  ", normal
		if i == f.chosen {
			mark, st, at = "› ", bold, len(out)
		}
		out = append(out, line{{mark, cyan}, {untabbed(all[i]), st}}.clip(width))
	}
	if left := len(all) - len(out); left > 0 {
		out = append(out, line{{fmt.Sprintf("  %d more", left), faint}})
	}
	return out, at
}

// middle leaves out lines in the middle, as what is dangerous may be at the end.
func middle(lines []line, most int, key string) []line {
	if len(lines) <= most {
		return lines
	}
	head := (most - 1) / 2
	tail := most - 1 - head
	out := append([]line{}, lines[:head]...)
	out = append(out, line{{fmt.Sprintf("… %d more lines; %s shows all", len(lines)-head-tail, key), faint}})
	return append(out, lines[len(lines)-tail:]...)
}
