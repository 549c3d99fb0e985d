package skilltext

import (
	"sort"
	"strings"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
)

// argumentPlaceholder matches a placeholder for the user's arguments: all of
// them, or one of the first nine words.
var argumentPlaceholder = lazyregexp.New(`\$(?:ARGUMENTS\b|[1-9]\b)`)

// FillArguments replaces $ARGUMENTS, $1 and so on with the user's arguments. If
// body has no placeholder, it returns the arguments as rest. hint reports
// whether the skill has an argument hint. Shell and awk code also uses $1.
// Therefore numbered placeholders in code are replaced only if hint is set or
// body contains $ARGUMENTS. If there are no arguments, numbered placeholders
// are never replaced.
func FillArguments(body string, arguments []string, hint bool) (filled, rest string) {
	all := strings.TrimSpace(strings.Join(arguments, " "))
	words := arguments
	if len(arguments) == 1 {
		words = splitWords(arguments[0])
	}
	hint = hint || strings.Contains(body, "$ARGUMENTS")
	placed := false
	var b strings.Builder
	code := CodeSpans(body)
	last := 0
	for _, at := range argumentPlaceholder.FindAllStringIndex(body, -1) {
		place := body[at[0]:at[1]]
		if place != "$ARGUMENTS" && (all == "" || !hint && code(at[0])) {
			continue
		}
		placed = true
		b.WriteString(body[last:at[0]])
		last = at[1]
		if place == "$ARGUMENTS" {
			b.WriteString(all)
		} else if i := int(place[1] - '1'); i < len(words) {
			b.WriteString(words[i])
		}
	}
	b.WriteString(body[last:])
	if placed {
		return b.String(), ""
	}
	return body, all
}

// splitWords splits s at spaces outside quotes.
func splitWords(s string) []string {
	var words []string
	var word strings.Builder
	var quote rune
	began := false
	for _, r := range s {
		switch {
		case r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\'') && word.Len() == 0:
			quote, began = r, true
		case quote == 0 && (r == ' ' || r == '\t' || r == '\n' || r == '\r'):
			if began {
				words = append(words, word.String())
			}
			word.Reset()
			began = false
		default:
			word.WriteRune(r)
			began = true
		}
	}
	if began {
		words = append(words, word.String())
	}
	return words
}

// CodeSpans returns a function that reports whether an offset in Markdown text
// is in code: in a fenced block, or between backquotes on the same line.
func CodeSpans(body string) func(int) bool {
	type span struct{ from, to int }
	var spans []span
	fence, at := "", 0
	for line := range strings.SplitAfterSeq(body, "\n") {
		end := at + len(line)
		trimmed := strings.TrimLeft(line, " \t")
		switch {
		case fence != "":
			spans = append(spans, span{at, end})
			if strings.HasPrefix(trimmed, fence) {
				fence = ""
			}
		case strings.HasPrefix(trimmed, "```"), strings.HasPrefix(trimmed, "~~~"):
			fence = trimmed[:3]
			spans = append(spans, span{at, end})
		default:
			for i, part := range strings.Split(line, "`") {
				if i%2 == 1 {
					spans = append(spans, span{at, at + len(part)})
				}
				at += len(part) + 1
			}
		}
		at = end
	}
	return func(offset int) bool {
		i := sort.Search(len(spans), func(i int) bool { return spans[i].to > offset })
		return i < len(spans) && spans[i].from <= offset
	}
}
