package scan

import (
	"bytes"
	"unicode"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/internal/untrusted"
)

// characterRules returns the rules about characters that a model reads but a
// user cannot see.
func characterRules() []Rule {
	return []Rule{
		{ID: "hidden-tags", Severity: High, Target: Bytes, Message: "contains tag characters, which spell invisible words",
			Advice: "delete them, and find out who added them"},
		{ID: "hidden-run", Severity: High, Target: Bytes, Message: "contains a sequence of invisible characters that is long enough for hidden words",
			Advice: "delete them, and find out who added them"},
		{ID: "hidden-order", Severity: High, Target: Bytes, Message: "contains a character that changes the order in which text is displayed",
			Advice: "delete it, and read the line again"},
		{ID: "hidden-characters", Severity: Medium, Target: Bytes, Message: "contains an invisible character inside a word",
			Advice: "delete it, and find out who added it"},
		{ID: "mixed-alphabets", Severity: Medium, Target: Bytes, Message: "contains a word that mixes Latin letters with Cyrillic ones that look alike",
			Advice: "find out which word is meant"},
		{ID: "terminal-escape", Severity: Medium, Target: Bytes, Message: "contains a sequence that changes what a terminal shows",
			Advice: "read the line in an editor that shows it"},
		{ID: "control-characters", Severity: Low, Target: Bytes, Message: "contains control characters",
			Advice: "read the line in an editor that shows them"},
	}
}

const hiddenRun = 8 // minimum number of consecutive invisible characters

// checkCharacters reports control characters and suspicious non-ASCII
// characters.
func (s *scanner) checkCharacters(t *source) {
	name, data := t.name, t.data
	var c characterState
	last := map[string]int{} // line of the last finding by rule, 1-based
	found := func(rule string, at, length int) {
		before := last[rule]
		last[rule] = at + 1
		if before > 0 && bytes.IndexByte(data[before-1:at], '\n') < 0 || s.isRuleFull(rule, name) {
			return // this line is already reported
		}
		severity := byID()[rule].Severity
		if line := t.lineAt(at); severity == High && isMarkdown(name) && bytes.Contains(line, []byte("U+")) {
			severity = Medium // a text about characters
		}
		s.addFindingAs(rule, severity, t.position(at, at+length+lineLength(data[at+length:min(len(data), at+length+40)])))
	}
	for i := 0; i < len(data); {
		b := data[i]
		if b < utf8.RuneSelf {
			if isPlainASCII[b] {
				i++
				continue
			}
			rule := "control-characters"
			if b == 0x1b && i+1 < len(data) && (data[i+1] == '[' || data[i+1] == ']') {
				rule = "terminal-escape"
			}
			found(rule, i, 1)
			i++
			continue
		}
		if i > 0 && data[i-1] < utf8.RuneSelf {
			c = stateAfter(data[max(0, i-40):i])
		}
		r, n := utf8.DecodeRune(data[i:])
		if rule := c.check(r, i, data[i+n:]); rule != "" {
			found(rule, i, n)
		}
		i += n
	}
}

// isPlainASCII reports, for each ASCII character, whether it occurs in ordinary
// text.
var isPlainASCII = func() (out [utf8.RuneSelf]bool) {
	for c := range out {
		out[c] = c >= ' ' && c != 0x7f || c == '\n' || c == '\t' || c == '\r' || c == '\f'
	}
	return out
}()

// stateAfter returns the state after a run of ASCII characters.
func stateAfter(ascii []byte) characterState {
	last := ascii[len(ascii)-1]
	letter := last >= 'a' && last <= 'z' || last >= 'A' && last <= 'Z'
	return characterState{letter: letter, last: rune(last)}
}

// characterState holds what is known about the characters before the current one.
type characterState struct {
	run    int  // preceding invisible characters
	letter bool // the previous character was a letter
	flag   bool // tag characters of a flag may follow
	last   rune
}

// check returns the ID of the rule that a character violates, or "" if there is
// none.
func (c *characterState) check(r rune, at int, rest []byte) string {
	defer func() { c.last = r }()
	letter := c.letter
	c.letter = unicode.IsLetter(r)
	switch {
	case r >= 0xE0000 && r <= 0xE007F:
		if c.flag {
			return "" // 🏴 and the letters of a region
		}
		return "hidden-tags"
	case r == 0x202D || r == 0x202E:
		return "hidden-order"
	case r >= 0x2066 && r <= 0x2068 || r == 0x202A || r == 0x202B:
		if next, _ := utf8.DecodeRune(rest); !isRightToLeft(next) && !isRightToLeft(c.last) {
			return "hidden-order"
		}
		return ""
	case isInvisible(r):
		c.run++
		next, _ := utf8.DecodeRune(rest)
		switch {
		case c.run == hiddenRun:
			return "hidden-run"
		case c.run == 1 && (r == 0x200B || r == 0x2060 || r == 0x200C || r == 0x200D || r == 0xFEFF && at > 0) && letter && c.last < 0x250 && next < 0x250 && unicode.IsLetter(next):
			return "hidden-characters"
		}
		return ""
	}
	c.run = 0
	c.flag = r == 0x1F3F4
	if c.letter && unicode.In(r, unicode.Cyrillic) {
		next, _ := utf8.DecodeRune(rest)
		if letter && c.last < utf8.RuneSelf || next < utf8.RuneSelf && unicode.IsLetter(next) {
			return "mixed-alphabets"
		}
	}
	return ""
}

// isInvisible reports whether a character has no width and no glyph. Such
// characters are valid after an emoji, and in scripts that join letters.
func isInvisible(r rune) bool {
	return r >= 0xa0 && untrusted.Disallowed(r)
}

func isRightToLeft(r rune) bool {
	return unicode.In(r, unicode.Hebrew, unicode.Arabic, unicode.Syriac, unicode.Thaana)
}

// hasInvisible reports whether a file name contains invisible characters.
func hasInvisible(name string) bool {
	for _, r := range name {
		if !isVisible(r) && r != 0x200D && (r < 0xFE00 || r > 0xFE0F) {
			return true
		}
	}
	return bytes.ContainsRune([]byte(name), utf8.RuneError)
}
