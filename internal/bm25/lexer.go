package bm25

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// maxWord is the maximum length of a word, in bytes. Longer words are
// truncated, because they are hashes or encoded data that nobody searches for.
const maxWord = 64

// lexer splits text into words: runs of letters, marks and digits, in lower
// case, without accents and in normal width. A run in a script without spaces
// is a separate word, even next to a Latin word. Call reset before use.
type lexer struct {
	text string
	pos  int
	left int // number of characters that may still be read

	start int    // offset of the current word
	word  []byte // the current word
	cjk   bool   // the word is in a script without spaces
	cuts  []int  // offsets at which camelCase divides the word
}

// reset starts reading a new text, up to max characters.
func (l *lexer) reset(text string, max int) {
	l.text, l.pos, l.left = text, 0, max
}

// next advances to the next word. It returns false at the end of the text.
func (l *lexer) next() bool {
	for l.scanWord() {
		if len(l.word) > 0 {
			return true
		}
	}
	return false
}

// scanWord reads the next word, which may be empty. It returns false at the end
// of the text.
func (l *lexer) scanWord() bool {
	l.word, l.cuts, l.cjk = l.word[:0], l.cuts[:0], false
	if l.pos == len(l.text) || l.left <= 0 {
		return false
	}
	var before, last charKind // of the two previous characters
	folded := true
	for l.pos < len(l.text) && l.left > 0 {
		r, size := rune(l.text[l.pos]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(l.text[l.pos:])
		}
		k := classifyRune(r)
		if len(l.word) > 0 && (k == notWord || (k == unspacedChar) != l.cjk) {
			break
		}
		if len(l.word) == 0 {
			l.start = l.pos
		}
		l.pos, l.left = l.pos+size, l.left-1
		if k == notWord || len(l.word)+utf8.UTFMax > maxWord && k != unspacedChar {
			continue
		}
		if k == upperCase && last == lowerCase {
			l.addCut(len(l.word))
		} else if k == lowerCase && last == upperCase && before == upperCase {
			_, size := utf8.DecodeLastRune(l.word)
			l.addCut(len(l.word) - size) // HTTPServer: cut before the last capital
		}
		before, last = last, k
		switch {
		case r >= utf8.RuneSelf:
			l.word = utf8.AppendRune(l.word, unicode.ToLower(r))
			l.cjk = k == unspacedChar
			folded = l.cjk
		case k == upperCase:
			l.word = append(l.word, byte(r)|0x20)
		default:
			l.word = append(l.word, byte(r))
		}
	}
	if len(l.word) == 1 {
		l.readLanguageSign()
	}
	if !folded {
		l.foldWord()
	}
	return true
}

func (l *lexer) addCut(at int) {
	if n := len(l.cuts); at > 0 && (n == 0 || l.cuts[n-1] < at) {
		l.cuts = append(l.cuts, at)
	}
}

// readLanguageSign reads ++ or # after a word, so that C++, C# and F# are not
// read as C and F.
func (l *lexer) readLanguageSign() {
	for _, sign := range []string{"++", "#"} {
		if strings.HasPrefix(l.text[l.pos:], sign) && l.left >= len(sign) {
			l.word = append(l.word, sign...)
			l.pos, l.left = l.pos+len(sign), l.left-len(sign)
			return
		}
	}
}

// foldWord replaces é with e, Ａ with a, ß with ss and ς with σ, and removes combining
// marks. A few characters become longer, so it limits the length again.
func (l *lexer) foldWord() {
	wide := norm.NFKD.Bytes(l.word)
	n := len(l.word)
	l.word = l.word[:0]
	for _, r := range string(wide) {
		diacritic := 0x300 <= r && r <= 0x36F
		if diacritic || classifyRune(r) == notWord {
			continue
		}
		if r = unicode.ToLower(r); len(l.word)+utf8.RuneLen(r) > maxWord {
			break
		}
		switch r {
		case 'ß':
			l.word = append(l.word, "ss"...)
		case 'ς':
			l.word = utf8.AppendRune(l.word, 'σ')
		default:
			l.word = utf8.AppendRune(l.word, r)
		}
	}
	if len(l.word) != n {
		l.cuts = l.cuts[:0] // the cuts are offsets into the unfolded word
	}
}

