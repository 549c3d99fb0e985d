// Package bm25 ranks skills by how well they match a query. It searches documents
// in memory, without network access or a model. Results are deterministic.
//
// Each document has two Okapi BM25 scores: one over its name, description and
// tags, and one that also includes the start of its body. The search adds the
// two. The first score ranks skills about a subject above those that only
// mention it. The second finds words that the description does not contain.
// Both are computed when the index is built, so a posting stores their sum in
// one byte, and a query adds one number per word and document. A document whose
// full name occurs in the query gets a higher score. A document whose name
// equals the query comes first.
//
// bench/search contains the measurements behind these choices. Start reading at
// [New] and [Index.Search].
package bm25

import (
	"bytes"
	"cmp"
	"iter"
	"math"
	"slices"
	"sync"
)

// BodyHead is the number of characters of a body that are indexed. The rest
// consists mostly of examples and special cases. Indexing it would take time
// and memory without finding more skills.
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
	b  = 0.75 // how strongly long documents are penalized

	nameBoost        = 1.2  // factor for a document whose whole name is in the query
	minShare         = 0.25 // hits below this share of the best score are dropped
	correctionWeight = 0.75 // weight of a term that replaces an unknown word
)

// Doc is a document to index.
type Doc struct {
	Name        string
	Description string
	Tags        []string
	Body        string // text after the description; may be empty; only the first BodyHead characters are indexed
}

// Hit is a search result.
type Hit struct {
	Doc   int     // index in the sequence passed to New, or position passed to Combine
	Score float64 // higher is better; comparable only within a search
	// Fit says how much of the query the document contains; see [IsWeak]. It does
	// not depend on the other documents.
	Fit float64
}

// Index is an immutable search index. It does not retain the strings from which
// it was built. It is safe for concurrent use.
type Index struct {
	size  int // number of positions
	parts []part
	docs  float64   // number of documents
	norms []lengths // by position

	scratch sync.Pool // reusable *queryBuffers
}

// part is a segment that belongs to an index.
type part struct {
	Part
	partial bool // whether the index omits documents of the segment
}

// lengths holds the length penalties of a document.
type lengths struct{ meta, full float64 }

// New indexes docs in order. It reads one document at a time, so the sequence can
// load bodies on demand.
func New(docs iter.Seq[Doc]) *Index {
	s := NewSegment(func(yield func(uint64, Doc) bool) {
		for d := range docs {
			if !yield(0, d) {
				return
			}
		}
	})
	at := make([]int32, s.Len())
	for i := range at {
		at[i] = int32(i)
	}
	return Combine(len(at), Part{s, at})
}

// Combine returns an index of the documents of several segments. Positions are
// 0 to n-1, each for at most one document. The Doc of a hit is the position of
// its document. The result of a search depends only on the documents and their
// positions.
func Combine(n int, parts ...Part) *Index {
	x := &Index{size: n, norms: make([]lengths, n)}
	docs, metaWords, fullWords := 0, uint64(0), uint64(0)
	for _, p := range parts {
		used := 0
		for doc, at := range p.At {
			if at >= 0 {
				used++
				metaWords += uint64(p.Segment.metaLen[doc])
				fullWords += uint64(p.Segment.fullLen[doc])
			}
		}
		if docs += used; used > 0 {
			x.parts = append(x.parts, part{p, used < p.Segment.Len()})
		}
	}
	x.docs = float64(docs)
	metaMean, fullMean := max(1, float64(metaWords)/x.docs), max(1, float64(fullWords)/x.docs)
	norm := func(n uint32, mean float64) float64 { return k1 * (1 - b + b*float64(n)/mean) }
	for _, p := range x.parts {
		for doc, at := range p.At {
			if at >= 0 {
				x.norms[at] = lengths{norm(p.Segment.metaLen[doc], metaMean), norm(p.Segment.fullLen[doc], fullMean)}
			}
		}
	}
	x.scratch.New = func() any { return &queryBuffers{scores: make([]float32, n), covered: make([]float32, n)} }
	return x
}

// Len returns the number of indexed documents.
func (x *Index) Len() int { return int(x.docs) }

// queryBuffers holds buffers that are reused from query to query.
type queryBuffers struct {
	lex      lexer
	keep     func(doc int) bool
	terms    [][2]int  // start and end in words of each term of the query
	words    []byte    // terms of the query, concatenated
	scores   []float32 // by position
	covered  []float32 // information of the query that each document contains, by position
	total    float32   // information of the query
	joined   []byte    // words of the query, concatenated
	ends     []int     // end of each word in joined
	boosted  [][]byte  // names that occur in the query, as parts of joined
	unknown  int       // number of words that occur in no document
	stem     []byte
	postings []posting
	weights  []float64 // by posting
	block    []byte    // read from a dictionary
	value    []byte    // postings that were read from a file
}

