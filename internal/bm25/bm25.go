// Package bm25 finds skills by what they say about themselves. It is a search over texts held in memory: no network, no
// model, the same answer every time.
//
// A text is scored twice by Okapi BM25, once by its name, description and tags alone and once with the head of its body,
// and the two scores are added. The first keeps skills that are about something ahead of those that mention it, the
// second finds what a description forgot. Both are known when the index is built, so a posting holds their sum in one
// byte and a query adds one number for each word and text. A name that is said in full counts for more; a name that is
// all that is said comes first.
//
// Measured reasons are in bench/search.
package bm25

import (
	"cmp"
	"iter"
	"slices"
	"sort"
	"strings"
	"sync"
)

// BodyHead is how many characters of a body are read. The rest tends to be examples and edge cases: reading it costs time
// and memory and finds no more.
const BodyHead = 2500

const (
	maxField = 4096 // characters read of a name, a description or a tag
	maxTags  = 64
	maxQuery = 4096 // characters read of a query
	maxTerms = 64   // different terms of a query that are looked up
	maxSaid  = 64   // words of a query among which names are looked for
	maxName  = 8    // words of a name that is looked for

	maxUnknown = 4 // words of a query that are guessed at, as that goes through many terms

	k1 = 1.2  // how soon saying a word again stops helping
	b  = 0.75 // how much a long text has to say it more often

	nameSaid = 1.2  // factor for a text whose whole name is part of the query
	floor    = 0.25 // hits below this share of the best are left out
	guessed  = 0.75 // weight of a word that stands in for one nobody wrote
)

// Doc is a text to be found.
type Doc struct {
	Name        string
	Description string
	Tags        []string
	Body        string // what follows the description; the first BodyHead characters are read, and it may be empty
}

// Hit is a text that was found.
type Hit struct {
	Doc   int     // its place in the sequence given to New
	Score float64 // more is better; comparable only with other hits of the same query on the same index
}

// Index is an immutable set of texts to search. It is safe for concurrent use, and holds on to none of the strings it was
// built from.
type Index struct {
	docs  int
	terms terms
	names []name // by key, then doc

	scratch sync.Pool // of *scratch
}

// name is the name of a text with its words joined: textToSpeech, text-to-speech and "Text to Speech" are one.
type name struct {
	key string
	doc uint32
}

// New indexes docs in the order given. It takes one at a time, so a caller can read bodies as they are asked for.
func New(docs iter.Seq[Doc]) *Index {
	bld := builder{ids: map[string]uint32{}, stems: map[string]uint32{}}
	for d := range docs {
		bld.add(d)
	}
	x := &Index{docs: len(bld.counts), terms: bld.terms(), names: bld.names}
	slices.SortFunc(x.names, func(a, b name) int {
		return cmp.Or(strings.Compare(a.key, b.key), cmp.Compare(a.doc, b.doc))
	})
	x.scratch.New = func() any { return &scratch{scores: make([]float32, x.docs)} }
	return x
}

// Len is the number of texts.
func (x *Index) Len() int { return x.docs }

// scratch is what one query needs, kept for the next.
type scratch struct {
	lex     lexer
	terms   []weighted // what is looked up
	scores  []float32  // of each text
	said    []byte     // the words of the query, joined
	ends    []int      // where each of them ends
	raised  []int      // places of the names that are among them
	unknown int        // how many of them nobody wrote
	guesses []uint32
	stem    []byte
}

type weighted struct {
	term   uint32
	weight float32
}

// Search returns at most limit texts that share a word with the query, best first; texts of equal score come in their
// own order. A text whose name is the query comes first, however the name's words are written or joined, and texts whose
// name the query begins are moved up. Words that nothing was indexed under are read as the beginning or a misspelling of
// one that was, or ignored. Texts that match far worse than the best are left out. An empty query finds nothing.
//
// Only the head of a very long query is read, so the cost is bounded.
func (x *Index) Search(query string, limit int) []Hit {
	if limit <= 0 || x.docs == 0 {
		return nil
	}
	s := x.scratch.Get().(*scratch)
	defer x.scratch.Put(s)
	x.read(s, query)
	clear(s.scores)
	for _, w := range s.terms {
		x.terms.add(s.scores, w)
	}
	best := float32(0)
	for _, v := range s.scores {
		best = max(best, v)
	}
	x.raiseNames(s, best)
	return top(s.scores, best*floor, limit)
}

