package bm25

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"
)

// builder collects texts one by one. It only counts words until terms is
// called, because a word's weight depends on all texts.
type builder struct {
	lex   lexer
	ids   map[string]uint32 // maps words as written to the IDs of their stems; stop words map to stopID
	stems map[string]uint32 // maps stems to their IDs
	stem  []byte

	counts  [][]termCount // by text
	current []termCount   // of the current text
	slot    []uint32      // by stem: its index in current plus one, or 0

	metaLen, fullLen []uint32 // number of words of each text, without and with its body

	names []name
}

const stopID = math.MaxUint32

// termCount is the number of occurrences of a stem in a text. A byte is enough:
// BM25 barely distinguishes 20 occurrences from 200.
type termCount struct {
	stem       uint32
	meta, full uint8
}

func (bld *builder) add(d Doc) {
	doc := uint32(len(bld.counts))
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
	for _, c := range bld.current {
		bld.slot[c.stem] = 0
	}
	bld.current = bld.current[:0]
}

// addWords counts the words in a field of the current text. Parts of camelCase
// words and single characters of unspaced words are only counted in fields that
// describe the skill, not in bodies.
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
	if stopWords[w] {
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

// terms computes the weights. It reads the counts three times: to count the
// texts of each stem, to compute the size and the highest score of its
// postings, and to write them.
func (bld *builder) terms() terms {
	n := len(bld.slot)
	meta, full := newField(bld.metaLen, n), newField(bld.fullLen, n)
	bld.each(func(_ uint32, c termCount) {
		meta.count(c.stem, c.meta)
		full.count(c.stem, c.full)
	})
	meta.setWeights()
	full.setWeights()
	score := func(doc uint32, c termCount) float64 {
		return meta.score(doc, c.stem, c.meta) + full.score(doc, c.stem, c.full)
	}

	size := make([]uint32, n)
	next := make([]uint32, n) // index of the last text of each stem plus one
	peak := make([]float64, n)
	bld.each(func(doc uint32, c termCount) {
		size[c.stem] += uint32(varintLen(doc+1-next[c.stem])) + 1
		next[c.stem] = doc + 1
		peak[c.stem] = max(peak[c.stem], score(doc, c))
	})

	order := make([]string, 0, n)
	length := 0
	for s := range bld.stems {
		order = append(order, s)
		length += len(s)
	}
	slices.Sort(order)
	t := terms{ends: make([]uint32, n), postingEnds: make([]uint32, n), units: make([]float32, n)}
	var text strings.Builder
	text.Grow(length)
	at := make([]uint32, n) // offset of the next posting of each stem
	total := uint32(0)
	for i, s := range order {
		id := bld.stems[s]
		text.WriteString(s)
		t.ends[i] = uint32(text.Len())
		at[id] = total
		total += size[id]
		t.postingEnds[i] = total
		t.units[i] = float32(peak[id] / math.MaxUint8)
		if meta.idf[id] == 0 {
			t.units[i] = -t.units[i]
		}
	}
	t.text = text.String()
	t.postings = make([]byte, total)

	clear(next)
	bld.each(func(doc uint32, c termCount) {
		i := at[c.stem]
		i += uint32(binary.PutUvarint(t.postings[i:], uint64(doc+1-next[c.stem])))
		t.postings[i] = byte(max(1, math.Round(score(doc, c)/peak[c.stem]*math.MaxUint8)))
		at[c.stem] = i + 1
		next[c.stem] = doc + 1
	})
	return t
}

// each calls f with every count and the text it belongs to.
func (bld *builder) each(f func(doc uint32, c termCount)) {
	for doc, counts := range bld.counts {
		for _, c := range counts {
			f(uint32(doc), c)
		}
	}
}

func varintLen(v uint32) int {
	var buf [binary.MaxVarintLen32]byte
	return binary.PutUvarint(buf[:], uint64(v))
}

// field computes the scores of stems in texts, either with or without bodies.
type field struct {
	docs float64
	norm []float64 // by text: penalty for its length
	idf  []float64 // by stem: its weight; before setWeights, the number of texts that contain it
}

func newField(lengths []uint32, stems int) field {
	total := uint64(0)
	for _, n := range lengths {
		total += uint64(n)
	}
	mean := max(1, float64(total)/float64(len(lengths)))
	f := field{docs: float64(len(lengths)), norm: make([]float64, len(lengths)), idf: make([]float64, stems)}
	for doc, n := range lengths {
		f.norm[doc] = k1 * (1 - b + b*float64(n)/mean)
	}
	return f
}

func (f *field) count(stem uint32, tf uint8) {
	if tf > 0 {
		f.idf[stem]++
	}
}

func (f *field) setWeights() {
	for stem, df := range f.idf {
		if df > 0 {
			f.idf[stem] = math.Log1p((f.docs - df + 0.5) / (df + 0.5))
		}
	}
}

// score returns the Okapi BM25 score of a stem that occurs tf times in a text.
func (f *field) score(doc, stem uint32, tf uint8) float64 {
	return f.idf[stem] * float64(tf) * (k1 + 1) / (float64(tf) + f.norm[doc])
}
