// Package bm25 ranks skills by how well they match a query. It searches texts
// in memory, without network access or a model. Results are deterministic.
//
// Each text has two Okapi BM25 scores: one over its name, description and tags,
// and one that also includes the start of its body. The search adds the two.
// The first score ranks skills about a subject above those that only mention
// it. The second finds words that the description does not contain. Both are
// computed when the index is built, so a posting stores their sum in one byte,
// and a query adds one number per word and text. A text whose full name occurs
// in the query gets a higher score. A text whose name equals the query comes
// first.
//
// bench/search contains the measurements behind these choices. Start reading at
// [New] and [Index.Search].
package bm25

import (
	"cmp"
	"iter"
	"slices"
	"sort"
	"strings"
	"sync"
)

// BodyHead is the number of indexed characters of a body. The rest is mostly
// examples and special cases. Indexing it takes time and memory, and does not
// find more skills.
const BodyHead = 2500

const (
	maxField     = 4096 // maximum number of characters read from a name, a description or a tag
	maxTags      = 64
	maxQuery     = 4096 // maximum number of characters read from a query
	maxTerms     = 64   // maximum number of distinct query terms that are looked up
	maxNameWords = 64   // maximum number of query words that are searched for names
	maxName      = 8    // maximum number of words in a name that a query can match

	maxUnknown = 4 // maximum number of query words that are corrected; each correction scans many terms

	k1 = 1.2  // how quickly repetitions of a word stop increasing the score
	b  = 0.75 // how strongly long texts are penalized

	nameBoost        = 1.2  // factor for a text whose whole name is in the query
	minShare         = 0.25 // hits below this share of the best score are dropped
	correctionWeight = 0.75 // weight of a term that replaces an unknown word
)

// Doc is a text to index.
type Doc struct {
	Name        string
	Description string
	Tags        []string
	Body        string // text after the description; may be empty; only the first BodyHead characters are indexed
}

// Hit is a search result.
type Hit struct {
	Doc   int     // index in the sequence passed to New
	Score float64 // higher is better; comparable only within a search
}

// Index is an immutable search index. It does not retain the strings from which
// it was built. It is safe for concurrent use.
type Index struct {
	docs  int
	terms terms
	names []name // by key, then doc

	scratch sync.Pool // of *queryBuffers
}

// name is a text's name with its words joined, so that textToSpeech,
// text-to-speech and "Text to Speech" are equal.
type name struct {
	key string
	doc uint32
}

// New indexes docs in order. It reads one text at a time, so the sequence can
// load bodies on demand.
func New(docs iter.Seq[Doc]) *Index {
	bld := builder{ids: map[string]uint32{}, stems: map[string]uint32{}}
	for d := range docs {
		bld.add(d)
	}
	x := &Index{docs: len(bld.counts), terms: bld.terms(), names: bld.names}
	slices.SortFunc(x.names, func(a, b name) int {
		return cmp.Or(strings.Compare(a.key, b.key), cmp.Compare(a.doc, b.doc))
	})
	x.scratch.New = func() any { return &queryBuffers{scores: make([]float32, x.docs)} }
	return x
}

// Len returns the number of indexed texts.
func (x *Index) Len() int { return x.docs }

// queryBuffers holds buffers that are reused from query to query.
type queryBuffers struct {
	lex         lexer
	terms       []weightedTerm // terms of the query
	scores      []float32      // by text
	joined      []byte         // words of the query, concatenated
	ends        []int          // end of each word in joined
	boosted     []int          // indexes of the names that occur in the query
	unknown     int            // number of words that occur in no text
	corrections []uint32
	stem        []byte
}

type weightedTerm struct {
	term   uint32
	weight float32
}

// Search returns up to limit texts that share a word with the query, best
// first. Texts with equal scores are returned in indexing order. A text whose
// name equals the query comes first, regardless of spelling and separators.
// Texts whose name starts with the query are ranked higher.
//
// A word that occurs in no text is treated as a prefix or misspelling of
// indexed words, or ignored. Texts with a much lower score than the best one
// are dropped. For an empty query, the result is empty. Only the start of a
// very long query is used, so the cost is bounded.
func (x *Index) Search(query string, limit int) []Hit {
	if limit <= 0 || x.docs == 0 {
		return nil
	}
	s := x.scratch.Get().(*queryBuffers)
	defer x.scratch.Put(s)
	x.parseQuery(s, query)
	clear(s.scores)
	for _, w := range s.terms {
		x.terms.addScores(s.scores, w)
	}
	best := float32(0)
	for _, v := range s.scores {
		best = max(best, v)
	}
	x.boostNames(s, best)
	return topHits(s.scores, best*minShare, limit)
}

