package terminal

import "strings"

// stream is an answer on its way: blocks that are whole are taken from it, and what
// is left is shown as it comes.
type stream struct{ text string }

// add takes more of the answer, and returns the blocks that are whole with it.
func (s *stream) add(more string) (whole string) {
	fresh := strings.HasSuffix(s.text, "\n") || strings.Contains(more, "\n") // else nothing can have ended
	if s.text += more; !fresh {
		return ""
	}
	cut := boundary(s.text)
	whole, s.text = s.text[:cut], s.text[cut:]
	return whole
}

// rest takes what is left.
func (s *stream) rest() string {
	text := s.text
	s.text = ""
	return text
}

// boundary is the place behind the last blank line after which a block begins that is
// no part of the one before; 0 where there is none.
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
			fence = fenceOf(bare)
		}
		at += len(l)
	}
	return cut
}

// fenceOf is the fence that a line opens, "" for none.
func fenceOf(bare string) string {
	for _, mark := range []string{"`", "~"} {
		n := len(bare) - len(strings.TrimLeft(bare, mark))
		if n >= 3 && !strings.Contains(bare[n:], "`") {
			return strings.Repeat(mark, n)
		}
	}
	return ""
}

// maxShown bounds what is shown of an answer on its way, in bytes: more is on no screen.
const maxShown = 8 << 10

// end is what there is to show of what is left.
func (s *stream) end() string {
	text := s.text
	if len(text) > maxShown {
		text = text[len(text)-maxShown:]
		text = text[strings.IndexByte(text, '\n')+1:]
	}
	return strings.ToValidUTF8(strings.TrimLeft(strings.TrimRight(text, "\n "), "\n"), "")
}
