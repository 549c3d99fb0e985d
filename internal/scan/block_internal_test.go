package scan

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// describeBlocks returns a line for each block of a Markdown file.
func describeBlocks(text string) string {
	var out []string
	for _, b := range newSource("a.md", []byte(text)).splitBlocks() {
		kind := "code"
		if b.prose {
			kind = "prose"
		}
		out = append(out, fmt.Sprintf("%s %d %q", kind, b.language, text[b.start:b.end]))
	}
	return strings.Join(out, "\n")
}

func TestMarkdownBlocks(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"prose", "a\nb", `prose 128 "a\nb"`},
		{"fenced", "a\n```sh\nls\n```\nb\n", "prose 128 \"a\\n\"\ncode 1 \"ls\\n\"\nprose 128 \"b\\n\""},
		{"no prose before", "```Python x\nls\n```", "code 2 \"ls\\n\""},
		{"not closed", "~~~\nls", `code 16 "ls"`},
		{"two are no fence", "``\nls\n``", "prose 128 \"``\\nls\\n``\""},
		{"closed by the same mark only", "```\na\n~~~\nb\n```", "code 16 \"a\\n~~~\\nb\\n\""},
		{"closed by as many only", "````\na\n```\nb\n````", "code 16 \"a\\n```\\nb\\n\""},
		{"closed by more", "```\na\n````", "code 16 \"a\\n\""},
		{"not closed by a mark with text", "```\na\n```x\n```", "code 16 \"a\\n```x\\n\""},
		{"backquotes in the line", "```a`\nb", "prose 128 \"```a`\\nb\""},
		{"tildes with backquotes", "~~~a`\nb", `code 32 "b"`},
		{"indented and quoted fence", " > ```\n > a\n > ```", "code 16 \" > a\\n\""},
		{"unknown language", "```none\na\n```", "code 32 \"a\\n\""},
		{"language in braces", "```{.python}\na\n```", "code 2 \"a\\n\""},
		{"prose in a fence", "```md\na\n```\n```txt\nb\n```\n```text\nc\n```\n```markdown\nd\n```", "prose 128 \"a\\n\"\nprose 128 \"b\\n\"\nprose 128 \"c\\n\"\nprose 128 \"d\\n\""},
		{"command of 8 characters", "`rm -rf /`", "prose 128 \"`rm -rf /`\"\ncode 64 \"rm -rf /\""},
		{"command of 7 characters", "`rm -r /`", "prose 128 \"`rm -r /`\""},
		{"one word", "`something`", "prose 128 \"`something`\""},
		{"space at the start only", "` something`", "prose 128 \"` something`\""},
		{"two commands and a line that ends", "`git push a` `x\n`git push b`", "prose 128 \"`git push a` `x\\n`git push b`\"\ncode 64 \"git push a\"\ncode 64 \"git push b\""},
		{"indented by 4", "a\n    b\n     c\n", "prose 128 \"a\\n    b\\n     c\\n\"\ncode 64 \"    b\\n     c\\n\""},
		{"indented by 3", "a\n   b\n", `prose 128 "a\n   b\n"`},
		{"indented by a tab, twice", "\ta\n\n\tb\nx\n\tc", "prose 128 \"\\ta\\n\\n\\tb\\nx\\n\\tc\"\ncode 64 \"\\ta\\n\"\ncode 64 \"\\tb\\n\"\ncode 64 \"\\tc\""},
	} {
		if got := describeBlocks(tt.text); got != tt.want {
			t.Errorf("%s:\n%s\nwant\n%s", tt.name, got, tt.want)
		}
	}
}

