package bm25

import (
	"cmp"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
)

// maxCounts is the number of counts after which a builder starts a new segment.
// It limits the memory that indexing needs: a count takes four times as much
// memory as a posting.
const maxCounts = 1 << 21

// NewSegment builds a segment in memory from docs, in order. It reads one
// document at a time, so the sequence can load bodies on demand. A key
// identifies a document for the caller; only segments that are saved need
// unique and sorted keys.
func NewSegment(docs iter.Seq2[uint64, Doc]) *Segment {
	bld := newBuilder()
	var parts []Part
	n := 0
	flush := func() {
		part := Part{Segment: bld.segment()}
		for range part.Segment.Len() {
			part.At = append(part.At, int32(n))
			n++
		}
		parts = append(parts, part)
	}
	for key, d := range docs {
		if bld.add(key, d); bld.total >= maxCounts {
			flush()
		}
	}
	if flush(); len(parts) == 1 {
		return parts[0].Segment
	}
	s, _ := Merge(n, parts...) // fails only for segments in files
	return s
}

// builder collects documents one by one, and counts their words.
type builder struct {
	lex   lexer
	ids   map[string]uint32 // maps words as written to the IDs of their stems; stop words map to stopID
	stems map[string]uint32 // maps stems to their IDs
	stem  []byte

	keys    []uint64      // by document
	counts  [][]termCount // by document
	total   int           // number of counts
	current []termCount   // counts in the current document
	slot    []uint32      // by stem: its index in current plus one, or 0

	metaLen, fullLen []uint32 // number of words of each document, without and with its body

	names []name
}

// name is a document's name with its words joined, so that textToSpeech,
// text-to-speech and "Text to Speech" are equal.
type name struct {
	key string
	doc uint32
}

func newBuilder() *builder {
	return &builder{ids: map[string]uint32{}, stems: map[string]uint32{}}
}

const stopID = math.MaxUint32

// termCount is the number of occurrences of a stem in a document. A byte is
// enough: BM25 barely distinguishes 20 occurrences from 200.
type termCount struct {
	stem       uint32
	meta, full uint8
}

func (bld *builder) add(key uint64, d Doc) {
	doc := uint32(len(bld.counts))
	bld.keys = append(bld.keys, key)
	bld.metaLen, bld.fullLen = append(bld.metaLen, 0), append(bld.fullLen, 0)
	bld.addWords(d.Name, maxField, true)
	bld.addWords(d.Description, maxField, true)
	for _, tag := range d.Tags[:min(len(d.Tags), maxTags)] {
		bld.addWords(tag, maxField, true)
	}
	bld.addWords(d.Body, BodyHead, false)
	if key := bld.nameKey(d.Name); key != "" {
		bld.names = append(bld.names, name{key, doc})
	}

	bld.counts = append(bld.counts, slices.Clone(bld.current))
	bld.total += len(bld.current)
	for _, c := range bld.current {
		bld.slot[c.stem] = 0
	}
	bld.current = bld.current[:0]
}

// addWords counts the words in a field of the current document. Parts of
// camelCase words and single characters of unspaced words are only counted in
// fields that describe the skill, not in bodies.
func (bld *builder) addWords(text string, max int, meta bool) {
	tally := func(w []byte) { bld.countWord(w, meta) }
	for bld.lex.reset(text, max); bld.lex.next(); {
		if !bld.lex.cjk {
			tally(bld.lex.word)
		} else {
			bld.lex.bigrams(tally)
		}
		if meta {
			bld.lex.pieces(tally)
		}
	}
}

func (bld *builder) countWord(w []byte, meta bool) {
	id, ok := bld.ids[string(w)]
	if !ok {
		id = bld.addWord(string(w))
	}
	if id == stopID {
		return
	}
	if bld.slot[id] == 0 {
		bld.current = append(bld.current, termCount{stem: id})
		bld.slot[id] = uint32(len(bld.current))
	}
	c := &bld.current[bld.slot[id]-1]
	c.full += min(1, math.MaxUint8-c.full)
	bld.fullLen[len(bld.fullLen)-1]++
	if meta {
		c.meta += min(1, math.MaxUint8-c.meta)
		bld.metaLen[len(bld.metaLen)-1]++
	}
}

// addWord registers a new word and returns the ID of its stem.
func (bld *builder) addWord(w string) uint32 {
	if stopWords()[w] {
		bld.ids[w] = stopID
		return stopID
	}
	bld.stem = stem(append(bld.stem[:0], w...))
	id, ok := bld.stems[string(bld.stem)]
	if !ok {
		id = uint32(len(bld.slot))
		bld.stems[string(bld.stem)] = id
		bld.slot = append(bld.slot, 0)
	}
	bld.ids[w] = id
	return id
}

// nameKey returns the concatenated words of a name.
func (bld *builder) nameKey(text string) string {
	var key []byte
	for bld.lex.reset(text, maxField); bld.lex.next(); {
		key = append(key, bld.lex.word...)
	}
	return string(key)
}

// segment returns the documents that were added, and starts a new segment.
func (bld *builder) segment() *Segment {
	w := newSegmentWriter()
	for i, key := range bld.keys {
		w.addDoc(key, bld.metaLen[i], bld.fullLen[i])
	}
	bld.writeNames(w)
	bld.writeTerms(w)
	*bld = *newBuilder()
	return w.segment()
}

func (bld *builder) writeNames(w *segmentWriter) {
	slices.SortFunc(bld.names, func(a, b name) int {
		return cmp.Or(strings.Compare(a.key, b.key), cmp.Compare(a.doc, b.doc))
	})
	var postings []byte
	for i := 0; i < len(bld.names); {
		key, next, from := bld.names[i].key, uint32(0), i
		postings = postings[:0]
		for ; i < len(bld.names) && bld.names[i].key == key; i++ {
			postings = appendPosting(postings, posting{doc: bld.names[i].doc, full: 1}, next)
			next = bld.names[i].doc + 1
		}
		w.names.add(key, uint32(i-from), 0, postings)
	}
}

// writeTerms writes all stems with their postings. It reads the counts twice:
// first to compute the size of each stem's postings, and then to encode the
// postings.
func (bld *builder) writeTerms(w *segmentWriter) {
	n := len(bld.slot)
	size := make([]int, n)
	next := make([]uint32, n) // index of the last document of each stem plus one
	docs, meta := make([]uint32, n), make([]uint32, n)
	var one [maxPosting + 1]byte
	bld.each(func(c termCount, p posting) {
		size[c.stem] += len(appendPosting(one[:0], p, next[c.stem]))
		next[c.stem] = p.doc + 1
		docs[c.stem]++
		if p.meta > 0 {
			meta[c.stem]++
		}
	})
	order := slices.Sorted(maps.Keys(bld.stems))
	at := make([]int, n) // offset of the next posting of each stem
	total := 0
	for _, s := range order {
		id := bld.stems[s]
		at[id] = total
		total += size[id]
	}
	all := make([]byte, total)
	clear(next)
	bld.each(func(c termCount, p posting) {
		at[c.stem] += len(appendPosting(all[at[c.stem]:at[c.stem]], p, next[c.stem]))
		next[c.stem] = p.doc + 1
	})
	w.values = slices.Grow(w.values, total)
	for _, s := range order {
		id := bld.stems[s]
		w.terms.add(s, docs[id], meta[id], all[at[id]-size[id]:at[id]])
	}
}

// each calls f for every count in every document.
func (bld *builder) each(f func(c termCount, p posting)) {
	for doc, counts := range bld.counts {
		for _, c := range counts {
			f(c, posting{uint32(doc), c.meta, c.full})
		}
	}
}
