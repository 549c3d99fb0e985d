package terminal

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// input is text that the user entered.
type input struct {
	text   string
	pasted []extent // the pasted parts of text, in order
}

// Unsent holds what a user typed in a conversation but did not send. The zero
// value holds nothing.
type Unsent struct{ in input }

// extent is a range of byte offsets in text.
type extent struct{ from, to int }

// Limits for pasted text. Longer text is folded: it is shown as a label.
const (
	maxPasteLines      = 5
	maxPasteCharacters = 800
)

func isFolded(pasted string) bool {
	return countLines(pasted) > maxPasteLines || len(pasted) > maxPasteCharacters && utf8.RuneCountInString(pasted) > maxPasteCharacters
}

// pasteLabel returns the label that is shown instead of pasted, the nth block
// of folded text in an input.
func pasteLabel(n int, pasted string) string {
	if lines := countLines(pasted); lines > 1 {
		return fmt.Sprintf("[Pasted text #%d, %d lines]", n, lines)
	}
	return fmt.Sprintf("[Pasted text #%d]", n)
}

// countLines returns the number of lines in text. A line break at the end does
// not start another line.
func countLines(text string) int { return strings.Count(strings.TrimSuffix(text, "\n"), "\n") + 1 }

// shown returns the text with a label in place of each folded part.
func (in input) shown() string {
	var b strings.Builder
	at, n := 0, 0
	for _, p := range in.pasted {
		if part := in.text[p.from:p.to]; isFolded(part) {
			n++
			b.WriteString(in.text[at:p.from] + pasteLabel(n, part))
			at = p.to
		}
	}
	return b.String() + in.text[at:]
}

// trim returns the input without the characters of left at its start and those
// of right at its end, as in [strings.Trim].
func (in input) trim(left, right string) input {
	from := len(in.text) - len(strings.TrimLeft(in.text, left))
	to := max(len(strings.TrimRight(in.text, right)), from)
	out := input{text: in.text[from:to]}
	for _, p := range in.pasted {
		if a, b := max(p.from, from), min(p.to, to); a < b {
			out.pasted = append(out.pasted, extent{a - from, b - from})
		}
	}
	return out
}

// joinInputs joins inputs by line breaks.
func joinInputs(all []input) input {
	var out input
	for i, in := range all {
		if i > 0 {
			out.text += "\n"
		}
		for _, p := range in.pasted {
			out.pasted = append(out.pasted, extent{p.from + len(out.text), p.to + len(out.text)})
		}
		out.text += in.text
	}
	return out
}

// files returns the paths that the user typed after an @ at the start of a word.
// A path with spaces is in double quotes. Paths in pasted text are ignored.
func (in input) files() []string {
	var out []string
	space := true // whether the previous character ends a word
	for i := 0; i < len(in.text); {
		if p := slices.IndexFunc(in.pasted, func(p extent) bool { return p.from <= i && i < p.to }); p >= 0 {
			r, _ := utf8.DecodeLastRuneInString(in.text[i:in.pasted[p].to])
			i, space = in.pasted[p].to, unicode.IsSpace(r)
			continue
		}
		r, n := utf8.DecodeRuneInString(in.text[i:])
		if i += n; r != '@' || !space {
			space = unicode.IsSpace(r) || r == '('
			continue
		}
		end := len(in.text)
		for _, p := range slices.Backward(in.pasted) {
			if p.from >= i {
				end = p.from
			}
		}
		if name := mentionedPath(in.text[i:end]); name != "" && !slices.Contains(out, name) {
			out = append(out, name)
		}
		space = false
	}
	return out
}

// pastedFiles returns the paths after an @ that are not read because part of
// them is pasted. It ignores folded text.
func (in input) pastedFiles() []string {
	all := input{text: in.text}
	for _, p := range in.pasted {
		if isFolded(in.text[p.from:p.to]) {
			all.pasted = append(all.pasted, p)
		}
	}
	typed := in.files()
	return slices.DeleteFunc(all.files(), func(name string) bool { return slices.Contains(typed, name) })
}

// MentionedFiles returns the paths after an @ in a line that the user typed.
func MentionedFiles(text string) []string { return input{text: text}.files() }

// mentionedPath returns the path at the start of text.
func mentionedPath(text string) string {
	if quoted, ok := strings.CutPrefix(text, `"`); ok {
		name, _, _ := strings.Cut(quoted, `"`)
		return name
	}
	if i := strings.IndexFunc(text, unicode.IsSpace); i >= 0 {
		text = text[:i]
	}
	return text
}

// storedInput is the JSON form of an input with pasted parts. Other inputs are
// stored as a string.
type storedInput struct {
	Text   string   `json:"text"`
	Pasted [][2]int `json:"pasted"`
}

// MarshalJSON implements [json.Marshaler].
func (in input) MarshalJSON() ([]byte, error) {
	if len(in.pasted) == 0 {
		return json.Marshal(in.text)
	}
	out := storedInput{Text: in.text}
	for _, p := range in.pasted {
		out.Pasted = append(out.Pasted, [2]int{p.from, p.to})
	}
	return json.Marshal(out)
}

// UnmarshalJSON implements [json.Unmarshaler]. If the pasted parts are invalid,
// all text counts as pasted.
func (in *input) UnmarshalJSON(b []byte) error {
	if *in = (input{}); json.Unmarshal(b, &in.text) == nil {
		return nil
	}
	var stored storedInput
	if err := json.Unmarshal(b, &stored); err != nil {
		return err
	}
	in.text = stored.Text
	at := 0
	for _, p := range stored.Pasted {
		if p[0] < at || p[1] <= p[0] || p[1] > len(in.text) {
			in.pasted = []extent{{0, len(in.text)}}
			return nil
		}
		in.pasted, at = append(in.pasted, extent{p[0], p[1]}), p[1]
	}
	return nil
}