func TestWarningsBeforeBlocks(t *testing.T) {
	for text, want := range map[string]bool{
		"":                                                    false,
		"Run this:":                                           false,
		"Never run this:":                                     true,
		"Never do it.\none\ntwo":                              true,
		"Never do it.\none\ntwo\nthree":                       false,
		"Never do it.\n\none\n\n\ntwo\n\n":                    true,
		"# Bad examples\none\ntwo\nthree":                     true,
		"# Bad examples\n# Good ones\nRun it":                 false,
		"never" + strings.Repeat(" ", 4095) + "x":             false,
		"x\nnever" + strings.Repeat("\n", 4090) + "x":         true,
		"x\n\n\nnever" + strings.Repeat("\n", 4096-1) + "x\n": false,
	} {
		if got := hasWarning([]byte(text)); got != want {
			t.Errorf("%.40q (%d bytes): %v", text, len(text), got)
		}
	}
	for text, want := range map[string]bool{"": false, "# dangerous\n": true, " // dangerous": true, "dangerous": false, "x # dangerous": false} {
		if got := hasWarningComment([]byte(text)); got != want {
			t.Errorf("comment %q: %v", text, got)
		}
	}
}

func TestQuotedPhrases(t *testing.T) {
	const phrase = "ignore all"
	for _, tt := range []struct {
		before, after string
		want          bool
	}{
		{"", "", false}, {`say "`, `" now`, true}, {`say "`, ` now`, false}, {`say "a" `, `" now`, false}, {"`", "`", true}, {"“", "“", true}, {`x`, `"`, false},
		{"an attack is ", "", true}, {"", " is an attack", true},
		{"attack " + strings.Repeat("x", 153), "", true}, {"attack " + strings.Repeat("x", 154), "", false},
		{"", strings.Repeat("x", 153) + " attack", true}, {"", strings.Repeat("x", 151) + " unsafe ", true},
		{"", strings.Repeat("x", 154) + " attack", false},
	} {
		unit := []byte(tt.before + phrase + tt.after)
		if got := isQuoted(unit, len(tt.before), len(tt.before)+len(phrase)); got != tt.want {
			t.Errorf("%.30q and %.30q (%d, %d bytes): %v", tt.before, tt.after, len(tt.before), len(tt.after), got)
		}
	}
}

func TestStatements(t *testing.T) {
	cut := func(spans []span, text string) string {
		var out []string
		for _, s := range spans {
			out = append(out, fmt.Sprintf("%q", text[s.start:s.end]))
		}
		return strings.Join(out, " ")
	}
	for _, tt := range []struct {
		language   language
		text, want string
	}{
		{shell, "a\nb", `"a\n" "b"`}, {shell, "a \\\nb\nc", `"a \\\nb\n" "c"`}, {shell, "a |\nb\nc", `"a |\nb\n" "c"`}, {shell, "a &&\nb\nc", `"a &&\nb\n" "c"`}, {shell, "a &\nb", `"a &\n" "b"`},
		{shell, "&\nb", `"&\n" "b"`}, {shell, "a `\nb", "\"a `\\n\" \"b\""}, {powershell, "a `\nb\nc", "\"a `\\nb\\n\" \"c\""}, {shell, "(\na", `"(\n" "a"`},
		{python, "f(\na)\nb", `"f(\na)\n" "b"`}, {python, "a |\nb", `"a |\n" "b"`}, {python, "a \\\nb\nc", `"a \\\nb\n" "c"`}, {python, ")\nf(\na)\nb", `")\n" "f(\na)\n" "b"`},
		{python, "d = {\n1}\nb", `"d = {\n1}\n" "b"`}, {python, "d = [\n1]\nb", `"d = [\n1]\n" "b"`}, {javascript, "f(() => {\na\n})\nb", `"f(() => {\n" "a\n" "})\n" "b"`},
		{config, "a \\\nb", `"a \\\nb"`}, {config, "a |\nb", `"a |\n" "b"`},
	} {
		if got := cut(splitStatements([]byte(tt.text), []byte(tt.text), tt.language), tt.text); got != tt.want {
			t.Errorf("%d %q: %s, want %s", tt.language, tt.text, got, tt.want)
		}
	}
	if got := cut(splitParagraphs([]byte("a\nb\n \nc\n\nd")), "a\nb\n \nc\n\nd"); got != `"a\nb\n \n" "c\n\n" "d"` {
		t.Errorf("paragraphs %s", got)
	}
	// Long units are cut at the limit.
	for n, want := range map[int][]int{maxUnit - 1: {maxUnit - 1}, maxUnit: {maxUnit}, maxUnit + 1: {maxUnit, 1}, 2*maxUnit + 1: {maxUnit, maxUnit, 1}} {
		text := []byte(strings.Repeat("x", n))
		for name, spans := range map[string][]span{"statements": splitStatements(text, text, shell), "paragraphs": splitParagraphs(text)} {
			var sizes []int
			for _, s := range spans {
				sizes = append(sizes, s.end-s.start)
			}
			if !slices.Equal(sizes, want) {
				t.Errorf("%s of %d bytes: %v, want %v", name, n, sizes, want)
			}
		}
	}
	b := &block{start: 10, units: []span{{0, 2}, {2, 5}}}
	for offset, want := range map[int]int{9: -1, 10: 0, 11: 0, 12: 1, 14: 1, 15: -1} {
		got, ok := b.unitAt(offset)
		if ok != (want >= 0) || ok && got != want {
			t.Errorf("unit at %d: %d, %v", offset, got, ok)
		}
	}
}