// bigrams yields each pair of adjacent characters in an unspaced word, or the
// character itself if there is only one.
func (l *lexer) bigrams(yield func(pair []byte)) {
	_, first := utf8.DecodeRune(l.word)
	if first == len(l.word) {
		yield(l.word)
		return
	}
	for from := 0; from+first < len(l.word); {
		_, second := utf8.DecodeRune(l.word[from+first:])
		yield(l.word[from : from+first+second])
		from, first = from+first, second
	}
}

// pieces yields each part of the current word if there are several: camelCase
// parts, or single characters of an unspaced word.
func (l *lexer) pieces(yield func(piece []byte)) {
	if l.cjk {
		for from, r := range string(l.word) {
			if size := utf8.RuneLen(r); size < len(l.word) {
				yield(l.word[from : from+size])
			}
		}
		return
	}
	if len(l.cuts) == 0 {
		return
	}
	from := 0
	for _, to := range l.cuts {
		yield(l.word[from:to])
		from = to
	}
	yield(l.word[from:])
}

// charKind classifies characters for the lexer.
type charKind uint8

const (
	notWord      charKind = iota // not part of a word
	caselessChar                 // a digit, a mark or a letter without case
	lowerCase
	upperCase
	unspacedChar // in a script without spaces between words
)

func classifyRune(r rune) charKind {
	if r < utf8.RuneSelf {
		return classifyASCII(byte(r))
	}
	return wideKind(r)
}

// classifyASCII is a faster wideKind for ASCII characters.
func classifyASCII(c byte) charKind {
	switch {
	case 'a' <= c && c <= 'z':
		return lowerCase
	case 'A' <= c && c <= 'Z':
		return upperCase
	case '0' <= c && c <= '9':
		return caselessChar
	}
	return notWord
}

func wideKind(r rune) charKind {
	switch {
	case !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r), unicode.Is(unicode.Variation_Selector, r):
		return notWord // a variation selector is a mark, but belongs to an emoji
	case isUnspaced(r):
		return unspacedChar
	case unicode.IsLower(r):
		return lowerCase
	case unicode.IsUpper(r):
		return upperCase
	}
	return caselessChar
}

// isUnspaced reports whether a letter is in a script without spaces, or in
// Hangul, which attaches particles to words. It checks Unicode blocks instead
// of scripts, because Unicode assigns ー and 々 to the script "common".
func isUnspaced(r rune) bool {
	return 0x0E00 <= r && r < 0x0F00 || // Thai, Lao
		0x1000 <= r && r < 0x10A0 || // Myanmar
		0x1100 <= r && r < 0x1200 || // Hangul letters
		0x1780 <= r && r < 0x1800 || // Khmer
		0x3005 <= r && r < 0xA000 || // kana, Han
		0xAC00 <= r && r < 0xD800 || // Hangul
		0xF900 <= r && r < 0xFB00 || // Han
		0xFF66 <= r && r < 0xFFA0 || // half-width kana
		0x20000 <= r && r < 0x40000 // Han
}

// stopWords returns words that carry no information about a skill. Words such as
// use, user, skill and help are not stop words, because they occur in names
// ("user research", "skill creator").
var stopWords = sync.OnceValue(func() map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(`
		a about above after all also am an and any are as at be because been before being below between both but by can
		could d did do does doing don during each few for from further had has have having he her here hers him his how i
		if in into is it its itself just ll m me more most my no nor not now of off on once only or other our out over own
		please re s same she should so some such t than that the their them then there these they this those through to
		too under until up ve very via want was we were what when whenever where which while who whom why will with within
		would you your yours`) {
		set[w] = true
	}
	return set
})
