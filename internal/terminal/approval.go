package terminal

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/approval"
	"github.com/loadout-dev/loadout/policy"
)

// RequestOf returns the tool call to approve. It returns false if the request
// is not for a call.
func RequestOf(q *approval.Request) (*loadout.CallRequest, bool) {
	r := &loadout.CallRequest{}
	if q.Kind != approval.KindApproval || json.Unmarshal(q.Payload, r) != nil || r.Tool == "" {
		return nil, false
	}
	return r, true
}

// approvalPrompt is the dialog for approving a tool call, or the action
// described by a message.
type approvalPrompt struct {
	loadout.CallRequest // Tool is empty if the request is not for a call
	message             string
	before              func(string) (string, bool)
	original            json.RawMessage // arguments as the model wrote them
	editing             bool
	input               editor
	problem             string
}

func newApproval(q *approval.Request, before func(string) (string, bool)) *approvalPrompt {
	a := &approvalPrompt{message: q.Message, before: before}
	if r, ok := RequestOf(q); ok {
		a.CallRequest, a.original = *r, r.Arguments
	}
	return a
}

// isCall reports whether the request is for a tool call, whose arguments the
// user can edit.
func (a *approvalPrompt) isCall() bool { return a.Tool != "" }

func (a *approvalPrompt) changed() bool { return !equalJSON(a.original, a.Arguments) }

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
		if a.isCall() {
			a.editing = true
			a.input.set(indentJSON(a.Arguments))
		}
	}
	if name == "esc" || name == "ctrl+c" {
		return &approval.Answer{Outcome: approval.Declined}
	}
	return nil
}

// accept returns an answer that allows the call. Edited arguments are allowed
// only once, because saved permissions do not cover arguments.
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
		a.editing, a.problem = false, ""
	case "enter":
		if a.replace([]byte(a.input.String())) {
			a.editing = false
		}
	case "up":
		a.input.moveVertically(-1)
	case "down":
		a.input.moveVertically(1)
	default:
		a.problem = ""
		a.input.key(name, text)
	}
}

// replace sets the arguments from text. It returns false and sets the problem
// if text is not a JSON object.
func (a *approvalPrompt) replace(text []byte) bool {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(text, &object); err != nil || object == nil {
		a.problem = "arguments must be a JSON object"
		if err != nil {
			a.problem += ": " + Plain(err.Error())
		}
		return false
	}
	a.Arguments, a.problem = text, ""
	return true
}

// indentJSON formats JSON for the editor.
func indentJSON(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return unescapeJSON(b.String())
}

// unescapeJSON replaces \u escapes with their characters, except for characters
// that are invisible or have a special meaning in JSON or in a terminal.
func unescapeJSON(text string) string {
	var b strings.Builder
	for {
		i := strings.IndexByte(text, '\\')
		if i < 0 || i+1 == len(text) {
			return b.String() + text
		}
		b.WriteString(text[:i])
		text = text[i:]
		n := 2
		if r, ok := decodeEscape(text); ok {
			n = 6
			if utf16.IsSurrogate(r) {
				low, _ := decodeEscape(text[6:])
				r, n = utf16.DecodeRune(r, low), 12
			}
			if r != '"' && r != '\\' && r != unicode.ReplacementChar && unicode.IsPrint(r) && !IsControl(r) {
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

// decodeEscape decodes the \u escape at the start of text. It returns false for
// an invalid escape.
func decodeEscape(text string) (rune, bool) {
	if len(text) < 6 || text[:2] != `\u` {
		return 0, false
	}
	n, err := strconv.ParseUint(text[2:6], 16, 16)
	return rune(n), err == nil
}

// title returns the first line of the prompt.
func (a *approvalPrompt) title() line {
	out := line{{"Call ", normal}, {Plain(baseName(a.Tool)), bold}}
	switch {
	case a.Skill != "":
		out = append(out, span{" of the skill " + Plain(a.Skill), normal})
	case a.Server != "":
		out = append(out, span{" of " + Plain(a.Server), normal})
	}
	return append(out, span{"?", normal})
}

func (a *approvalPrompt) render(width int) []line {
	if !a.isCall() {
		return wrapAll(textLines(a.message, normal), width)
	}
	out := a.title().wrap(width, nil)
	if a.Reason != "" {
		out = append(out, styledText("because "+Plain(a.Reason), faint).wrap(width, nil)...)
	}
	if a.changed() {
		out = append(out, styledText("with your edited arguments", purple).wrap(width, nil)...)
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
		exact = " with these arguments"
	}
	choices := []string{"y", "yes", "n", "no", "s", "for this conversation" + exact, "a", "always" + exact, "e", "edit", "d", "show all"}
	if !a.isCall() {
		choices = []string{"y", "yes", "n", "no", "a", "always", "d", "show all"}
	}
	below := append([]line{nil}, keyHints(width, choices...)...)
	if a.problem != "" {
		below = append(below, styledText(a.problem, red).wrap(width, nil)...)
	}
	above := cutMiddle(a.render(width), max(height-len(below), 4), "d")
	return append(above, below...), 0, len(above) + 1 // cursor at the key hints
}

func (a *approvalPrompt) showEdit(width, height int) (out []line, x, y int) {
	out = append(out, line{{"Arguments (JSON)", bold}}.clip(width))
	rows, x, y := a.input.rows(width)
	most := max(height-4, 3)
	from := max(min(y-most/2, len(rows)-most), 0)
	for _, r := range rows[from:min(from+most, len(rows))] {
		out = append(out, line{{r, normal}})
	}
	y += 1 - from
	if a.problem != "" {
		out = append(out, styledText(a.problem, red).clip(width))
	}
	return append(out, line{{"Enter done · Alt-Enter new line · Esc cancel", faint}}.clip(width)), x, y
}

// keyHints formats pairs of a key and its action.
func keyHints(width int, pairs ...string) []line {
	var out []line
	var now line
	for i := 0; i+1 < len(pairs); i += 2 {
		next := line{{pairs[i], bold.combine(cyan)}, {" " + pairs[i+1], normal}}
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
