package bm25

import "slices"

// SharedWords returns the words of text that also occur in other, spelled as in
// text and without duplicates. Two words are considered equal if a search for
// one finds the other. Stop words are omitted.
func SharedWords(text, other string) []string {
	has := map[string]bool{}
	eachTerm(other, func(_, term string) { has[term] = true })
	var out []string
	eachTerm(text, func(word, term string) {
		if has[term] && !slices.Contains(out, word) {
			out = append(out, word)
		}
	})
	return out
}

// eachTerm yields each word of a text with its term. The term is the word's
// stem, or each pair of characters in unspaced text.
func eachTerm(text string, yield func(word, term string)) {
	var l lexer
	for l.reset(text, maxQuery); l.next(); {
		switch {
		case l.cjk:
			l.bigrams(func(pair []byte) { yield(string(pair), string(pair)) })
		case !stopWords()[string(l.word)]:
			word := string(l.word)
			yield(word, string(stem(l.word)))
		}
	}
}
