package untrusted

import (
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Disallowed reports whether a character is disallowed regardless of its
// context: control characters other than tab and line breaks, characters that
// reorder text, and characters without a glyph. Some of them are allowed in a
// context, such as a joiner within an emoji; [Inspect] and [Text] consider the
// context.
func Disallowed(r rune) bool {
	if r < utf8.RuneSelf {
		return r < 0 || isControl[r]
	}
	switch { // most characters need no search
	case r < 0x34f:
		return r < 0xa0 || r == 0xad
	case r > 0x34f && r < 0x61c, r > 0x206f && r < 0x3164, r > 0x3164 && r < 0xd800:
		return false
	}
	return inRanges(disallowed, r)
}

func isControlASCII(c byte) bool {
	return c < ' ' && c != '\n' && c != '\t' && c != '\r' && c != '\f' || c == 0x7f
}

// isControl holds the result of isControlASCII for each ASCII character.
var isControl = func() (out [utf8.RuneSelf]bool) {
	for c := range out {
		out[c] = isControlASCII(byte(c))
	}
	return out
}()

// isPlainASCII reports whether s is ASCII without control characters, as most
// text is.
func isPlainASCII(s string) bool {
	var odd bool
	for i := 0; i < len(s); i++ {
		odd = odd || s[i] >= 0x7f || s[i] < ' ' && s[i] != '\n' // no table, for speed
	}
	return !odd
}

// character is a disallowed character at an offset in text. r is
// [utf8.RuneError] and size is 1 for an invalid byte.
type character struct {
	at, size int
	r        rune
}

// disallowedIn returns the disallowed characters of s, in order.
func disallowedIn(s string) iter.Seq[character] {
	return func(yield func(character) bool) {
		if isPlainASCII(s) {
			return
		}
		var isolates []int // offsets of allowed isolate controls, once known
		known := false
		for i := 0; i < len(s); {
			if c := s[i]; c < utf8.RuneSelf {
				if isControl[c] && !yield(character{i, 1, rune(c)}) {
					return
				}
				i++
				continue
			}
			r, n := utf8.DecodeRuneInString(s[i:])
			allowed := !Disallowed(r) && (r != utf8.RuneError || n > 1)
			switch {
			case allowed:
			case isIsolate(r):
				if !known {
					isolates, known = balancedIsolates(s, i), true
				}
				for len(isolates) > 0 && isolates[0] < i {
					isolates = isolates[1:]
				}
				allowed = len(isolates) > 0 && isolates[0] == i
			default:
				allowed = allowedInContext(r, s[:i], s[i+n:])
			}
			if !allowed && !yield(character{i, n, r}) {
				return
			}
			i += n
			if r == blackFlag {
				i += flagTags(s[i:])
			}
		}
	}
}

// allowedInContext reports whether the joiner, variation selector or invisible
// space r is allowed between the strings before and after.
func allowedInContext(r rune, before, after string) bool {
	last, _ := utf8.DecodeLastRuneInString(before)
	next, _ := utf8.DecodeRuneInString(after)
	switch r {
	case zeroWidthSpace: // separates words in scripts without spaces
		return isSpaceless(last) && isSpaceless(next)
	case zeroWidthNonJoiner: // RFC 5892, appendix A.1
		return inRanges(viramas, last) || joinsNext(before) && joinsPrevious(after)
	case zeroWidthJoiner: // RFC 5892, appendix A.2, and emoji sequences
		return inRanges(viramas, last) || inRanges(pictographs, next) && endsInPictograph(before) || keepsForm(last, before, after)
	case textSelector:
		return inRanges(pictographs, last) || last >= 0xa0 && unicode.In(last, unicode.So, unicode.Sm)
	case emojiSelector:
		return inRanges(pictographs, last) || isKeycap(last) && strings.HasPrefix(after, "\u20e3")
	case vowelSeparator:
		return isMongolian(last) && isMongolian(next)
	case 0x180b, 0x180c, 0x180d, 0x180f: // variants of Mongolian letters
		return isMongolian(last)
	}
	// Variants of Chinese characters. Most have a few; more values would only
	// carry data.
	return r >= 0xe0100 && r <= 0xe010f && unicode.Is(unicode.Han, last)
}

// keepsForm reports whether a joiner between the strings before and after
// changes how the characters around it look in Indic and Arabic scripts. last
// is the last character of before. That is the case if last is a letter and
// after begins with a virama of the same script. It is also the case if before
// ends with a letter that joins the next one, and after does not begin with a
// letter that joins the previous one.
func keepsForm(last rune, before, after string) bool {
	next, n := utf8.DecodeRuneInString(after)
	if inRanges(viramas, next) {
		return last>>7 == next>>7 && unicode.IsLetter(last) // a block has 128 characters
	}
	// Marks and hidden characters could precede a letter that joins.
	return joinsNext(before) && !inRanges(joiningPrevious, next) && !isMark(next) && !Disallowed(next) && (n != 1 || next != utf8.RuneError)
}

// isSpaceless reports whether r belongs to a script without spaces between
// words: Thai, Lao, Myanmar or Khmer.
func isSpaceless(r rune) bool {
	return (r >= 0xe00 && r <= 0xeff || r >= 0x1000 && r <= 0x109f || r >= 0x1780 && r <= 0x17ff) && !Disallowed(r)
}

func isMongolian(r rune) bool { return r >= 0x1820 && r <= 0x18aa }

const (
	vowelSeparator     = 0x180e
	zeroWidthSpace     = 0x200b
	zeroWidthNonJoiner = 0x200c
	zeroWidthJoiner    = 0x200d
	textSelector       = 0xfe0e
	emojiSelector      = 0xfe0f
	blackFlag          = 0x1f3f4
)

func isKeycap(r rune) bool { return r >= '0' && r <= '9' || r == '#' || r == '*' }

// maxMarks is the maximum number of marks between a joiner and the letter that
// it belongs to.
const maxMarks = 8

// joinsNext reports whether text ends with a letter that joins the next one,
// possibly followed by marks.
func joinsNext(text string) bool {
	for range maxMarks {
		r, n := utf8.DecodeLastRuneInString(text)
		if !isMark(r) {
			return inRanges(joiningNext, r)
		}
		text = text[:len(text)-n]
	}
	return false
}

// joinsPrevious reports whether text begins with a letter that joins the
// previous one, possibly preceded by marks.
func joinsPrevious(text string) bool {
	for range maxMarks {
		r, n := utf8.DecodeRuneInString(text)
		if !isMark(r) {
			return inRanges(joiningPrevious, r)
		}
		text = text[n:]
	}
	return false
}

// isMark reports whether r is a mark, which does not prevent the letters before
// and after it from joining.
func isMark(r rune) bool {
	return unicode.In(r, unicode.Mn, unicode.Me) && !unicode.Is(unicode.Variation_Selector, r)
}

// endsInPictograph reports whether text ends with an emoji, possibly followed
// by a selector or skin tone.
func endsInPictograph(text string) bool {
	r, n := utf8.DecodeLastRuneInString(text)
	if r == emojiSelector || r >= 0x1f3fb && r <= 0x1f3ff {
		r, _ = utf8.DecodeLastRuneInString(text[:len(text)-n])
	}
	return inRanges(pictographs, r)
}

// flags lists the tags of the flags that Unicode recommends. Any other sequence
// of tags could spell words.
var flags = []string{tags("gbeng"), tags("gbsct"), tags("gbwls")}

func tags(s string) string {
	var b strings.Builder
	for _, c := range s {
		b.WriteRune(0xe0000 + c)
	}
	return b.String() + "\U000e007f"
}

// flagTags returns the length of the tags at the start of s that turn a
// preceding black flag into the flag of a region. It returns 0 if there are
// none.
func flagTags(s string) int {
	for _, f := range flags {
		if strings.HasPrefix(s, f) {
			return len(f)
		}
	}
	return 0
}

func isIsolate(r rune) bool { return r >= 0x2066 && r <= popIsolate }

const (
	popIsolate  = 0x2069
	maxIsolates = 4 // maximum depth
)

// balancedIsolates returns the offsets of the isolate controls of s that are
// allowed, starting at from: those that are closed on the same line and enclose
// a visible character.
func balancedIsolates(s string, from int) []int {
	type open struct {
		at      int
		visible bool
	}
	var stack []open
	var out []int
	for i, r := range s[from:] {
		i += from
		switch {
		case r == '\n' || r == '\r' || r == '\f' || r == 0x85 || r == 0x2028 || r == 0x2029:
			stack = nil
		case r == popIsolate:
			if len(stack) == 0 {
				continue
			}
			top := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if top.visible && len(stack) < maxIsolates {
				out = append(out, top.at, i)
			}
			if len(stack) > 0 {
				stack[len(stack)-1].visible = stack[len(stack)-1].visible || top.visible
			}
		case isIsolate(r):
			stack = append(stack, open{at: i})
		case len(stack) > 0 && !unicode.IsSpace(r) && !Disallowed(r):
			stack[len(stack)-1].visible = true
		}
	}
	slices.Sort(out)
	return out
}
