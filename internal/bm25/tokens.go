package bm25

import (
	"iter"
	"unicode/utf8"
)

// Token is a word in a text.
type Token struct {
	Word       string // in lower case, without accents and in normal width; at most 64 bytes
	Start, End int    // byte offsets of the word in the text
}

// Tokens yields the words in the first max characters of text, without stemming
// and including stop words. In a script without spaces, it yields each pair of
// adjacent characters, and the last character of each run. For GitHub, it yields
// github, git and hub, each with the offsets of the whole word.
func Tokens(text string, max int) iter.Seq[Token] {
	return func(yield func(Token) bool) {
		var l lexer
		for l.reset(text, max); l.next(); {
			if !l.tokens(yield) {
				return
			}
		}
	}
}

// tokens calls yield for each token of the current word, until yield returns false.
// It reports whether all calls returned true.
func (l *lexer) tokens(yield func(Token) bool) bool {
	if l.cjk {
		return l.pairTokens(yield)
	}
	if !yield(Token{string(l.word), l.start, l.pos}) {
		return false
	}
	more := true
	l.pieces(func(piece []byte) {
		more = more && yield(Token{string(piece), l.start, l.pos})
	})
	return more
}

// pairTokens yields the tokens of an unspaced word.
func (l *lexer) pairTokens(yield func(Token) bool) bool {
	more, last := true, 0
	l.bigrams(func(pair []byte) {
		_, first := utf8.DecodeRune(pair)
		if more && len(pair) > first {
			more = yield(Token{string(pair), l.start + last, l.start + last + len(pair)})
			last += first
		}
	})
	return more && yield(Token{string(l.word[last:]), l.start + last, l.pos})
}
