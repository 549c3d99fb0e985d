package terminal_test

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/internal/terminal"
)

// filter returns the output of a filter for writes in turn.
func filter(t testing.TB, writes ...string) string {
	t.Helper()
	var out strings.Builder
	f := terminal.NewFilter(&out)
	for _, w := range writes {
		if n, err := f.Write([]byte(w)); n != len(w) || err != nil {
			t.Fatalf("write %q: %d, %v", w, n, err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestFilter(t *testing.T) {
	const reset = "\x1b[0m"
	for _, tt := range []struct{ what, in, want string }{
		{"text", "a b\tc\r\n日本 héllo 👩‍👩‍👧 𝒳\n", "a b\tc\r\n日本 héllo 👩‍👩‍👧 𝒳\n"},
		{"a progress bar", "10%\r\x1b[K20%\b\b\b30%\x1b[2K", "10%\r\x1b[K20%\b\b\b30%\x1b[2K"},
		{"a spinner", "a\x1b[1Gb\x1b[0Gc\x1b[G\x1b[Kd", "a\rb\rc\r\x1b[Kd"},
		{"other columns", "a\x1b[2Gb\x1b[?1Gc\x1b[1;1Gd\x1b[01Ge", "abcde"},
		{"colors", "\x1b[1;31mred\x1b[0m \x1b[38;2;1;2;3mx\x1b[m \x1b[4:3mcurly\x1b[00m", "\x1b[1;31mred\x1b[0m \x1b[38;2;1;2;3mx\x1b[m \x1b[4:3mcurly\x1b[00m"},
		{"a color that is left on", "\x1b[8mhidden", "\x1b[8mhidden" + reset},
		{"a title", "a\x1b]0;pwned\x07b\x1b]2;pwned\x1b\\c", "abc"},
		{"the clipboard", "a\x1b]52;c;ZXZpbA==\x07b", "ab"},
		{"a link", "\x1b]8;;file:///etc/passwd\x1b\\click\x1b]8;;\x1b\\", "click"},
		{"clearing the screen", "a\x1b[2Jb\x1b[3J\x1bcc", "abc"},
		{"cursor movement", "a\x1b[Ab\x1b[10;10Hc\x1b[6nd\x1b7e\x1b8f", "abcdef"},
		{"the alternate screen", "\x1b[?1049ha\x1b[?25lb", "ab"},
		{"sequences that resemble colors", "a\x1b[>4;2mb\x1b[?4mc\x1b[1 md\x1b[3Ke\x1b[?Kf", "abcdef"},
		{"device strings", "a\x1bPq#0\x1b\\b\x1b_x\x1b\\c\x1b^y\x1b\\d\x1bXz\x1b\\e", "abcde"},
		{"character sets", "a\x1b(0b\x1b%Gc", "abc"},
		{"C1 in UTF-8", "a\u009b31mb\u009d0;x\u009cc\u0085d\u0090e\u009cf", "abcdf"},
		{"C1 as bytes", "a\x9b2Jb", "a\ufffd2Jb"},
		{"other controls", "a\x07b\x00c\x0bd\x0ce\x0ef\x7fg", "abcdefg"},
		{"reordered text", "a\u202eb\u2066c\u2069d\u200ee\u061cf", "abcdef"},
		{"an interrupted sequence", "a\x1b[3\x1b[31mb\x1b[0m\x1b\nc\x1b[1\nd", "a\x1b[31mb\x1b[0m\nc\nd"},
		{"a string that does not end", "a\x1b]0;" + strings.Repeat("x", 65<<10) + "b", "a" + strings.Repeat("x", 1<<10-1+2) + "b"},
		{"an incomplete end", "a\x1b[3", "a"},
		{"an incomplete character", "a\xe6\x97", "a\ufffd"},
		{"an overlong color", "a\x1b[" + strings.Repeat("1;", 100) + "mb", "ab"},
	} {
		if got := filter(t, tt.in); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.what, got, tt.want)
		}
		for i := range min(len(tt.in), 64) {
			if got := filter(t, tt.in[:i], tt.in[i:]); got != tt.want {
				t.Errorf("%s: split at %d: %q, want %q", tt.what, i, got, tt.want)
			}
		}
	}
}

// A sequence is not written before it is complete: another stream of the same
// terminal could complete it.
func TestFilterHoldsIncompleteSequences(t *testing.T) {
	var out strings.Builder
	f := terminal.NewFilter(&out)
	for _, tt := range [][2]string{{"a\x1b", "a"}, {"[3", "a"}, {"1m", "a\x1b[31m"}, {"\xe6\x97", "a\x1b[31m"}, {"\xa5", "a\x1b[31m日"}} {
		if _, err := f.Write([]byte(tt[0])); err != nil || out.String() != tt[1] {
			t.Errorf("after %q: %q, want %q; %v", tt[0], out.String(), tt[1], err)
		}
	}
}

var (
	allowedSequence = regexp.MustCompile(`\x1b\[(?:[0-9;:]{0,64}m|[012]?K)`)
	forbidden       = regexp.MustCompile(`[\x00-\x07\x0b\x0c\x0e-\x1f\x7f\x{80}-\x{9f}\x{61c}\x{200e}\x{200f}\x{202a}-\x{202e}\x{2066}-\x{2069}]`)
)

func FuzzFilter(f *testing.F) {
	for _, s := range []string{"a\x1b[31mb\x1b[0m", "\x1b]52;c;eA==\x07", "\u009b2J", "\xe6\x97\xa5\x9b", "\x1b[2K\r\b\t\n", "\x1bP\x1b\x1b[m"} {
		f.Add(s, 3)
	}
	f.Fuzz(func(t *testing.T, s string, at int) {
		got := filter(t, s)
		if rest := allowedSequence.ReplaceAllString(got, ""); forbidden.MatchString(rest) || !utf8.ValidString(got) {
			t.Errorf("%q: %q contains a forbidden character", s, got)
		}
		if at = max(0, min(at, len(s))); filter(t, s[:at], s[at:]) != got {
			t.Errorf("%q: split at %d: %q, want %q", s, at, filter(t, s[:at], s[at:]), got)
		}
		plain := allowedSequence.ReplaceAllString(s, "")
		if utf8.ValidString(s) && !forbidden.MatchString(plain) && got != s && got != s+"\x1b[0m" {
			t.Errorf("%q: %q, want it unchanged", s, got)
		}
		if again := filter(t, got); again != got {
			t.Errorf("%q: filtered again %q, want %q", s, again, got)
		}
	})
}
