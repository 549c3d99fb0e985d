package skilldiff_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/skilldiff"
)

func TestUnified(t *testing.T) {
	numbers := func(from, to int) string {
		var b strings.Builder
		for i := from; i <= to; i++ {
			fmt.Fprintln(&b, i)
		}
		return b.String()
	}
	long := strings.Repeat("x", 300)
	for _, test := range []struct {
		name, old, new, want string
	}{
		{"the same", "a\n", "a\n", ""},
		{"nothing", "", "", ""},
		{"one line", numbers(1, 9), numbers(1, 4) + "five\n" + numbers(6, 9), "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"},
		{"two hunks", numbers(1, 20), "0\n" + numbers(1, 19), "@@ -1,3 +1,4 @@\n+0\n 1\n 2\n 3\n@@ -17,4 +18,3 @@\n 17\n 18\n 19\n-20\n"},
		{"all new", "", "a\nb\n", "@@ -0,0 +1,2 @@\n+a\n+b\n"},
		{"all gone", "a\nb\n", "", "@@ -1,2 +0,0 @@\n-a\n-b\n"},
		{"no line end", "a\nb", "a\nb\n", "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n"},
		{"CRLF in both", "a\r\nb\r\n", "a\r\nc\r\n", "@@ -1,2 +1,2 @@\n a\n-b\n+c\n"},
		{"CRLF in one", "a\n", "a\r\n", "@@ -1,1 +1,1 @@\n-a\n+a\\r\n"},
		{"CRLF in some lines", "a\r\nb\n", "a\nb\n", "@@ -1,2 +1,2 @@\n-a\\r\n+a\n b\n"},
		{"white space", "a\n\tb\n", "a\n  b\n", "@@ -1,2 +1,2 @@\n a\n-\tb\n+  b\n"},
		{"what does not show", "a\n", "a\x1b[31m\u202eb\u200b\xff\x00\U000e0041\n", "@@ -1,1 +1,1 @@\n-a\n+a\\u{1b}[31m\\u{202e}b\\u{200b}\\xff\\u{0}\\u{e0041}\n"},
		{"a long line", long + "a" + long + "\n", long + "b" + long + "\n",
			"@@ -1,1 +1,1 @@\n-…" + long[:30] + "a" + long[:30] + "…\n+…" + long[:30] + "b" + long[:30] + "…\n"},
		{"bytes that are no text in a long line", long + "\xfe\n", long + "\xff\n",
			"@@ -1,1 +1,1 @@\n-…" + long[:27] + `\xfe` + "\n+…" + long[:27] + `\xff` + "\n"},
		{"a new long line", "", long + long + "\n", "@@ -0,0 +1,1 @@\n+" + long + long[:200] + "… (100 bytes more)\n"},
		{"each line with the one in its place", long + "a\n" + long + "b\n", long + "c\n" + long + "d\n",
			"@@ -1,2 +1,2 @@\n-…" + long[:30] + "a\n-…" + long[:30] + "b\n+…" + long[:30] + "c\n+…" + long[:30] + "d\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			want := test.want
			if want != "" {
				want = "--- old\\u{1b}\n+++ new\n" + want
			}
			got := skilldiff.Unified([]byte(test.old), []byte(test.new), "old\x1b", "new", nil)
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestUnifiedLimit(t *testing.T) {
	got := skilldiff.Unified(nil, []byte(strings.Repeat("a\n", 1000)), "a", "b", &skilldiff.Options{FileBytes: 100})
	if len(got) > 200 || !strings.HasSuffix(got, " more lines of the diff are not shown\n") {
		t.Errorf("%d bytes:\n%s", len(got), got)
	}
	shown := strings.Count(got, "\n+a")
	if want := fmt.Sprintf("… %d more lines", 1000-shown); shown == 0 || !strings.Contains(got, want) {
		t.Errorf("%d lines are shown:\n%s", shown, got)
	}
	// Two texts that have little in common take no longer than the table allows.
	var a, b bytes.Buffer
	for i := range 100_000 {
		fmt.Fprintf(&a, "%d\n", i)
		fmt.Fprintf(&b, "%d\n", i^1)
	}
	d := compare(t, with("", "a", a.String()), with("", "a", b.String()), nil)
	if f := d.Files[0]; f.Added != 100_000 || f.Removed != 100_000 {
		t.Errorf("%+v", f)
	}
}

// FuzzUnified checks that line counts add up, that a difference contains no terminal
// controls, and that applying it to the old text gives the new one if every line is
// shown unchanged.
func FuzzUnified(f *testing.F) {
	for _, s := range [][2]string{{"", ""}, {"a\nb\n", "a\nc\nb"}, {"a\r\n", "a\n"}, {"\x00\xff", "\u202e\n\n"}, {"1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n3\n4\n5\n6\n7\n8\nx\n9\n"}} {
		f.Add([]byte(s[0]), []byte(s[1]))
	}
	whole := &skilldiff.Options{FileBytes: 1 << 30, LineBytes: 1 << 30}
	f.Fuzz(func(t *testing.T, old, new []byte) {
		got := skilldiff.Unified(old, new, "old", "new", whole)
		if (got == "") != bytes.Equal(old, new) {
			t.Fatalf("%q to %q: %q", old, new, got)
		}
		if i := strings.IndexFunc(got, func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsPrint(r) }); i >= 0 || !utf8.ValidString(got) {
			t.Errorf("it is not safe to show: %q", got)
		}
		added, removed := count(got)
		if lines(old)-removed+added != lines(new) {
			t.Errorf("%d lines, %d removed, %d added, %d lines: %q", lines(old), removed, added, lines(new), got)
		}
		d := compare(t, fstest.MapFS{"SKILL.md": {Data: old}}, fstest.MapFS{"SKILL.md": {Data: new}}, &skilldiff.Options{NoScan: true})
		if len(d.Files) == 1 && (d.Files[0].Added != added || d.Files[0].Removed != removed) {
			t.Errorf("%+v, and shown are %d and %d", d.Files[0], added, removed)
		}
		if made, ok := apply(string(old), got); plain(old) && plain(new) && got != "" && (!ok || made != string(new)) {
			t.Errorf("%q by\n%s is %q, not %q", old, got, made, new)
		}
	})
}

func lines(text []byte) int {
	n := bytes.Count(text, []byte("\n"))
	if len(text) > 0 && text[len(text)-1] != '\n' {
		n++
	}
	return n
}

// count is the lines that a difference adds and removes.
func count(diff string) (added, removed int) {
	for i, line := range strings.Split(diff, "\n") {
		switch {
		case i < 2: // the names
		case strings.HasPrefix(line, "+"):
			added++
		case strings.HasPrefix(line, "-"):
			removed++
		}
	}
	return added, removed
}

// plain reports whether every line of a text is shown completely and unchanged.
func plain(text []byte) bool {
	for line := range bytes.Lines(text) {
		if len(line) > 100 {
			return false
		}
	}
	return !bytes.ContainsFunc(text, func(r rune) bool { return r != '\n' && (r < ' ' || r > '~') })
}

// apply makes the new text of the old one, as a tool would.
func apply(old, diff string) (string, bool) {
	rest := strings.SplitAfter(old, "\n")
	var out []string
	at := 0 // lines of old that were dealt with
	parts := strings.Split(strings.TrimSuffix(diff, "\n"), "\n")
	for i := 2; i < len(parts); i++ {
		line := parts[i]
		var first, n int
		if _, err := fmt.Sscanf(line, "@@ -%d,%d", &first, &n); err == nil && strings.HasPrefix(line, "@@") {
			if n > 0 {
				first--
			}
			out = append(out, rest[at:first]...)
			at = first
			continue
		}
		text := line[1:] + "\n"
		if i+1 < len(parts) && strings.HasPrefix(parts[i+1], `\ No newline`) {
			text = line[1:]
			i++
		}
		if line[0] != '+' {
			if at >= len(rest) || rest[at] != text {
				return fmt.Sprintf("line %d is %q", at, text), false
			}
			at++
		}
		if line[0] != '-' {
			out = append(out, text)
		}
	}
	return strings.Join(append(out, rest[at:]...), ""), true
}