// parseQuery splits the query into terms and concatenates its words.
func (x *Index) parseQuery(s *queryBuffers, query string) {
	s.terms, s.joined, s.ends, s.unknown = s.terms[:0], s.joined[:0], s.ends[:0], 0
	s.lex.reset(query, maxQuery)
	for s.lex.next() && len(s.terms) < maxTerms {
		s.joined = append(s.joined, s.lex.word...)
		s.ends = append(s.ends, len(s.joined))
		if s.lex.cjk {
			s.lex.bigrams(func(pair []byte) { x.lookUp(s, pair) })
			continue
		}
		if stopWords[string(s.lex.word)] || x.lookUp(s, s.lex.word) {
			continue
		}
		// GitHub is one word if some text contains it, and two words otherwise.
		known := false
		s.lex.pieces(func(part []byte) {
			known = x.lookUp(s, part) || known
		})
		if !known {
			x.addCorrections(s)
		}
	}
}

// addCorrections adds the terms that the current unknown word may stand for.
func (x *Index) addCorrections(s *queryBuffers) {
	if s.unknown++; s.unknown > maxUnknown {
		return
	}
	s.stem = stem(append(s.stem[:0], s.lex.word...))
	s.corrections = x.terms.correct(s.corrections[:0], s.lex.word, s.stem)
	for _, term := range s.corrections {
		s.addTerm(term, correctionWeight)
	}
}

// lookUp adds a word's term to the query. It reports whether the index contains
// the term.
func (x *Index) lookUp(s *queryBuffers, w []byte) bool {
	s.stem = stem(append(s.stem[:0], w...))
	term, ok := x.terms.find(s.stem)
	if ok {
		s.addTerm(term, 1)
	}
	return ok
}

func (s *queryBuffers) addTerm(term uint32, weight float32) {
	if len(s.terms) == maxTerms {
		return
	}
	for _, w := range s.terms {
		if w.term == term {
			return
		}
	}
	s.terms = append(s.terms, weightedTerm{term, weight})
}

// boostNames raises the scores of texts whose names occur in the query.
func (x *Index) boostNames(s *queryBuffers, best float32) {
	s.boosted = s.boosted[:0]
	n := min(len(s.ends), maxNameWords)
	from := 0
	for i := range n {
		for j := i; j < min(i+maxName, n); j++ {
			joined := s.joined[from:s.ends[j]]
			at := x.firstName(joined)
			if at == len(x.names) || x.names[at].key != string(joined) || slices.Contains(s.boosted, at) {
				continue
			}
			s.boosted = append(s.boosted, at)
			for ; at < len(x.names) && x.names[at].key == string(joined); at++ {
				s.scores[x.names[at].doc] *= nameBoost
			}
		}
		from = s.ends[i]
	}

	if len(s.joined) == 0 {
		return
	}
	for _, name := range x.names[x.firstName(s.joined):] {
		share := float32(len(s.joined)) / float32(len(name.key))
		if share > 1 || name.key[:len(s.joined)] != string(s.joined) {
			break
		}
		if share == 1 {
			s.scores[name.doc] += 2*best + 1
		} else if len(s.joined) > 1 {
			s.scores[name.doc] += share * (best + 1) / 2
		}
	}
}

// firstName returns the index of the first name that is not less than key.
func (x *Index) firstName(key []byte) int {
	return sort.Search(len(x.names), func(i int) bool { return x.names[i].key >= string(key) })
}

// topHits returns up to limit hits with a score of at least low, best first.
func topHits(scores []float32, low float32, limit int) []Hit {
	found := 0
	for _, v := range scores {
		if v > 0 && v >= low {
			found++
		}
	}
	if found == 0 {
		return nil
	}
	// Use a heap with the worst hit at its root, so that most texts cost one
	// comparison.
	room := min(found, limit)
	heap := make([]Hit, 0, room)
	for doc, v := range scores {
		if v <= 0 || v < low {
			continue
		}
		h := Hit{doc, float64(v)}
		if len(heap) == room {
			if compareHits(h, heap[0]) < 0 {
				heap[0] = h
				siftDown(heap, 0)
			}
			continue
		}
		if heap = append(heap, h); len(heap) == room {
			for i := room/2 - 1; i >= 0; i-- {
				siftDown(heap, i)
			}
		}
	}
	slices.SortFunc(heap, compareHits)
	return heap
}

func compareHits(a, b Hit) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Doc, b.Doc))
}

func siftDown(heap []Hit, i int) {
	for {
		worst := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(heap); child++ {
			if compareHits(heap[child], heap[worst]) > 0 {
				worst = child
			}
		}
		if worst == i {
			return
		}
		heap[i], heap[worst] = heap[worst], heap[i]
		i = worst
	}
}
