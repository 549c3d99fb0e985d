package terminal

import "strings"

// stream holds the part of a streamed response that is not printed yet.
type stream struct{ text string }

// add appends text. It removes and returns the blocks that are now complete.
func (s *stream) add(more string) (whole string) {
	fresh := strings.HasSuffix(s.text, "\n") || strings.Contains(more, "\n") // otherwise no block can be complete
	if s.text += more; !fresh {
		return ""
	}
	cut := boundary(s.text)
	whole, s.text = s.text[:cut], s.text[cut:]
	return whole
}

// takeRest removes and returns the remaining text.
func (s *stream) takeRest() string {
	text := s.text
	s.text = ""
	return text
}

// boundary returns the offset after the last blank line that ends a block, or 0
// if there is none.
func boundary(text string) int {
	at, cut := 0, 0
	fence, blank := "", false
	for l := range strings.Lines(text) {
		bare := strings.TrimSpace(l)
		switch {
		case fence != "":
			if strings.HasPrefix(bare, fence) && strings.Trim(bare, fence[:1]) == "" {
				fence = ""
			}
		case bare == "":
			blank = strings.HasSuffix(l, "\n")
		default:
			if blank && at > 0 && l[0] != ' ' && l[0] != '\t' {
				cut = at
			}
			blank = false
			fence = openingFence(bare)
		}
		at += len(l)
	}
	return cut
}

// openingFence returns the fence of a code block that the line opens, or "".
func openingFence(bare string) string {
	for _, mark := range []string{"`", "~"} {
		n := len(bare) - len(strings.TrimLeft(bare, mark))
		if n >= 3 && !strings.Contains(bare[n:], "`") {
			return strings.Repeat(mark, n)
		}
	}
	return ""
}

// maxShown is the maximum size of the unprinted text that is shown, in bytes.
const maxShown = 8 << 10

// visibleEnd returns the last part of the unprinted text, for display.
func (s *stream) visibleEnd() string {
	text := s.text
	if len(text) > maxShown {
		text = text[len(text)-maxShown:]
		text = text[strings.IndexByte(text, '\n')+1:]
	}
	return strings.ToValidUTF8(strings.TrimLeft(strings.TrimRight(text, "\n "), "\n"), "")
}