// Search returns up to limit documents that share a word with the query, best
// first. Documents with equal scores are returned in indexing order. A document
// whose name equals the query comes first, regardless of spelling and
// separators. Documents whose name starts with the query are ranked higher.
//
// A word that occurs in no document is treated as a prefix or misspelling of
// indexed words, or ignored. Documents with a much lower score than the best one
// are dropped. For an empty query, the result is empty. Only the start of a
// very long query is used, so the cost is bounded.
//
// Search is for indexes in memory. It returns nothing if a file of the index
// cannot be read.
func (x *Index) Search(query string, limit int) []Hit {
	hits, _ := x.SearchAmong(query, limit, nil)
	return hits
}

// SearchAmong is like [Index.Search], but it returns only documents for which
// keep returns true, and drops documents that score far below the best of them.
// The weight of a word still depends on all documents. keep may be nil.
// SearchAmong returns an error only if a segment in a file cannot be read or is
// damaged; see [ErrDamaged].
func (x *Index) SearchAmong(query string, limit int, keep func(doc int) bool) ([]Hit, error) {
	if limit <= 0 || x.docs == 0 {
		return nil, nil
	}
	s := x.scratch.Get().(*queryBuffers)
	defer x.scratch.Put(s)
	s.keep = keep
	clear(s.scores)
	clear(s.covered)
	if err := x.addQuery(s, query); err != nil {
		return nil, err
	}
	best := float32(0)
	for doc, v := range s.scores {
		if v > best {
			if s.kept(doc) {
				best = v
			} else {
				s.scores[doc] = 0
			}
		}
	}
	low := best * minShare
	if err := x.boostNames(s, best); err != nil {
		return nil, err
	}
	if keep != nil {
		for doc, v := range s.scores {
			if v > 0 && v >= low && !keep(doc) {
				s.scores[doc] = 0
			}
		}
	}
	s.keep = nil
	hits := topHits(s.scores, low, limit)
	for i := range hits {
		hits[i].Fit = s.fit(hits[i].Doc)
	}
	return hits, nil
}

func (s *queryBuffers) kept(doc int) bool { return s.keep == nil || s.keep(doc) }

// addQuery splits the query into terms, adds the scores for the terms, and
// concatenates the words of the query.
func (x *Index) addQuery(s *queryBuffers, query string) (err error) {
	s.terms, s.words, s.joined, s.ends, s.unknown, s.total = s.terms[:0], s.words[:0], s.joined[:0], s.ends[:0], 0, 0
	s.lex.reset(query, maxQuery)
	for s.lex.next() && len(s.terms) < maxTerms && err == nil {
		s.joined = append(s.joined, s.lex.word...)
		s.ends = append(s.ends, len(s.joined))
		if s.lex.cjk {
			s.lex.bigrams(func(pair []byte) {
				if err == nil {
					var known bool
					if known, err = x.addWord(s, pair); !known {
						s.total += information(pair)
					}
				}
			})
			continue
		}
		if stopWords()[string(s.lex.word)] {
			continue
		}
		var known bool
		if known, err = x.addWord(s, s.lex.word); known || err != nil {
			continue
		}
		// GitHub is one word if some document contains it, and two words
		// otherwise.
		s.lex.pieces(func(piece []byte) {
			if err == nil {
				var ok bool
				ok, err = x.addWord(s, piece)
				known = known || ok
			}
		})
		if !known && err == nil {
			s.total += information(stem(append(s.stem[:0], s.lex.word...)))
			err = x.addCorrections(s)
		}
	}
	return err
}

// addCorrections adds the terms that the current unknown word may stand for.
func (x *Index) addCorrections(s *queryBuffers) error {
	if s.unknown++; s.unknown > maxUnknown {
		return nil
	}
	s.stem = stem(append(s.stem[:0], s.lex.word...))
	found, err := x.correct(s, s.lex.word, s.stem)
	for _, c := range found {
		if err == nil {
			_, err = x.addTerm(s, []byte(c.term), correctionWeight, correctionWeight*information(s.stem))
		}
	}
	return err
}

// addWord adds a word's term to the query. It reports whether the index contains
// the term.
func (x *Index) addWord(s *queryBuffers, w []byte) (bool, error) {
	s.stem = stem(append(s.stem[:0], w...))
	n, bits := len(s.terms), information(s.stem)
	known, err := x.addTerm(s, s.stem, 1, bits)
	if len(s.terms) > n {
		s.total += bits
	}
	return known, err
}

// addTerm adds the scores and the information of a term of the query. It reports
// whether the index contains the term. A repeated term adds nothing.
func (x *Index) addTerm(s *queryBuffers, term []byte, weight, bits float32) (bool, error) {
	for _, t := range s.terms {
		if string(s.words[t[0]:t[1]]) == string(term) {
			return true, nil
		}
	}
	if len(s.terms) == maxTerms {
		return true, nil
	}
	s.postings = s.postings[:0]
	for i := range x.parts {
		p := &x.parts[i]
		e, ok, err := p.Segment.terms.find(term, &s.block)
		if ok {
			s.postings, err = p.Segment.terms.appendPostings(s.postings, e, p.At, &s.value)
		}
		if err != nil {
			return false, err
		}
	}
	if len(s.postings) == 0 {
		return false, nil
	}
	s.terms = append(s.terms, [2]int{len(s.words), len(s.words) + len(term)})
	s.words = append(s.words, term...)
	x.addScores(s, weight)
	for _, p := range s.postings {
		if p.meta > 0 {
			s.covered[p.doc] += bits
		} else {
			s.covered[p.doc] += bodyShare * bits
		}
	}
	return true, nil
}

