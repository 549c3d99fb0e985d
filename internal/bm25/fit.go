package bm25

import (
	_ "embed"
	"math"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

const (
	// bodyShare is the share of a word's information that counts if only the body
	// contains the word.
	bodyShare = 0.4
	// A share of 1/x is enough for a query with the information (x·fitScale)^2.5.
	fitExponent = 1 / 2.5
	fitScale    = 1.2
)

// IsWeak reports whether a document with the given [Hit.Fit] probably does not
// fit the query: it contains too little of what the query says.
//
// Neither the score nor the weights of words can tell: both depend on the number
// of documents. A word that is rare among 17 documents may be common in general.
// So each word counts by its frequency in published skills. TestWeakHits
// contains requests that a skill of a set fulfills, and others, in sets of 17 to
// 10,000 skills.
func IsWeak(fit float64) bool { return fit < 1 }

// fit returns the fit of a document: the share of the query's information that
// it contains. In a long query a smaller share is enough, because users describe
// their case, and the skill does not.
func (s *queryBuffers) fit(doc int) float64 {
	share := 1.0
	if s.covered[doc] < s.total { // several corrections of a word may fit
		share = float64(s.covered[doc] / s.total)
	}
	return share * max(1, math.Pow(float64(s.total), fitExponent)/fitScale)
}

// frequencies lists frequent words and the number of skills in 1,000 that contain
// them. It is generated from published skills: see bench/search.
//
//go:embed frequencies.txt
var frequencies string

// informationOf returns the information of each frequent stem. It is computed at
// first use.
var informationOf = sync.OnceValue(func() map[string]float32 {
	of := map[string]float32{}
	for line := range strings.Lines(frequencies) {
		word, count, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.Atoi(count)
		if err != nil {
			continue // a comment
		}
		key := string(stem([]byte(word)))
		if bits := wordInformation(n); of[key] == 0 || bits < of[key] {
			of[key] = bits
		}
	}
	return of
})

// functionCharacters lists Chinese characters that say little about the subject of
// a request, alone and in pairs with others.
const functionCharacters = "的了在是和与我你您他它们这那些个一把被给让请帮用要想能会有没不吗呢吧啊怎么样何什谁哪为以从到对就都也很还及或并中里上下"

// functionInformation is the information of a pair with a function character.
const functionInformation = 0.5

func wordInformation(n int) float32 {
	return float32(math.Log1p((1000 - float64(n) + 0.5) / (float64(n) + 0.5)))
}

// rareInformation is the information of a word that is not in the list: that of
// a word in 20 of 1,000 skills. Differences between rarer words say little.
const rareInformation = 3.888

// information returns how much a term says about a text that contains it.
func information(term []byte) float32 {
	if v, ok := informationOf()[string(term)]; ok {
		return v
	}
	if term[0] >= utf8.RuneSelf && strings.ContainsAny(functionCharacters, string(term)) {
		return functionInformation
	}
	return rareInformation
}
