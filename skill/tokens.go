package skill

import (
	"unicode"
	"unicode/utf8"
)

// Tokens estimates how many tokens a language model counts in text. It is
// fitted to the o200k vocabulary on real skills (bench/README.md has the
// comparison); other vocabularies differ by up to a fifth. A longer text never
// has fewer tokens than its beginning. It is for budgets and warnings, never
// for billing.
func Tokens(text string) int {
	const unit = 100 // hundredths of a token
	total := 0
	before := classNewline
	for i := 0; i < len(text); {
		r, size := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(text[i:])
		}
		class := classify(r)
		end := i + size
		switch class {
		case classLower, classUpper:
			end = wordEnd(text, i, class)
			total += wordCost(text[i:end], before)
		case classSpace, classNewline, classDigit:
			for end < len(text) && asciiClass[text[end]] == class {
				end++
			}
			total += blankCost(class, end-i, before)
		case classMark:
			for end < len(text) && asciiClass[text[end]] == classMark {
				end++
			}
			total += markCost(text[i:end], before, end < len(text) && asciiClass[text[end]]|1 == classUpper)
		case classForeign:
			total += 31
			if before != classForeign {
				total += 30
			}
		case classWide:
			total += 72
		case classHangul:
			total += 60
		case classWideMark:
			total += 50
		default: // a symbol: seldom one token, but lines of one are drawn
			n := 1
			for end+size <= len(text) && text[end:end+size] == text[i:i+size] {
				end += size
				n++
			}
			total += 51 + 76*min(n, 4)
		}
		before, i = class, end
	}
	return (total + unit - 1) / unit
}

// Classes of characters. The two of letters differ in the lowest bit only.
const (
	classOther uint8 = iota
	classSpace
	classLower
	classUpper
	classDigit
	classNewline
	classMark
	classForeign  // letters of other alphabets than Latin
	classWide     // Han and kana
	classHangul   //
	classWideMark // punctuation of those
)

// asciiClass is the class of each byte; bytes of longer characters are
// classOther here.
var asciiClass = func() (t [256]uint8) {
	for c := range utf8.RuneSelf {
		switch r := byte(c); {
		case 'a' <= r && r <= 'z':
			t[c] = classLower
		case 'A' <= r && r <= 'Z':
			t[c] = classUpper
		case '0' <= r && r <= '9':
			t[c] = classDigit
		case r == ' ' || r == '\t':
			t[c] = classSpace
		case r == '\n' || r == '\r':
			t[c] = classNewline
		default:
			t[c] = classMark
		}
	}
	return t
}()

func classify(r rune) uint8 {
	switch {
	case r < utf8.RuneSelf:
		return asciiClass[r]
	case latin(r):
		return classLower
	case 0x3400 <= r && r <= 0x9fff, 0x3040 <= r && r <= 0x30ff, 0xf900 <= r && r <= 0xfaff, 0x20000 <= r && r <= 0x3ffff:
		return classWide
	case 0xac00 <= r && r <= 0xd7af:
		return classHangul
	case 0x3000 <= r && r <= 0x303f, 0xff00 <= r && r <= 0xffef:
		return classWideMark
	case unicode.IsLetter(r), unicode.IsMark(r):
		return classForeign
	}
	return classOther
}

// latin reports whether r is a letter of Latin, or an accent, beyond ASCII.
func latin(r rune) bool {
	return 0xc0 <= r && r <= 0x36f && r != 0xd7 && r != 0xf7 || 0x1e00 <= r && r <= 0x1eff
}

// wordEnd returns where the word that begins at i ends: vocabularies have
// whole words in lower case, with or without a capital, and parts of words in
// capitals.
func wordEnd(text string, i int, class uint8) int {
	end := i
	if class == classUpper {
		for end < len(text) && asciiClass[text[end]] == classUpper {
			end++
		}
		switch lower := end < len(text) && asciiClass[text[end]] == classLower; {
		case lower && end-i > 1:
			return end - 1 // the last capital begins the next word
		case !lower && end-i > 1:
			return end
		}
	}
	for end < len(text) {
		if asciiClass[text[end]] == classLower {
			end++
			continue
		}
		r, size := utf8.DecodeRuneInString(text[end:])
		if !latin(r) {
			break
		}
		end += size
	}
	return end
}

// wordCost is the cost of a word in hundredths. With the space before it, it
// is mostly one token; without one, long words are two or three.
func wordCost(word string, before uint8) int {
	n := len(word)
	switch {
	case n > 1 && asciiClass[word[n-1]] == classUpper:
		return 106 + 13*(min(n, 8)-2)
	case n == 1 && asciiClass[word[0]] == classUpper && before != classSpace:
		return 60
	case before == classSpace:
		return 103 + 4*max(n-8, 0)
	}
	return 91 + 13*max(n-5, 0)
}

// blankCost is the cost of n spaces, line ends or digits. One space belongs to
// the word after it, line ends to marks before them.
func blankCost(class uint8, n int, before uint8) int {
	switch {
	case class == classDigit && before == classSpace:
		return 117*((n+2)/3) + 76
	case class == classDigit:
		return 117 * ((n + 2) / 3)
	case class == classNewline && before != classMark, class == classSpace && n > 1:
		return 90
	}
	return 0
}

// markCost is the cost of a run of punctuation. A single mark belongs to the
// word after it; a line of one mark is a token or two.
func markCost(marks string, before uint8, word bool) int {
	n := len(marks)
	if n == 1 && word && before != classSpace {
		return 38
	}
	same := 1
	for same < n && marks[same] == marks[0] {
		same++
	}
	return 106 + 9*(max(n-max(same, 4), 0)+min(n, 4)-1)
}
