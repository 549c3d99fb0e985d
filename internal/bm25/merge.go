package bm25

import (
	"bytes"
	"slices"
)

// Part is a segment with the positions of its documents in an index or in a
// merged segment.
type Part struct {
	Segment *Segment
	At      []int32 // position of each document, or a negative number to omit the document
}

// Merge returns a segment in memory with the documents of several segments. The
// positions must be 0 to n-1, each for exactly one document. It fails only if a
// segment in a file cannot be read.
func Merge(n int, parts ...Part) (*Segment, error) {
	w := newSegmentWriter()
	w.docs = make([]byte, 0, n*docSize)
	type origin struct{ part, doc int32 }
	origins := make([]origin, n)
	size := int64(0)
	for i, p := range parts {
		size += p.Segment.sections[valueSection].len
		for doc, at := range p.At {
			if at >= 0 {
				origins[at] = origin{int32(i), int32(doc)}
			}
		}
	}
	for _, o := range origins {
		s := parts[o.part].Segment
		w.addDoc(s.keys[o.doc], s.metaLen[o.doc], s.fullLen[o.doc])
	}
	w.values = make([]byte, 0, size)
	m := merger{w: &w.names}
	if err := m.merge(parts, func(s *Segment) *dictionary { return &s.names }); err != nil {
		return nil, err
	}
	m.w = &w.terms
	if err := m.merge(parts, func(s *Segment) *dictionary { return &s.terms }); err != nil {
		return nil, err
	}
	return w.segment(), nil
}

// merger merges dictionaries.
type merger struct {
	w       *dictionaryWriter
	found   []posting
	sorted  []uint64 // postings as numbers whose order is that of the documents
	encoded []byte
	buf     []byte
}

// merge merges one dictionary of each segment, selected by dict. It writes the
// words in order.
func (m *merger) merge(parts []Part, dict func(*Segment) *dictionary) error {
	cursors := make([]*cursor, 0, len(parts))
	for _, p := range parts {
		c := &cursor{d: dict(p.Segment), positions: p.At}
		if err := c.next(); err != nil {
			return err
		}
		cursors = append(cursors, c)
	}
	var word []byte
	for {
		first := -1
		for i, c := range cursors {
			if !c.done && (first < 0 || bytes.Compare(c.word, cursors[first].word) < 0) {
				first = i
			}
		}
		if first < 0 {
			return nil
		}
		word = append(word[:0], cursors[first].word...)
		m.found = m.found[:0]
		for _, c := range cursors {
			if c.done || !bytes.Equal(c.word, word) {
				continue
			}
			var err error
			if m.found, err = c.d.appendPostings(m.found, c.entry, c.positions, &m.buf); err != nil {
				return err
			}
			if err := c.next(); err != nil {
				return err
			}
		}
		m.write(word)
	}
}

// write writes a word with the postings in m.found.
func (m *merger) write(word []byte) {
	if len(m.found) == 0 {
		return
	}
	m.sorted = m.sorted[:0]
	meta := uint32(0)
	for _, p := range m.found {
		m.sorted = append(m.sorted, uint64(p.doc)<<16|uint64(p.meta)<<8|uint64(p.full))
		if p.meta > 0 {
			meta++
		}
	}
	if !slices.IsSorted(m.sorted) {
		slices.Sort(m.sorted)
	}
	m.encoded = m.encoded[:0]
	next := uint32(0)
	for _, v := range m.sorted {
		p := posting{uint32(v >> 16), uint8(v >> 8), uint8(v)}
		m.encoded = appendPosting(m.encoded, p, next)
		next = p.doc + 1
	}
	m.w.add(string(word), uint32(len(m.sorted)), meta, m.encoded)
}

// cursor reads the words of a dictionary in order.
type cursor struct {
	d         *dictionary
	positions []int32
	block     int // next block
	buf       []byte
	rest      []byte // unread part of the current block
	word      []byte
	entry     entry
	done      bool
}

// next reads the next word.
func (c *cursor) next() (err error) {
	if len(c.rest) == 0 {
		if c.block == len(c.d.first) {
			c.done = true
			return nil
		}
		if c.rest, err = c.d.block(c.block, &c.buf); err != nil {
			return err
		}
		c.block++
	}
	if len(c.rest) == 0 {
		return errEntry // a block has at least one entry
	}
	c.word, c.entry, c.rest, err = parseEntry(c.rest)
	return err
}
