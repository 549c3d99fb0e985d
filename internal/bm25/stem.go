package bm25

import "bytes"

// stem reduces a lower-case English word to its Porter2 stem, in place. It
// returns words with other characters unchanged, because digits and other
// scripts have no English suffixes.
//
// The algorithm and its names are from
// https://snowballstem.org/algorithms/english/stemmer.html. It is implemented
// here rather than imported because it does not change. A lighter stemmer
// (plurals, -ing, -ed) found fewer skills.
func stem(w []byte) []byte {
	if len(w) <= 2 {
		return w
	}
	for _, c := range w {
		if c < 'a' || c > 'z' {
			return w
		}
	}
	if s, ok := irregular[string(w)]; ok {
		return append(w[:0], s...)
	}

	// A y that acts as a consonant is written as Y until the end.
	for i, c := range w {
		if c == 'y' && (i == 0 || isVowel(w[i-1])) {
			w[i] = 'Y'
		}
	}
	p := stemmedWord{b: w}
	p.regions()
	p.removePlural()
	if !unchangedAfter1a[string(p.b)] {
		p.removePastAndGerund()
		p.replaceFinalY()
		p.replace(step2, p.r1)
		p.replace(step3, p.r1)
		p.replace(step4, p.r2)
		p.removeFinalEL()
	}
	for i, c := range p.b {
		if c == 'Y' {
			p.b[i] = 'y'
		}
	}
	return p.b
}

// stemmedWord holds a word and its regions R1 and R2, which start at r1 and r2.
// Suffixes are removed only within the regions, so that stems stay recognizable.
type stemmedWord struct {
	b      []byte
	r1, r2 int
}

func isVowel(c byte) bool {
	return c == 'a' || c == 'e' || c == 'i' || c == 'o' || c == 'u' || c == 'y'
}

func (p *stemmedWord) regions() {
	p.r1 = afterVowelConsonant(p.b, 0)
	for _, s := range []string{"gener", "commun", "arsen"} {
		if bytes.HasPrefix(p.b, []byte(s)) {
			p.r1 = len(s)
		}
	}
	p.r2 = afterVowelConsonant(p.b, p.r1)
}

// afterVowelConsonant returns the position after the first consonant that
// follows a vowel at or after start.
func afterVowelConsonant(b []byte, start int) int {
	for i := start + 1; i < len(b); i++ {
		if isVowel(b[i-1]) && !isVowel(b[i]) {
			return i + 1
		}
	}
	return len(b)
}

func (p *stemmedWord) ends(suffix string) bool {
	return len(p.b) >= len(suffix) && string(p.b[len(p.b)-len(suffix):]) == suffix
}

func (p *stemmedWord) cut(n int) { p.b = p.b[:len(p.b)-n] }

func hasVowel(b []byte) bool {
	for _, c := range b {
		if isVowel(c) {
			return true
		}
	}
	return false
}

// endsShort reports whether b ends in a short syllable: a vowel between two
// consonants, the last of which is not w, x or Y, or an initial vowel followed
// by one consonant.
func endsShort(b []byte) bool {
	n := len(b)
	if n == 2 {
		return isVowel(b[0]) && !isVowel(b[1])
	}
	if n < 3 || isVowel(b[n-1]) || !isVowel(b[n-2]) || isVowel(b[n-3]) {
		return false
	}
	return b[n-1] != 'w' && b[n-1] != 'x' && b[n-1] != 'Y'
}

// removePlural performs step 1a of the Porter2 algorithm.
func (p *stemmedWord) removePlural() {
	n := len(p.b)
	switch {
	case p.ends("sses"):
		p.cut(2)
	case p.ends("ied"), p.ends("ies"):
		if n > 4 {
			p.cut(2)
		} else {
			p.cut(1)
		}
	case p.ends("us"), p.ends("ss"):
	case p.ends("s"):
		if hasVowel(p.b[:n-2]) {
			p.cut(1)
		}
	}
}

// removePastAndGerund performs step 1b of the Porter2 algorithm.
func (p *stemmedWord) removePastAndGerund() {
	for _, s := range []string{"eedly", "eed"} {
		if p.ends(s) {
			if len(p.b)-len(s) >= p.r1 {
				p.cut(len(s) - 2)
			}
			return
		}
	}
	for _, s := range []string{"ingly", "edly", "ing", "ed"} {
		if !p.ends(s) {
			continue
		}
		if !hasVowel(p.b[:len(p.b)-len(s)]) {
			return
		}
		p.cut(len(s))
		n := len(p.b)
		switch {
		case p.ends("at"), p.ends("bl"), p.ends("iz"):
			p.b = append(p.b, 'e')
		case n > 1 && p.b[n-1] == p.b[n-2] && bytes.IndexByte([]byte("bdfgmnprt"), p.b[n-1]) >= 0:
			p.cut(1)
		case p.r1 >= n && endsShort(p.b):
			p.b = append(p.b, 'e')
		}
		return
	}
}

