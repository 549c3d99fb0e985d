package terminal

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestEditorKeys(t *testing.T) {
	for _, tt := range []struct {
		name, text, keys, want string // | is the cursor
	}{
		{"letters", "", "a b", "ab|"},
		{"left and delete", "abc", "left left delete", "a|c"},
		{"backspace takes a whole letter", "e\u0301👨‍👩‍👧", "backspace", "e\u0301|"},
		{"words", "one two three", "ctrl+left ctrl+left", "one |two three"},
		{"the word before", "one two", "ctrl+w", "one |"},
		{"to the end of the line", "one\ntwo", "home ctrl+k", "one\n|"},
		{"the line break at the end of a line", "one\ntwo", "home left ctrl+k", "one|two"},
		{"to the beginning of the line", "one\ntwo", "left ctrl+u", "one\n|o"},
		{"a new line", "one", "alt+enter", "one\n|"},
		{"nothing before the beginning", "", "left backspace ctrl+w ctrl+u", "|"},
		{"a key without a meaning", "a", "f5", "a|"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var e editor
			e.set(tt.text)
			for k := range strings.FieldsSeq(tt.keys) {
				text := ""
				if len(k) == 1 {
					text = k
				}
				e.key(k, text)
			}
			got := joinLetters(e.letters[:e.at]) + "|" + joinLetters(e.letters[e.at:])
			if got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

// Whatever is typed, the rows are the text, and the cursor is on one of them.
func TestEditorRows(t *testing.T) {
	keys := []string{"a", "文", " ", "left", "right", "home", "end", "backspace", "alt+enter", "ctrl+w", "ctrl+k", "ctrl+left", "delete"}
	rapid.Check(t, func(t *rapid.T) {
		var e editor
		for _, k := range rapid.SliceOf(rapid.SampledFrom(keys)).Draw(t, "keys") {
			text := k
			if len(k) > 3 {
				text = ""
			}
			e.key(k, text)
		}
		width := rapid.IntRange(8, 20).Draw(t, "width")
		rows, x, y := e.rows(width)
		if y < 0 || y >= len(rows) || x < 0 || x >= width+1 {
			t.Fatalf("the cursor is at %d,%d of %q", x, y, rows)
		}
		for _, row := range rows {
			if Width(row) > width {
				t.Fatalf("row %q has more than %d columns", row, width)
			}
		}
		all := strings.NewReplacer("\n", "", " ", "") // spaces are omitted where a row ends
		if got, want := all.Replace(strings.Join(rows, "")), all.Replace(e.String()); got != want {
			t.Fatalf("rows %q of %q", rows, e.String())
		}
	})
}

// What is pasted is text: it ends nothing, and drives nothing.
func TestEditorPaste(t *testing.T) {
	var e editor
	e.insert("one\r\ntwo\rthree\t\x1b[2J\u202e")
	if got, want := e.String(), "one\ntwo\nthree    [2J"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
