package terminal

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTable(t *testing.T) {
	mark := func(open, end string) func(string) string { return func(s string) string { return open + s + end } }
	rows := [][]string{{"a", "b\nc", "a long description of it"}, {"日本", "", "x"}, {strings.Repeat("y", 41), "z", ""}}
	want := "  [a]     (b c)  a long description of it\n  [日本]  ()     x\n  [" + strings.Repeat("y", 41) + "]  (z)\n"
	got := Layout{Bold: mark("[", "]"), Faint: mark("(", ")")}.Table("  ", rows)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	plain := func(s string) string { return s }
	if got := (Layout{Width: 20, Bold: plain, Faint: plain}).Table("", [][]string{{"a", "a description that is too long"}}); got != "a  a description that…\n" {
		t.Errorf("%q", got)
	}
}

func TestWrap(t *testing.T) {
	style := func(s string) string { return "<" + s + ">" }
	if got := (Layout{Width: 12}).Wrap("  ", "one two\nthree four", style); got != "  <one two>\n  <three four>\n" {
		t.Errorf("%q", got)
	}
	if got := (Layout{}).Wrap("", "one two three", style); got != "<one two three>\n" {
		t.Errorf("%q", got)
	}
	if got := (Layout{Width: 4}).Wrap("", " ", style); got != "" {
		t.Errorf("%q", got)
	}
}

// Widths of ASCII are counted in bytes, but not those of other texts.
func TestWidth(t *testing.T) {
	for s, want := range map[string]int{"": 0, "csv-analysis ~": 14, "café": 4, "文档": 4, "e\u0301": 1, "\x1b[1mbold\x1b[m": 4, "a\x7f": 1, "👩‍💻": 2} {
		if got := Width(s); got != want {
			t.Errorf("Width(%q) = %d, want %d", s, got, want)
		}
	}
}
