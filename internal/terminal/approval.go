package terminal

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/internal/approval"
	"github.com/loadout-dev/loadout/policy"
)

// RequestOf is the call that an approval is about; false is that it is about none.
func RequestOf(q *approval.Request) (*agent.CallRequest, bool) {
	r := &agent.CallRequest{}
	if q.Kind != approval.KindApproval || json.Unmarshal(q.Payload, r) != nil || r.Tool == "" {
		return nil, false
	}
	return r, true
}

// approvalPrompt asks for leave: for a call, or for what the message says.
type approvalPrompt struct {
	agent.CallRequest // of a call; without a tool there is none
	message           string
	before            func(string) (string, bool)
	given             json.RawMessage // the arguments as the model has them
	editing           bool
	input             editor
	wrong             string
}

func newApproval(q *approval.Request, before func(string) (string, bool)) *approvalPrompt {
	a := &approvalPrompt{message: q.Message, before: before}
	if r, ok := RequestOf(q); ok {
		a.CallRequest, a.given = *r, r.Arguments
	}
	return a
}

// call says whether it is about a call, whose arguments can be changed.
func (a *approvalPrompt) call() bool { return a.Tool != "" }

func (a *approvalPrompt) changed() bool { return !same(a.given, a.Arguments) }

func (a *approvalPrompt) paste(text string) {
	if a.editing {
		a.input.insert(text)
	}
}

func (a *approvalPrompt) key(name, text string) *approval.Answer {
	if a.editing {
		a.edit(name, text)
		return nil
	}
	switch strings.ToLower(text) {
	case "y":
		return a.accept(policy.Once)
	case "s":
		return a.accept(policy.ForSession)
	case "a":
		return a.accept(policy.Always)
	case "n":
		return &approval.Answer{Outcome: approval.Declined}
	case "e":
		if a.call() {
			a.editing = true
			a.input.set(indented(a.Arguments))
		}
	}
	if name == "esc" || name == "ctrl+c" {
		return &approval.Answer{Outcome: approval.Declined}
	}
	return nil
}

// accept allows the call. What was changed is allowed for this one call: a standing
// permission is not for arguments.
func (a *approvalPrompt) accept(scope policy.Scope) *approval.Answer {
	out := &approval.Answer{Outcome: approval.Accepted, Scope: scope}
	if scope == policy.Once {
		out.Scope = ""
	}
	if a.changed() {
		out.Content = a.Arguments
	}
	return out
}

func (a *approvalPrompt) edit(name, text string) {
	switch name {
	case "esc", "ctrl+c":
		a.editing, a.wrong = false, ""
	case "enter":
		if a.replace([]byte(a.input.String())) {
			a.editing = false
		}
	case "up":
		a.input.vertical(-1)
	case "down":
		a.input.vertical(1)
	default:
		a.wrong = ""
		a.input.key(name, text)
	}
}

// replace takes other arguments, where they are a JSON object.
func (a *approvalPrompt) replace(text []byte) bool {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(text, &object); err != nil || object == nil {
		a.wrong = "the arguments have to be a JSON object"
		if err != nil {
			a.wrong += ": " + Plain(err.Error())
		}
		return false
	}
	a.Arguments, a.wrong = text, ""
	return true
}

// indented is JSON as a person edits it.
func indented(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return spelled(b.String())
}

// spelled is JSON with letters in the place of their escapes, but for those that do
// not show, or mean something to JSON or a terminal.
func spelled(text string) string {
	var b strings.Builder
	for {
		i := strings.IndexByte(text, '\\')
		if i < 0 || i+1 == len(text) {
			return b.String() + text
		}
		b.WriteString(text[:i])
		text = text[i:]
		n := 2
		if r, ok := escape(text); ok {
			n = 6
			if utf16.IsSurrogate(r) {
				low, _ := escape(text[6:])
				r, n = utf16.DecodeRune(r, low), 12
			}
			if r != '"' && r != '\\' && r != unicode.ReplacementChar && unicode.IsPrint(r) && !Drives(r) {
				b.WriteRune(r)
				text = text[n:]
				continue
			}
			n = 6
		}
		b.WriteString(text[:n])
		text = text[n:]
	}
}

// escape is the letter of the escape, as \u00e9, that a text begins with.
func escape(text string) (rune, bool) {
	if len(text) < 6 || text[:2] != `\u` {
		return 0, false
	}
	n, err := strconv.ParseUint(text[2:6], 16, 16)
	return rune(n), err == nil
}

// title says what is asked.
func (a *approvalPrompt) title() line {
	out := line{{"Call ", normal}, {Plain(bare(a.Tool)), bold}}
	switch {
	case a.Skill != "":
		out = append(out, span{" of the skill " + Plain(a.Skill), normal})
	case a.Server != "":
		out = append(out, span{" of " + Plain(a.Server), normal})
	}
	return append(out, span{"?", normal})
}

func (a *approvalPrompt) whole(width int) []line {
	if !a.call() {
		return wrapAll(textLines(a.message, normal), width)
	}
	out := a.title().wrap(width, nil)
	if a.Reason != "" {
		out = append(out, words("because "+Plain(a.Reason), faint).wrap(width, nil)...)
	}
	if a.changed() {
		out = append(out, words("with arguments that you changed", purple).wrap(width, nil)...)
	}
	for _, l := range argumentLines(a.Tool, a.Arguments, a.before) {
		indent := line{{"  ", normal}}
		for i, part := range l.wrap(width-2, indent) {
			if i == 0 {
				part = append(append(line{}, indent...), part...)
			}
			out = append(out, part)
		}
	}
	return out
}

func (a *approvalPrompt) show(width, height int) (out []line, x, y int) {
	if a.editing {
		return a.showEdit(width, height)
	}
	exact := ""
	if a.SameArguments {
		exact = ", just so"
	}
	choices := []string{"y", "yes", "n", "no", "s", "for this conversation" + exact, "a", "always" + exact, "e", "edit", "d", "show all"}
	if !a.call() {
		choices = []string{"y", "yes", "n", "no", "a", "always", "d", "show all"}
	}
	below := append([]line{nil}, keys(width, choices...)...)
	if a.wrong != "" {
		below = append(below, words(a.wrong, red).wrap(width, nil)...)
	}
	above := middle(a.whole(width), max(height-len(below), 4), "d")
	return append(above, below...), 0, len(above) + 1 // at the keys
}

func (a *approvalPrompt) showEdit(width, height int) (out []line, x, y int) {
	out = append(out, line{{"The arguments, as JSON", bold}}.clip(width))
	rows, x, y := a.input.rows(width)
	most := max(height-4, 3)
	from := max(min(y-most/2, len(rows)-most), 0)
	for _, r := range rows[from:min(from+most, len(rows))] {
		out = append(out, line{{r, normal}})
	}
	y += 1 - from
	if a.wrong != "" {
		out = append(out, words(a.wrong, red).clip(width))
	}
	return append(out, line{{"Enter done · Alt-Enter new line · Esc leave", faint}}.clip(width)), x, y
}

// keys names keys and what they do.
func keys(width int, pairs ...string) []line {
	var out []line
	var now line
	for i := 0; i+1 < len(pairs); i += 2 {
		next := line{{pairs[i], bold.and(cyan)}, {" " + pairs[i+1], normal}}
		if now.width() > 0 && now.width()+3+next.width() > width {
			out, now = append(out, now), nil
		}
		if now != nil {
			now = append(now, span{" · ", faint})
		}
		now = append(now, next...)
	}
	return append(out, now)
}