// addScores adds the scores for the term in s.postings. It rounds each score to
// a multiple of 1/255 of the highest one, so that small differences in length
// do not affect the order.
func (x *Index) addScores(s *queryBuffers, weight float32) {
	metaTexts := 0
	for _, p := range s.postings {
		if p.meta > 0 {
			metaTexts++
		}
	}
	meta, full := x.wordWeight(metaTexts), x.wordWeight(len(s.postings))
	s.weights = slices.Grow(s.weights[:0], len(s.postings))[:len(s.postings)]
	peak := 0.0
	for i, p := range s.postings {
		norm := &x.norms[p.doc]
		v := full * float64(p.full) / (float64(p.full) + norm.full)
		if p.meta > 0 {
			v += meta * float64(p.meta) / (float64(p.meta) + norm.meta)
		}
		s.weights[i] = v
		peak = max(peak, v)
	}
	unit := weight * float32(peak/math.MaxUint8)
	scale := math.MaxUint8 / peak
	for i, p := range s.postings {
		s.scores[p.doc] += unit * float32(max(1, int32(s.weights[i]*scale+0.5)))
	}
}

// wordWeight returns the highest possible Okapi BM25 score for a word that
// occurs in n documents.
func (x *Index) wordWeight(n int) float64 {
	df := float64(n)
	return math.Log1p((x.docs-df+0.5)/(df+0.5)) * (k1 + 1)
}

// boostNames raises the scores of documents whose names occur in the query.
func (x *Index) boostNames(s *queryBuffers, best float32) error {
	s.boosted = s.boosted[:0]
	n := min(len(s.ends), maxNameWords)
	from := 0
	for i := range n {
		for j := i; j < min(i+maxName, n); j++ {
			joined := s.joined[from:s.ends[j]]
			if slices.ContainsFunc(s.boosted, func(other []byte) bool { return bytes.Equal(other, joined) }) {
				continue
			}
			if err := x.boostName(s, joined); err != nil {
				return err
			}
		}
		from = s.ends[i]
	}
	if len(s.joined) == 0 {
		return nil
	}
	for i := range x.parts {
		p := &x.parts[i]
		var failed error
		err := p.Segment.names.scan(s.joined, &s.block, func(key []byte, e entry) bool {
			if !bytes.HasPrefix(key, s.joined) {
				return false
			}
			add := 2*best + 1
			if share := float32(len(s.joined)) / float32(len(key)); share < 1 {
				add = share * (best + 1) / 2
			}
			if len(key) > len(s.joined) && len(s.joined) == 1 {
				return true
			}
			failed = x.forDocs(s, p, e, func(doc uint32) {
				if s.kept(int(doc)) {
					s.scores[doc] += add
					s.covered[doc] = s.total
				}
			})
			return failed == nil
		})
		if err = cmp.Or(err, failed); err != nil {
			return err
		}
	}
	return nil
}

// boostName raises the scores of documents with the given name.
func (x *Index) boostName(s *queryBuffers, key []byte) error {
	for i := range x.parts {
		p := &x.parts[i]
		e, ok, err := p.Segment.names.find(key, &s.block)
		if ok {
			s.boosted = append(s.boosted, key)
			err = x.forDocs(s, p, e, func(doc uint32) { s.scores[doc] *= nameBoost })
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// forDocs calls f for each document in p whose name has the entry e. It passes
// the document's position in the index.
func (x *Index) forDocs(s *queryBuffers, p *part, e entry, f func(doc uint32)) (err error) {
	s.postings, err = p.Segment.names.appendPostings(s.postings[:0], e, p.At, &s.value)
	for _, post := range s.postings {
		f(post.doc)
	}
	return err
}

// topHits returns up to limit hits with a score of at least minScore, best
// first.
func topHits(scores []float32, minScore float32, limit int) []Hit {
	// Use a heap with the worst hit at its root, so that most documents cost one
	// comparison. Of equal scores, the first one is better.
	var heap []Hit
	for doc, v := range scores {
		if v <= 0 || v < minScore {
			continue
		}
		if len(heap) < limit {
			if heap = append(heap, Hit{Doc: doc, Score: float64(v)}); len(heap) == limit {
				for i := limit/2 - 1; i >= 0; i-- {
					siftDown(heap, i)
				}
				minScore = float32(heap[0].Score)
			}
		} else if v > minScore {
			heap[0] = Hit{Doc: doc, Score: float64(v)}
			siftDown(heap, 0)
			minScore = float32(heap[0].Score)
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
