package bm25

import "slices"

// Shared returns the words of a text that another one has too, as the first one writes
// them, each once: in the sense in which a search finds one by the other. Words that say
// nothing are left out.
func Shared(text, other string) []string {
	has := map[string]bool{}
	each(other, func(_, term string) { has[term] = true })
	var out []string
	each(text, func(word, term string) {
		if has[term] && !slices.Contains(out, word) {
			out = append(out, word)
		}
	})
	return out
}

// each calls yield with what a text is found by: of each word as it is written its stem,
// and of a text without spaces each pair of characters.
func each(text string, yield func(word, term string)) {
	var l lexer
	for l.reset(text, maxQuery); l.next(); {
		switch {
		case l.cjk:
			l.bigrams(func(pair []byte) { yield(string(pair), string(pair)) })
		case !stopWords[string(l.word)]:
			word := string(l.word)
			yield(word, string(stem(l.word)))
		}
	}
}
