package bm25

import (
	"encoding/binary"
	"math"
	"slices"
	"sort"
	"strings"
)

// terms maps each stem to the texts that contain it. It consists of a few flat
// slices, so that indexing 50,000 texts needs few allocations and adds no work
// for the garbage collector.
type terms struct {
	text        string    // all stems, sorted and joined
	ends        []uint32  // end of each stem in text
	postings    []byte    // for each text of a term: the distance to the previous text as a varint, and the score in units
	postingEnds []uint32  // end of the postings of each term
	units       []float32 // score of one unit by term; negative if the term occurs only in bodies
}

func (t *terms) len() int { return len(t.ends) }

func (t *terms) at(i int) string {
	if i == 0 {
		return t.text[:t.ends[0]]
	}
	return t.text[t.ends[i-1]:t.ends[i]]
}

// search returns the index of the first term that is not less than w.
func (t *terms) search(w []byte) int {
	return sort.Search(t.len(), func(i int) bool { return t.at(i) >= string(w) })
}

func (t *terms) find(w []byte) (uint32, bool) {
	i := t.search(w)
	return uint32(i), i < t.len() && t.at(i) == string(w)
}

// inMeta reports whether a term occurs in a name, description or tag.
func (t *terms) inMeta(i int) bool { return t.units[i] > 0 }

// addScores adds the scores for a query term to the scores of the texts that
// contain it.
func (t *terms) addScores(scores []float32, w weightedTerm) {
	from := uint32(0)
	if w.term > 0 {
		from = t.postingEnds[w.term-1]
	}
	unit := w.weight * float32(math.Abs(float64(t.units[w.term])))
	posts := t.postings[from:t.postingEnds[w.term]]
	doc := ^uint32(0) // one before the first text
	for i := 0; i < len(posts); i++ {
		if posts[i] < 0x80 {
			doc += uint32(posts[i])
			i++
		} else {
			d, n := binary.Uvarint(posts[i:])
			doc += uint32(d)
			i += n
		}
		scores[doc] += unit * float32(posts[i])
	}
}

// maxCorrections is the maximum number of terms that replace an unknown word.
const maxCorrections = 4

// correct appends to out the terms that an unknown word may stand for: terms
// that start with the word, or else terms similar to its stem root. It
// considers only terms in names, descriptions and tags, most frequent first.
func (t *terms) correct(out []uint32, w, root []byte) []uint32 {
	if len(w) < 3 {
		return out
	}
	for i := t.search(w); i < t.len() && strings.HasPrefix(t.at(i), string(w)); i++ {
		out = t.insert(out, i)
	}
	allowed := 0 // short words have too many similar words
	if len(w) >= 9 {
		allowed = 2
	} else if len(w) >= 5 {
		allowed = 1
	}
	if len(out) > 0 || allowed == 0 {
		return out
	}
	for i := t.search(root[:1]); i < t.len() && t.at(i)[0] == root[0]; i++ {
		if d := len(t.at(i)) - len(root); d > allowed || -d > allowed || !t.inMeta(i) {
			continue
		}
		switch d := editDistance(t.at(i), root, allowed); {
		case d < allowed:
			allowed, out = d, t.insert(out[:0], i)
		case d == allowed:
			out = t.insert(out, i)
		}
	}
	return out
}

// insert adds a term to out, or replaces a less frequent one if out is full.
func (t *terms) insert(out []uint32, i int) []uint32 {
	if !t.inMeta(i) {
		return out
	}
	at := len(out)
	for at > 0 && t.size(int(out[at-1])) < t.size(i) {
		at--
	}
	if at == maxCorrections {
		return out
	}
	return slices.Insert(out[:min(len(out), maxCorrections-1)], at, uint32(i))
}

// size returns the length of a term's postings, in bytes.
func (t *terms) size(i int) uint32 {
	if i == 0 {
		return t.postingEnds[0]
	}
	return t.postingEnds[i] - t.postingEnds[i-1]
}

// editDistance returns the number of letters to insert, delete, replace or swap
// to turn one word into the other. If the distance exceeds most, the result is
// some number greater than most.
func editDistance(a string, b []byte, most int) int {
	if len(a) > maxWord || len(b) > maxWord {
		return most + 1
	}
	var rows [3][maxWord + 1]uint8
	for j := range len(b) + 1 {
		rows[0][j] = uint8(j)
	}
	for i := 1; i <= len(a); i++ {
		older, old, row := &rows[(i+1)%3], &rows[(i+2)%3], &rows[i%3]
		row[0] = uint8(i)
		least := uint8(i)
		for j := 1; j <= len(b); j++ {
			cost := uint8(1)
			if a[i-1] == b[j-1] {
				cost = 0
			}
			d := min(old[j]+1, row[j-1]+1, old[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, older[j-2]+1)
			}
			row[j] = d
			least = min(least, d)
		}
		if int(least) > most {
			return most + 1
		}
	}
	return int(rows[len(a)%3][len(b)])
}