// read takes the query apart into the terms to look up and the words said.
func (x *Index) read(s *scratch, query string) {
	s.terms, s.said, s.ends, s.unknown = s.terms[:0], s.said[:0], s.ends[:0], 0
	s.lex.reset(query, maxQuery)
	for s.lex.next() && len(s.terms) < maxTerms {
		s.said = append(s.said, s.lex.word...)
		s.ends = append(s.ends, len(s.said))
		if s.lex.cjk {
			s.lex.bigrams(func(pair []byte) { x.lookUp(s, pair) })
			continue
		}
		if stopWords[string(s.lex.word)] || x.lookUp(s, s.lex.word) {
			continue
		}
		// GitHub is a word of its own if anyone wrote it, and two words otherwise.
		known := false
		s.lex.pieces(func(part []byte) {
			known = x.lookUp(s, part) || known
		})
		if !known {
			x.guess(s)
		}
	}
}

// guess adds terms that the unknown word just read may stand for.
func (x *Index) guess(s *scratch) {
	if s.unknown++; s.unknown > maxUnknown {
		return
	}
	s.stem = stem(append(s.stem[:0], s.lex.word...))
	s.guesses = x.terms.guess(s.guesses[:0], s.lex.word, s.stem)
	for _, term := range s.guesses {
		s.use(term, guessed)
	}
}

// lookUp adds the term of a word to the query and reports whether the index has it.
func (x *Index) lookUp(s *scratch, w []byte) bool {
	s.stem = stem(append(s.stem[:0], w...))
	term, ok := x.terms.find(s.stem)
	if ok {
		s.use(term, 1)
	}
	return ok
}

func (s *scratch) use(term uint32, weight float32) {
	if len(s.terms) == maxTerms {
		return
	}
	for _, w := range s.terms {
		if w.term == term {
			return
		}
	}
	s.terms = append(s.terms, weighted{term, weight})
}

// raiseNames gives texts whose names are in the query what they are due.
func (x *Index) raiseNames(s *scratch, best float32) {
	s.raised = s.raised[:0]
	n := min(len(s.ends), maxSaid)
	from := 0
	for i := range n {
		for j := i; j < min(i+maxName, n); j++ {
			said := s.said[from:s.ends[j]]
			at := x.firstName(said)
			if at == len(x.names) || x.names[at].key != string(said) || slices.Contains(s.raised, at) {
				continue
			}
			s.raised = append(s.raised, at)
			for ; at < len(x.names) && x.names[at].key == string(said); at++ {
				s.scores[x.names[at].doc] *= nameSaid
			}
		}
		from = s.ends[i]
	}

	if len(s.said) == 0 {
		return
	}
	for _, name := range x.names[x.firstName(s.said):] {
		share := float32(len(s.said)) / float32(len(name.key))
		if share > 1 || name.key[:len(s.said)] != string(s.said) {
			break
		}
		if share == 1 {
			s.scores[name.doc] += 2*best + 1
		} else if len(s.said) > 1 {
			s.scores[name.doc] += share * (best + 1) / 2
		}
	}
}

// firstName is the place of the first name that is not before key.
func (x *Index) firstName(key []byte) int {
	return sort.Search(len(x.names), func(i int) bool { return x.names[i].key >= string(key) })
}

// top returns the best of the scores above low, at most limit.
func top(scores []float32, low float32, limit int) []Hit {
	found := 0
	for _, v := range scores {
		if v > 0 && v >= low {
			found++
		}
	}
	if found == 0 {
		return nil
	}
	// A heap with the worst hit at its root, so that most texts cost one comparison.
	room := min(found, limit)
	heap := make([]Hit, 0, room)
	for doc, v := range scores {
		if v <= 0 || v < low {
			continue
		}
		h := Hit{doc, float64(v)}
		if len(heap) == room {
			if better(h, heap[0]) < 0 {
				heap[0] = h
				sink(heap, 0)
			}
			continue
		}
		if heap = append(heap, h); len(heap) == room {
			for i := room/2 - 1; i >= 0; i-- {
				sink(heap, i)
			}
		}
	}
	slices.SortFunc(heap, better)
	return heap
}

func better(a, b Hit) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Doc, b.Doc))
}

func sink(heap []Hit, i int) {
	for {
		worst := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(heap); child++ {
			if better(heap[child], heap[worst]) > 0 {
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
