// Package tokencount estimates the number of tokens in text, for budgets and
// warnings. It uses no vocabulary.
package tokencount

import (
	"sync"
	"unicode"
	"unicode/utf8"
)

// Estimate returns the approximate number of tokens that a language model
// counts in text. The estimate was fitted to the o200k vocabulary on published
// skills in English, Chinese and code; bench/README.md has the comparison.
// Other languages in the Latin script may have up to 40 % more tokens, and
// other vocabularies differ by up to 20 %. The estimate is never lower than
// that for a prefix of text. Use it for budgets and warnings, not for billing.
func Estimate(text string) int {
	const unit = 100 // hundredths of a token
	total, state, pairs := 0, afterLine, pairs()
	for i := 0; i < len(text); {
		if i+1 < len(text) && text[i]|text[i+1] < utf8.RuneSelf {
			s := pairs[state%maxStates][classes[text[i]]%maxClasses*maxClasses+classes[text[i+1]]%maxClasses]
			total += int(s.cost)
			state = s.next
			i += 2
			continue
		}
		if c := text[i]; c < utf8.RuneSelf {
			s := steps[state%maxStates][classes[c]%maxClasses]
			total += int(s.cost)
			state = s.next
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		cost := 0
		cost, state = nonASCIIStep(r, state)
		if state == inSymbols { // symbols are rarely one token, but lines are often drawn with them
			n := 1
			for i+2*size <= len(text) && text[i+size:i+2*size] == text[i:i+size] {
				i += size
				n++
			}
			cost *= min(n, 4)
		}
		total += cost
		i += size
	}
	if text == "" {
		return 0
	}
	return max(1, (total+unit/2)/unit)
}

// Classes of ASCII characters.
const (
	space = iota
	lower
	upper
	digit
	newline
	mark
	maxClasses = 8
)

// States of the automaton that splits text as a vocabulary does. A word is
// usually one token with the space before it, and more tokens inside a name. In
// a run of capitals before a small letter, the last capital starts a word.
const (
	inSpace     uint8 = iota // one space, which belongs to the next word
	inSpaces                 // several spaces
	afterLine                // also at the beginning of the text
	inDigits                 // 3 states: a token has up to 3 digits
	inMark      = inDigits + 3
	afterMark   = inMark + 1 // a mark after a space
	inMarks     = afterMark + 1
	inWord      = inMarks + 4 // in a word after a space
	inPart      = inWord + 9  // in a word after anything else
	inCapital   = inPart + 6
	wordCapital = inCapital + 1 // a capital after a space
	inCapitals  = wordCapital + 1
	inAlphabet  = inCapitals + 8 // in an alphabet other than Latin
	inSymbols   = inAlphabet + 1
	inText      = inSymbols + 1 // in Chinese, Japanese or Korean text
	maxStates   = 64
)

// step is a transition of the automaton for one character: the next state, and
// the cost of the character in hundredths of a token.
type step struct {
	next uint8
	cost int16
}

var classes = func() (t [utf8.RuneSelf]uint8) {
	for c := range t {
		switch {
		case 'a' <= c && c <= 'z':
			t[c] = lower
		case 'A' <= c && c <= 'Z':
			t[c] = upper
		case '0' <= c && c <= '9':
			t[c] = digit
		case c == ' ' || c == '\t':
			t[c] = space
		case c == '\n' || c == '\r':
			t[c] = newline
		default:
			t[c] = mark
		}
	}
	return t
}()

// steps is the automaton's transition table. It was fitted by least squares to
// the relative errors on published skills.
var steps = func() (t [maxStates][maxClasses]step) {
	for s := range t { // the default for most states
		t[s] = [maxClasses]step{
			space: {inSpace, 0}, lower: {inPart, 91}, upper: {inCapital, 60},
			digit: {inDigits, 117}, newline: {afterLine, 90}, mark: {inMark, 106},
		}
	}
	for _, s := range []uint8{inSpace, inSpaces} {
		t[s] = [maxClasses]step{
			space: {inSpaces, 0}, lower: {inWord, 103}, upper: {wordCapital, 103},
			digit: {inDigits, 117 + 76}, newline: {afterLine, 90}, mark: {afterMark, 106},
		}
	}
	t[inSpace][space].cost = 90
	t[afterLine][newline].cost = 0
	t[inDigits][digit] = step{inDigits + 1, 0}
	t[inDigits+1][digit] = step{inDigits + 2, 0}
	for s := inMark; s < inWord; s++ {
		t[s][newline].cost = 0
		t[s][mark] = step{max(inMarks, min(s+1, inWord-1)), 9}
	}
	t[inWord-1][mark].cost = 5
	t[inMark][lower].cost = 23 // the mark belongs to the word
	t[inMark][upper].cost = 0
	for s := inWord; s < inPart; s++ {
		t[s][lower] = step{min(s+1, inPart-1), 0}
	}
	t[inPart-1][lower].cost = 4
	for s := inPart; s < inCapital; s++ {
		t[s][lower] = step{min(s+1, inCapital-1), 0}
	}
	t[inCapital-2][lower].cost, t[inCapital-1][lower].cost = 13, 13
	t[inCapital][lower] = step{inPart + 1, 31}
	t[inCapital][upper] = step{inCapitals, 46}
	t[wordCapital][lower] = step{inWord + 1, 0}
	t[wordCapital][upper] = step{inCapitals, 3}
	for s := inCapitals; s < inAlphabet; s++ {
		t[s][lower] = step{inPart + 1, 78}
		t[s][upper] = step{min(s+1, inAlphabet-1), 13}
	}
	t[inCapitals][lower].cost = 45
	t[inAlphabet-1][upper].cost = 0
	return t
}()

// pairs is the transition table for two ASCII characters at once. Looking up
// two at once is faster, because each lookup depends on the previous one.
var pairs = sync.OnceValue(func() *[maxStates][maxClasses * maxClasses]step {
	t := new([maxStates][maxClasses * maxClasses]step)
	for state := range t {
		for i := range t[state] {
			a := steps[state][i/maxClasses]
			b := steps[a.next][i%maxClasses]
			t[state][i] = step{b.next, a.cost + b.cost}
		}
	}
	return t
})

// nonASCIIStep returns the cost of a non-ASCII character and the next state.
func nonASCIIStep(r rune, state uint8) (cost int, next uint8) {
	switch {
	case 0xc0 <= r && r <= 0x36f && r != 0xd7 && r != 0xf7, 0x1e00 <= r && r <= 0x1eff: // Latin letters, accents
		s := steps[state][lower]
		return int(s.cost) + 10, s.next
	case 0x3400 <= r && r <= 0x9fff, 0x3040 <= r && r <= 0x30ff, 0xf900 <= r && r <= 0xfaff, 0x20000 <= r && r <= 0x3ffff: // Han, kana
		return 72, inText
	case 0xac00 <= r && r <= 0xd7af: // Hangul
		return 60, inText
	case 0x3000 <= r && r <= 0x303f, 0xff00 <= r && r <= 0xffef: // CJK punctuation
		return 50, inText
	case unicode.IsLetter(r), unicode.IsMark(r):
		if state == inAlphabet {
			return 31, inAlphabet
		}
		return 61, inAlphabet
	}
	return 127, inSymbols
}
