package console

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

func TestShellQuote(t *testing.T) {
	for word, want := range map[string]string{"": "''", "a-b/c.d": "a-b/c.d", "a b": "'a b'", "it's": `'it'\''s'`, "$HOME": "'$HOME'"} {
		if got := ShellQuote(word); got != want {
			t.Errorf("%q becomes %s, want %s", word, got, want)
		}
	}
}

// JSON can contain characters that control a terminal; they are escaped.
func TestEncodeJSON(t *testing.T) {
	got, err := EncodeJSON(map[string]string{"a": "<b>\u009b2J\u202e"})
	if want := "{\n  \"a\": \"<b>\\u009b2J\\u202e\"\n}\n"; err != nil || string(got) != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
}

func TestFormatSize(t *testing.T) {
	for n, want := range map[int64]string{1: "1 byte", 9_999: "9999 bytes", 10_499: "10 kB", 1_250_000: "1.2 MB"} {
		if got := FormatSize(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}

// Answers that were typed ahead are kept for the next question.
func TestConfirm(t *testing.T) {
	var shown bytes.Buffer
	c := &Console{Stdin: strings.NewReader("yes\nn\n"), Stdout: io.Discard, Stderr: &shown}
	for _, want := range []bool{true, false, false} {
		if got, err := c.Confirm(t.Context(), "Go on?"); err != nil || got != want {
			t.Errorf("%v, %v; want %v", got, err, want)
		}
	}
	if n := strings.Count(shown.String(), "Go on? [y/N] "); n != 3 {
		t.Errorf("asked %d times: %q", n, shown.String())
	}
}

func TestStdoutWriterRemembersFirstError(t *testing.T) {
	in, out := io.Pipe()
	in.CloseWithError(io.ErrUnexpectedEOF)
	w := &StdoutWriter{Writer: out}
	_, _ = w.Write([]byte("a"))
	out.CloseWithError(io.ErrShortWrite)
	_, _ = w.Write([]byte("b"))
	if w.Err != io.ErrUnexpectedEOF {
		t.Errorf("remembers %v", w.Err)
	}
}
