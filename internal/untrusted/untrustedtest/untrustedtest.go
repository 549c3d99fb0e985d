// Package untrustedtest provides strings for tests of programs that show
// untrusted text: hostile ones, and legitimate ones that must not change.
package untrustedtest

import (
	_ "embed"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
)

//go:embed testdata/hostile.txt
var hostile string

//go:embed testdata/legitimate.txt
var legitimate string

// Hostile returns strings with hidden characters, control characters, invalid
// bytes or prompt delimiters. If a string contains a joiner, variation selector
// or isolate, at least one of them is not in a legitimate sequence.
func Hostile() []string { return parse(hostile) }

// Selected reports whether a test applies its use j to text i of [Hostile]. It
// selects a third of the pairs, because thousands of uses are slow under the race
// detector, or all pairs if LOADOUT_TEST_HOSTILE is "all".
func Selected(i, j int) bool { return (i+j)%3 == 0 || All() }

// All reports whether LOADOUT_TEST_HOSTILE is "all".
func All() bool { return os.Getenv("LOADOUT_TEST_HOSTILE") == "all" }

// Legitimate returns strings in many scripts, emoji and code, which every
// reader must receive unchanged.
func Legitimate() []string { return parse(legitimate) }

// parse returns the strings in text, which has one quoted Go string per line.
func parse(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		s, err := strconv.Unquote(strings.TrimSpace(line))
		if err != nil {
			panic("untrustedtest: " + err.Error() + ": " + line)
		}
		out = append(out, s)
	}
	return out
}

// hidden matches characters that no cleaned text contains. It does not use the
// tables of package untrusted.
var hidden = regexp.MustCompile("[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x{9f}\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\\x{fe00}-\\x{fe0f}\\x{feff}\uffa0\\x{fff9}-\\x{fffb}\\x{fffe}\\x{1bca0}-\\x{1bca3}\\x{1d173}-\\x{1d17a}\\x{e0000}-\\x{10ffff}]")

// delimiters matches the delimiters that Hostile contains.
var delimiters = regexp.MustCompile(`(?i)<[\s\p{Z}]*/[\s\p{Z}]*[a-z]|<[\s\p{Z}]*(s|system|function_calls|tool_calls|tool_use|available_skills|command-name|local-command-stdout|start_of_turn|invoke)[\s\p{Z}>]|<(function|parameter)=|<\||<｜|<<SYS|\[/?(INST|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\]|<!--|<!\[CDATA|\n\s*\n\s*(Human|Assistant):`)

// Hidden returns the first character of s that cleaned text must not contain,
// quoted, or "" if there is none. It also reports an emoji with a joiner or a
// selector, so use it only for hostile strings.
func Hidden(s string) string {
	if i := hidden.FindStringIndex(s); i != nil {
		return strconv.QuoteToASCII(s[max(0, i[0]-20):min(len(s), i[1]+20)])
	}
	if i := strings.Index(strings.ToValidUTF8(s, "\x00"), "\x00"); i >= 0 {
		return strconv.QuoteToASCII(s[max(0, i-20):min(len(s), i+20)])
	}
	return ""
}

// Forged returns, quoted, the first prompt delimiter in s, which text for a
// model must not contain. It returns "" if there is none.
func Forged(s string) string {
	if i := delimiters.FindStringIndex(s); i != nil {
		return strconv.QuoteToASCII(s[max(0, i[0]-20):min(len(s), i[1]+20)])
	}
	return ""
}

// Skill returns a SKILL.md with text in each field that a client, a model or a
// user can see.
func Skill(name, text string) string {
	quoted := YAML(text)
	return "---\nname: " + name + "\ndescription: " + quoted + "\ndisplayName: " + quoted + "\nversion: " + quoted + "\nargument-hint: " + quoted +
		"\nlicense: " + quoted + "\ncompatibility: " + quoted + "\nauthor: " + quoted + "\nwhen_to_use: " + quoted + "\nallowed-tools: " + quoted +
		"\nmetadata: {note: " + quoted + ", " + quoted + ": value}\ntags: [" + quoted + "]\ndependencies: [" + quoted + "]\n---\nDo it.\n"
}

// YAML returns text in double quotes, with each character escaped that is not
// plain ASCII, so that YAML can contain any character.
func YAML(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range strings.ToValidUTF8(text, "\ufffd") {
		switch {
		case r == '"' || r == '\\':
			b.WriteString("\\" + string(r))
		case r >= ' ' && r < 0x7f:
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	return b.String() + `"`
}
