package bm25

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
)

// maxCorrections is the maximum number of terms that replace an unknown word.
const maxCorrections = 4

// candidate is a term that an unknown word may stand for.
type candidate struct {
	term       string
	docs, meta int // number of documents that contain it anywhere, and outside of the body
}

// correct returns the terms that an unknown word may stand for: terms that
// start with the word, or, if there are none, terms similar to root, the stem
// of the word. It considers only terms in names, descriptions and tags, and
// returns the most frequent first.
func (x *Index) correct(s *queryBuffers, w, root []byte) ([]candidate, error) {
	if len(w) < 3 {
		return nil, nil
	}
	longer, err := x.termsWithPrefix(s, w)
	if len(longer) > 0 || err != nil {
		return longer, err
	}
	allowed := 0 // short words have too many similar words
	if len(w) >= 9 {
		allowed = 2
	} else if len(w) >= 5 {
		allowed = 1
	}
	if allowed == 0 {
		return nil, nil
	}
	return x.similarTerms(s, root, allowed)
}

func (x *Index) termsWithPrefix(s *queryBuffers, prefix []byte) ([]candidate, error) {
	found := map[string]candidate{}
	for i := range x.parts {
		p := &x.parts[i]
		var failed error
		err := p.Segment.terms.scan(prefix, &s.block, func(term []byte, e entry) bool {
			if !bytes.HasPrefix(term, prefix) {
				return false
			}
			c := found[string(term)]
			failed = x.addCounts(s, &c, p, e)
			c.term = string(term)
			found[c.term] = c
			return failed == nil
		})
		if err = cmp.Or(err, failed); err != nil {
			return nil, err
		}
	}
	out := make([]candidate, 0, len(found))
	for _, c := range found {
		out = append(out, c)
	}
	return mostFrequent(out), nil
}

// similarTerms returns the terms closest to root, if their edit distance is at
// most maxDistance.
func (x *Index) similarTerms(s *queryBuffers, root []byte, maxDistance int) ([]candidate, error) {
	near := make([][]string, maxDistance+1) // by number of different letters
	for i := range x.parts {
		err := x.parts[i].Segment.terms.scan(root[:1], &s.block, func(term []byte, e entry) bool {
			if term[0] != root[0] {
				return false
			}
			if d := len(term) - len(root); e.meta > 0 && d <= maxDistance && -d <= maxDistance {
				if d := editDistance(string(term), root, maxDistance); d <= maxDistance {
					near[d] = append(near[d], string(term))
				}
			}
			return true
		})
		if err != nil {
			return nil, err
		}
	}
	for _, terms := range near {
		var out []candidate
		slices.Sort(terms)
		for _, term := range slices.Compact(terms) {
			c := candidate{term: term}
			for i := range x.parts {
				p := &x.parts[i]
				e, ok, err := p.Segment.terms.find([]byte(term), &s.block)
				if ok && err == nil {
					err = x.addCounts(s, &c, p, e)
				}
				if err != nil {
					return nil, err
				}
			}
			out = append(out, c)
		}
		if out = mostFrequent(out); len(out) > 0 {
			return out, nil
		}
	}
	return nil, nil
}

// addCounts adds the number of documents in p that contain the term with the
// entry e to the counts of c.
func (x *Index) addCounts(s *queryBuffers, c *candidate, p *part, e entry) error {
	if !p.partial {
		c.docs, c.meta = c.docs+int(e.docs), c.meta+int(e.meta)
		return nil
	}
	var err error
	if s.postings, err = p.Segment.terms.appendPostings(s.postings[:0], e, p.At, &s.value); err != nil {
		return err
	}
	c.docs += len(s.postings)
	for _, post := range s.postings {
		if post.meta > 0 {
			c.meta++
		}
	}
	return nil
}

// mostFrequent returns the most frequent terms that also occur outside of
// bodies.
func mostFrequent(cs []candidate) []candidate {
	cs = slices.DeleteFunc(cs, func(c candidate) bool { return c.meta == 0 })
	slices.SortFunc(cs, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.docs, a.docs), strings.Compare(a.term, b.term))
	})
	return cs[:min(len(cs), maxCorrections)]
}

// editDistance returns the number of letters to insert, delete, replace or swap
// to turn one word into the other. If the distance exceeds limit, the result is
// some number greater than limit.
func editDistance(a string, b []byte, limit int) int {
	if len(a) > maxWord || len(b) > maxWord {
		return limit + 1
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
		if int(least) > limit {
			return limit + 1
		}
	}
	return int(rows[len(a)%3][len(b)])
}
