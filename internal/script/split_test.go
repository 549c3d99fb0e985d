package script_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/loadout-dev/loadout/internal/script"
)

func TestSplit(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want []string
	}{
		{"", nil},
		{" \t\r\n", nil},
		{"a b  c", []string{"a", "b", "c"}},
		{`--title "two words" 'and more'`, []string{"--title", "two words", "and more"}},
		{`a"b c"d'e f'g`, []string{"ab cde fg"}},
		{`"" ''`, []string{"", ""}},
		{`a\ b \"c \\`, []string{"a b", `"c`, `\`}},
		{`"\$ \a \" \\ \n"`, []string{`$ \a " \ \n`}},
		{`'\n' \n`, []string{`\n`, "n"}},
		{"a\\\nb \\\n c", []string{"ab", "c"}},
		{"\"a\\\nb\"", []string{"ab"}},
		// Shell operators stay unchanged.
		{"$HOME ${X} $(id) `id`", []string{"$HOME", "${X}", "$(id)", "`id`"}},
		{"a;b | c > d 2>&1 < e && f & (g) {h,i}", []string{"a;b", "|", "c", ">", "d", "2>&1", "<", "e", "&&", "f", "&", "(g)", "{h,i}"}},
		{`*.py ? [a] ~ # not a comment !x`, []string{"*.py", "?", "[a]", "~", "#", "not", "a", "comment", "!x"}},
		{`{"k": 1}`, []string{"{k:", "1}"}},
		{`'{"k": 1}'`, []string{`{"k": 1}`}},
		{"größe 日本\u00a0語", []string{"größe", "日本\u00a0語"}},
	} {
		got, err := script.Split(tt.in)
		if err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("Split(%q) = %q, %v; want %q", tt.in, got, err, tt.want)
		}
	}
	for in, want := range map[string]error{`a "b`: script.ErrQuote, `it's`: script.ErrQuote, `"a\"`: script.ErrQuote, `a\`: script.ErrBackslash} {
		if got, err := script.Split(in); !errors.Is(err, want) || got != nil {
			t.Errorf("Split(%q) = %q, %v; want %v", in, got, err, want)
		}
	}
}

// The three ways to quote a word for a shell.
func single(w string) string { return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'" }

func double(w string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`").Replace(w) + `"`
}

func escaped(w string) string {
	var b strings.Builder
	for _, r := range w {
		if r == '\n' { // an escaped line end is none
			b.WriteString("'\n'")
			continue
		}
		b.WriteString(`\` + string(r))
	}
	if b.Len() == 0 {
		return "''"
	}
	return b.String()
}

func TestSplitUndoesQuoting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOf(rapid.OneOf(rapid.String(), rapid.StringMatching("[ a\"'\\\\$`;|>\n\t#*-]*"))).Draw(t, "words")
		var line []string
		for _, w := range words {
			quote := rapid.SampledFrom([]func(string) string{single, double, escaped}).Draw(t, "quote")
			line = append(line, quote(w))
		}
		got, err := script.Split(strings.Join(line, rapid.SampledFrom([]string{" ", "  ", "\t", "\n"}).Draw(t, "gap")))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(words, got, cmp.Transformer("", func(s []string) []string { return append([]string{}, s...) })); diff != "" {
			t.Fatal(diff)
		}
	})
}

func FuzzSplit(f *testing.F) {
	for _, s := range []string{`a 'b c' "d\"e" f\ g`, "a;b|c>`d`$(e)", `"`, `\`, "''", "a\\\nb"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		words, err := script.Split(s)
		if err != nil {
			if words != nil {
				t.Fatal("words with an error")
			}
			return
		}
		// Splitting adds nothing and removes only quotes.
		if n := len(strings.Join(words, "")); n > len(s) {
			t.Fatalf("%q became longer: %q", s, words)
		}
		if !strings.ContainsAny(s, `"'\`) && !slices.Equal(words, strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(" \t\r\n", r) })) {
			t.Fatalf("%q without quotes became %q", s, words)
		}
		var line []string
		for _, w := range words {
			line = append(line, single(w))
		}
		again, err := script.Split(strings.Join(line, " "))
		if err != nil || !slices.Equal(words, again) {
			t.Fatalf("%q -> %q -> %q, %v", s, words, again, err)
		}
	})
}
