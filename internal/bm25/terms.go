package bm25

import (
	"encoding/binary"
	"math"
	"slices"
	"sort"
	"strings"
)

// terms maps each stem to the texts that have it. Everything lies in a few flat slices, so that 50,000 texts are a
// handful of allocations and nothing for the garbage collector to walk.
type terms struct {
	text  string    // all stems, sorted, one after the other
	ends  []uint32  // where each ends in text
	posts []byte    // for each text of a term: distance to the one before it as a varint, then its score in units
	upto  []uint32  // where the postings of each term end
	units []float32 // what one unit of a term's scores is worth; negative if the term is only in bodies
}

func (t *terms) len() int { return len(t.ends) }

func (t *terms) at(i int) string {
	if i == 0 {
		return t.text[:t.ends[0]]
	}
	return t.text[t.ends[i-1]:t.ends[i]]
}

// search is the place of the first term that is not before w.
func (t *terms) search(w []byte) int {
	return sort.Search(t.len(), func(i int) bool { return t.at(i) >= string(w) })
}

func (t *terms) find(w []byte) (uint32, bool) {
	i := t.search(w)
	return uint32(i), i < t.len() && t.at(i) == string(w)
}

// inMeta reports whether a term is in some name, description or tag.
func (t *terms) inMeta(i int) bool { return t.units[i] > 0 }

// add gives each text its score for one term of a query.
func (t *terms) add(scores []float32, w weighted) {
	from := uint32(0)
	if w.term > 0 {
		from = t.upto[w.term-1]
	}
	unit := w.weight * float32(math.Abs(float64(t.units[w.term])))
	posts := t.posts[from:t.upto[w.term]]
	doc := ^uint32(0) // one before the first
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

// maxGuesses is how many terms one unknown word may stand for.
const maxGuesses = 4

// guess returns, in guesses, terms that a word nobody wrote may stand for: those it is the beginning of, else those its
// stem, root, is a misspelling of. Only terms from names, descriptions and tags are offered, those in most texts first.
func (t *terms) guess(guesses []uint32, w, root []byte) []uint32 {
	if len(w) < 3 {
		return guesses
	}
	for i := t.search(w); i < t.len() && strings.HasPrefix(t.at(i), string(w)); i++ {
		guesses = t.offer(guesses, i)
	}
	allowed := 0 // a short word is too near to others
	if len(w) >= 9 {
		allowed = 2
	} else if len(w) >= 5 {
		allowed = 1
	}
	if len(guesses) > 0 || allowed == 0 {
		return guesses
	}
	for i := t.search(root[:1]); i < t.len() && t.at(i)[0] == root[0]; i++ {
		if d := len(t.at(i)) - len(root); d > allowed || -d > allowed || !t.inMeta(i) {
			continue
		}
		switch d := distance(t.at(i), root, allowed); {
		case d < allowed:
			allowed, guesses = d, t.offer(guesses[:0], i)
		case d == allowed:
			guesses = t.offer(guesses, i)
		}
	}
	return guesses
}

// offer puts a term among the guesses, if it is better than one of them or there is room.
func (t *terms) offer(guesses []uint32, i int) []uint32 {
	if !t.inMeta(i) {
		return guesses
	}
	at := len(guesses)
	for at > 0 && t.size(int(guesses[at-1])) < t.size(i) {
		at--
	}
	if at == maxGuesses {
		return guesses
	}
	return slices.Insert(guesses[:min(len(guesses), maxGuesses-1)], at, uint32(i))
}

// size is the length of a term's postings.
func (t *terms) size(i int) uint32 {
	if i == 0 {
		return t.upto[0]
	}
	return t.upto[i] - t.upto[i-1]
}

// distance is the number of letters to insert, drop, replace or swap with a neighbour to make one word of the other, or
// any number above most if it is above most.
func distance(a string, b []byte, most int) int {
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