func TestTargets(t *testing.T) {
	prose, code, inlined, file := &block{prose: true, language: plainText}, &block{language: shell}, &block{language: inline}, &block{whole: true, language: config}
	for _, tt := range []struct {
		rule Rule
		want string
	}{
		{Rule{Target: Prose}, "prose"}, {Rule{Target: Code}, "code inline"}, {Rule{Target: Code, languages: python}, ""}, {Rule{Target: Code, languages: shell | config}, "code file"},
		{Rule{Target: Text}, "prose code file"}, {Rule{Target: Frontmatter, languages: config}, "file"}, {Rule{Target: Frontmatter, languages: python}, ""},
	} {
		var got []string
		for i, b := range []*block{prose, code, inlined, file} {
			if b.matchesTarget(&tt.rule) {
				got = append(got, []string{"prose", "code", "inline", "file"}[i])
			}
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%+v: %v, want %s", tt.rule.Target, got, tt.want)
		}
	}
}

func TestEscapeText(t *testing.T) {
	for _, tt := range []struct {
		text  string
		limit int
		want  string
	}{
		{"", 3, ""}, {"abc", 3, "abc"}, {"abcd", 3, "abc…"}, {"ab", 3, "ab"}, {" a \n\t b ", 9, "a b"}, {"a b", 2, "a …"}, {"\u200ba", 7, `\u{200b}a`}, {"\u200bab", 7, `\u{200b}a…`}, {"\u200ba", 6, `\u{200b}…`},
		{"\xffa", 5, `\xffa`}, {"\xffa", 4, `\xff…`}, {"\ufffda", 2, "\ufffda"}, {"a\x1bb", 9, `a\u{1b}b`},
	} {
		if got := escapeText(tt.text, tt.limit); got != tt.want {
			t.Errorf("%q, %d: %q, want %q", tt.text, tt.limit, got, tt.want)
		}
	}
}

func TestDecodedPrograms(t *testing.T) {
	const program = "import os; os.system('x')"
	once := base64.StdEncoding.EncodeToString([]byte(program))
	twice := hex.EncodeToString([]byte(once + "\n"))
	thrice := base64.RawStdEncoding.EncodeToString([]byte(twice))
	fourth := base64.StdEncoding.EncodeToString([]byte(thrice))
	for text, want := range map[string]bool{once: true, twice: true, thrice: true, fourth: false, "!": false, base64.StdEncoding.EncodeToString([]byte("plain text")): false} {
		if got := decodesToCode(text); got != want {
			t.Errorf("%.30s: %v", text, got)
		}
	}
	for text, want := range map[string]bool{"": false, "a\n\t\r\x00é": true, "a\x01": false, "\x1f": false, " ": true, "\xff": false} {
		if got := isText([]byte(text)); got != want {
			t.Errorf("text %q: %v", text, got)
		}
	}
}