// replaceFinalY performs step 1c of the Porter2 algorithm.
func (p *stemmedWord) replaceFinalY() {
	n := len(p.b)
	if n > 2 && (p.b[n-1] == 'y' || p.b[n-1] == 'Y') && !isVowel(p.b[n-2]) {
		p.b[n-1] = 'i'
	}
}

// removeFinalEL performs step 5 of the Porter2 algorithm.
func (p *stemmedWord) removeFinalEL() {
	n := len(p.b)
	switch {
	case p.ends("e"):
		if n-1 >= p.r2 || n-1 >= p.r1 && !endsShort(p.b[:n-1]) {
			p.cut(1)
		}
	case p.ends("ll"):
		if n-1 >= p.r2 {
			p.cut(1)
		}
	}
}

// rule replaces one suffix with another. If after is set, one of its letters
// must precede the suffix.
type rule struct{ suffix, with, after string }

// replace applies the first rule whose suffix matches, if the suffix is within
// the region. A matching suffix outside the region ends the step too. A longer
// suffix must come before any suffix that it ends with.
func (p *stemmedWord) replace(rules []rule, region int) {
	for _, r := range rules {
		if !p.ends(r.suffix) {
			continue
		}
		at := len(p.b) - len(r.suffix)
		if at < region {
			return
		}
		if r.suffix == "ative" && at < p.r2 {
			return
		}
		if r.after != "" && (at == 0 || bytes.IndexByte([]byte(r.after), p.b[at-1]) < 0) {
			return
		}
		p.b = append(p.b[:at], r.with...)
		return
	}
}

var step2 = []rule{
	{"ational", "ate", ""}, {"fulness", "ful", ""}, {"iveness", "ive", ""}, {"ization", "ize", ""}, {"ousness", "ous", ""},
	{"biliti", "ble", ""}, {"lessli", "less", ""}, {"tional", "tion", ""}, {"alism", "al", ""}, {"aliti", "al", ""},
	{"ation", "ate", ""}, {"entli", "ent", ""}, {"fulli", "ful", ""}, {"iviti", "ive", ""}, {"ousli", "ous", ""},
	{"abli", "able", ""}, {"alli", "al", ""}, {"anci", "ance", ""}, {"ator", "ate", ""}, {"enci", "ence", ""},
	{"izer", "ize", ""}, {"bli", "ble", ""}, {"ogi", "og", "l"}, {"li", "", "cdeghkmnrt"},
}

var step3 = []rule{
	{"ational", "ate", ""}, {"tional", "tion", ""}, {"alize", "al", ""}, {"ative", "", ""}, {"icate", "ic", ""},
	{"iciti", "ic", ""}, {"ical", "ic", ""}, {"ness", "", ""}, {"ful", "", ""},
}

var step4 = []rule{
	{"ement", "", ""}, {"able", "", ""}, {"ance", "", ""}, {"ence", "", ""}, {"ible", "", ""}, {"ment", "", ""},
	{"ant", "", ""}, {"ate", "", ""}, {"ent", "", ""}, {"ion", "", "st"}, {"ism", "", ""}, {"iti", "", ""},
	{"ive", "", ""}, {"ize", "", ""}, {"ous", "", ""}, {"al", "", ""}, {"er", "", ""}, {"ic", "", ""},
}

// irregular lists words with a fixed stem.
var irregular = map[string]string{
	"skis": "ski", "skies": "sky", "dying": "die", "lying": "lie", "tying": "tie", "idly": "idl", "gently": "gentl",
	"ugly": "ugli", "early": "earli", "only": "onli", "singly": "singl", "sky": "sky", "news": "news", "howe": "howe",
	"atlas": "atlas", "cosmos": "cosmos", "bias": "bias", "andes": "andes",
}

var unchangedAfter1a = map[string]bool{
	"inning": true, "outing": true, "canning": true, "herring": true, "earring": true,
	"proceed": true, "exceed": true, "succeed": true,
}
