package chat

import (
	"strings"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
	"github.com/loadout-dev/loadout/llm"
)

// maxAddresses is the maximum number of addresses in a preview.
const maxAddresses = 500

var (
	plainAddress  = lazyregexp.New("(?i)\\b(?:[a-z][a-z0-9+.-]{1,15}://|mailto:)[^\\s<>\"'`]+")
	definition    = lazyregexp.New(`(?m)^ {0,3}\[[^\]\n]+\]:[ \t]*<?([^\s>]+)`)
	linkAttribute = lazyregexp.New(`(?i)\b(?:href|src)=["']?([^\s"'>]+)`)
)

// addresses returns the addresses of links and images in answers, which their texts may
// not show, and how many more there are than the limit of the list.
func (c *SharedContent) addresses() (out []string, more int) {
	seen := map[string]bool{}
	for _, m := range c.Messages {
		if m.Role != llm.Assistant { // messages of users are shown as they are
			continue
		}
		found, rest := linkAddresses(m.Text)
		more += rest
		for _, address := range found {
			switch {
			case seen[address]:
			case len(out) == maxAddresses:
				more++
			default:
				seen[address] = true
				out = append(out, address)
			}
		}
	}
	return out, more
}

// linkAddresses returns the addresses of links and images in Markdown: first those
// whose text may differ from the address, and then plain ones. If a text contains
// many unterminated links, whose scan could take hours, it only counts the remaining
// links.
func linkAddresses(text string) (out []string, more int) {
	budget := 64 * len(text) // bytes of destinations
	for rest := text; ; {
		i := strings.Index(rest, "](")
		if i < 0 {
			break
		}
		rest = rest[i+2:]
		if budget <= 0 {
			more = 1 + strings.Count(rest, "](")
			break
		}
		d, read := destination(rest)
		budget -= read
		if d != "" && !strings.HasPrefix(d, "#") {
			out = append(out, d)
		}
	}
	for _, m := range definition.FindAllStringSubmatch(text, -1) {
		out = append(out, m[1])
	}
	for _, m := range linkAttribute.FindAllStringSubmatch(text, -1) {
		out = append(out, m[1])
	}
	inLinks := map[string]bool{}
	for _, address := range out {
		inLinks[address], inLinks[strings.TrimRight(address, afterAddress)] = true, true
	}
	for _, m := range plainAddress.FindAllStringSubmatch(text, -1) {
		address := m[0]
		if i := strings.Index(address, "]("); i >= 0 { // the text of a link
			address = address[:i]
		}
		if address = strings.TrimRight(address, afterAddress); !inLinks[address] {
			inLinks[address] = true
			out = append(out, address)
		}
	}
	return out, more
}

// afterAddress holds the characters that do not belong to a plain address at its end.
const afterAddress = ".,;:!?)]}*_"

// maxDestination is the maximum length of a destination with the space before it.
const maxDestination = 8 << 10

// destination returns the destination at the start of what follows "](" in Markdown, and
// how many bytes it read.
func destination(text string) (d string, read int) {
	text = text[:min(len(text), maxDestination)]
	all := len(text)
	text = strings.TrimLeft(text, " \t\n")
	space := all - len(text)
	if strings.HasPrefix(text, "<") {
		if i := strings.IndexAny(text, ">\n"); i > 0 {
			return text[1:i], space + i
		}
		return "", all
	}
	depth := 0
	for i, r := range text {
		switch {
		case r <= ' ':
			return text[:i], space + i
		case r == '(':
			depth++
		case r == ')':
			if depth--; depth < 0 {
				return text[:i], space + i
			}
		}
	}
	return "", all // unclosed
}