func TestPublicAddresses(t *testing.T) {
	for address, want := range map[string]bool{
		"93.184.216.34": true, "2606:2800::1": true, "x": false, "10.0.0.1": false, "127.0.0.1": false, "169.254.1.1": false, "224.0.0.1": false, "192.0.2.1": false, "198.51.100.1": false, "203.0.113.1": false,
		"100.64.0.1": false, "100.128.0.1": true, "0.1.2.3": false, "198.18.0.1": false, "198.20.0.1": true, "8.8.8.8": false, "1.1.1.1": false, "1.2.3.4": false, "8.8.4.4": true,
	} {
		if got := isPublicAddress(address); got != want {
			t.Errorf("%s: %v", address, got)
		}
	}
}

func TestFileLanguages(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       language
	}{
		{"a.py", "", python}, {"A.PY", "", python}, {"x/Makefile", "", shell}, {".env", "", config}, {"a", "", plainText}, {"a.none", "text", plainText}, {"a", "#!/usr/bin/env python3\n", python}, {"a", "#!/usr/bin/uv run\n", python},
		{"a", "#!/usr/bin/node\n", javascript}, {"a", "#!/usr/bin/deno\n", javascript}, {"a", "#!/usr/bin/bun\n", javascript}, {"a", "#!/usr/bin/pwsh\n", powershell}, {"a", "#!/bin/dash\n", shell}, {"a", "#!/usr/bin/perl\n", otherCode},
		{"a", "#!/usr/bin/perl\nsh", otherCode}, {"a", "#!" + strings.Repeat("/", 196) + "sh", shell}, {"a", "#!" + strings.Repeat("/", 197) + "sh", otherCode},
	} {
		if got := fileLanguage(tt.name, []byte(tt.text)); got != tt.want {
			t.Errorf("%s %.20q: %d, want %d", tt.name, tt.text, got, tt.want)
		}
	}
	for name, want := range map[string]bool{"a.md": true, "a.MARKDOWN": true, "a.mdx": true, "a.mdc": true, "a.txt": false, "md": false} {
		if isMarkdown(name) != want {
			t.Errorf("%s: Markdown %v", name, !want)
		}
	}
}

func TestLex(t *testing.T) {
	for _, tt := range []struct {
		language         language
		text, code, bare string
	}{
		{shell, `a "b" # c`, `a "b"    `, `a " "    `}, {shell, "a#b", "a#b", "a#b"}, {shell, `'a\' b`, `'a\' b`, `'  ' b`}, {shell, `"a\"" b`, `"a\"" b`, `"   " b`}, {shell, `"a`, `"a`, `"a`}, {shell, `\"a"`, `\"a"`, `\"a"`},
		{shell, "\"a\nb\"", "\"a\nb\"", `"   "`}, {python, "\"\"\"a\nb\"\"\"\nc", "    \n    \nc", "    \n    \nc"}, {python, "x = \"\"\"a\"\"\"", "x = \"\"\"a\"\"\"", "x = \"\"\" \"\"\""}, {python, "x = 'a", "x = 'a", "x = 'a"},
		{javascript, "a // b\nc /* d */ e", "a     \nc         e", "a     \nc         e"}, {javascript, "a /* b", "a /* b", "a /* b"}, {powershell, "a <# b #> c", "a         c", "a         c"}, {config, `"a" # b`, `"a" # b`, `"a" # b`},
	} {
		source := newSource("a", []byte(tt.text))
		code, bare := source.lex([]byte(tt.text), syntaxes[tt.language])
		if string(code) != tt.code || string(bare) != tt.bare {
			t.Errorf("%d %q:\n%q\n%q, want\n%q\n%q", tt.language, tt.text, code, bare, tt.code, tt.bare)
		}
	}
}
