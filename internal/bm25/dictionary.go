package bm25

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sort"
	"strings"
)

const (
	blockEntries = 64 // entries per block
	maxInline    = 16 // maximum length of postings that are stored in a block, in bytes
)

// dictionary maps sorted words to their postings. It consists of blocks, and
// keeps only the first word of each in memory.
type dictionary struct {
	blocks, values *section
	docs           int
	first          []string // first word of each block
	ends           []int64  // end of each block
	sums           []uint32 // checksum of each block
}

// entry describes the postings of a word.
type entry struct {
	docs   uint32 // number of documents with the word
	meta   uint32 // number of documents with the word outside of the body
	inline []byte // the postings, or nil if they are in the section of values
	off    int64
	len    int64
	sum    uint32
}

// read decodes the index of blocks. It returns false if the index is damaged.
func (d *dictionary) read(index []byte, blocks, values *section, docs int) bool {
	d.blocks, d.values, d.docs = blocks, values, docs
	text := string(index)
	end := int64(0)
	for at := 0; at < len(index); {
		n, size := binary.Uvarint(index[at:])
		if size <= 0 || n > uint64(len(index)-at-size) {
			return false
		}
		at += size
		word := text[at : at+int(n)]
		at += int(n)
		length, size := binary.Uvarint(index[at:])
		if size <= 0 || length > uint64(blocks.len-end) || len(index)-at-size < 4 {
			return false
		}
		end += int64(length)
		d.first, d.ends = append(d.first, word), append(d.ends, end)
		d.sums = append(d.sums, binary.LittleEndian.Uint32(index[at+size:]))
		at += size + 4
	}
	return end == blocks.len
}

// block returns the content of a block.
func (d *dictionary) block(i int, buf *[]byte) ([]byte, error) {
	from := int64(0)
	if i > 0 {
		from = d.ends[i-1]
	}
	return d.blocks.read(from, d.ends[i]-from, d.sums[i], buf)
}

// blockOf returns the index of the only block that can contain the word.
func (d *dictionary) blockOf(word []byte) int {
	return max(0, sort.Search(len(d.first), func(i int) bool { return d.first[i] > string(word) })-1)
}

// find returns the entry of a word. Its postings are valid until buf is used
// again.
func (d *dictionary) find(word []byte, buf *[]byte) (e entry, ok bool, err error) {
	i := d.blockOf(word)
	if i == len(d.first) || d.first[i] > string(word) {
		return e, false, nil
	}
	b, err := d.block(i, buf)
	for len(b) > 0 && err == nil {
		var key []byte
		if key, e, b, err = parseEntry(b); err != nil {
			break
		}
		if c := bytes.Compare(key, word); c >= 0 {
			return e, c == 0, nil
		}
	}
	return entry{}, false, err
}

// scan calls yield with each word that equals start or sorts after it, in
// order, until yield returns false. Words and postings are valid until yield
// returns.
func (d *dictionary) scan(start []byte, buf *[]byte, yield func(word []byte, e entry) bool) error {
	for i := d.blockOf(start); i < len(d.first); i++ {
		b, err := d.block(i, buf)
		if err != nil {
			return err
		}
		for len(b) > 0 {
			var word []byte
			var e entry
			if word, e, b, err = parseEntry(b); err != nil {
				return err
			}
			if bytes.Compare(word, start) >= 0 && !yield(word, e) {
				return nil
			}
		}
	}
	return nil
}

// postings returns the encoded postings of an entry. If they are not stored in
// the block, it reads them into buf.
func (d *dictionary) postings(e entry, buf *[]byte) ([]byte, error) {
	if e.inline != nil {
		return e.inline, nil
	}
	if e.len > maxPosting*int64(d.docs) {
		return nil, fmt.Errorf("%w: postings too long (%d bytes for %d documents)", ErrDamaged, e.len, d.docs)
	}
	return d.values.read(e.off, e.len, e.sum, buf)
}

// appendPostings appends the postings of an entry to out, omitting documents
// with a negative position.
func (d *dictionary) appendPostings(out []posting, e entry, positions []int32, buf *[]byte) ([]posting, error) {
	b, err := d.postings(e, buf)
	if err != nil {
		return out, err
	}
	out, ok := appendPostings(out, b, positions)
	if !ok {
		return out, fmt.Errorf("%w: invalid postings", ErrDamaged)
	}
	return out, nil
}

// parseEntry decodes the first entry of b.
func parseEntry(b []byte) (word []byte, e entry, rest []byte, err error) {
	var fields [4]uint64 // length of the word, documents, meta, length of the postings
	for i := range fields {
		n := 0
		if len(b) > 0 && b[0] < 0x80 {
			fields[i], n = uint64(b[0]), 1
		} else if fields[i], n = binary.Uvarint(b); n <= 0 || fields[i] > maxSegment {
			return nil, e, nil, errEntry
		}
		b = b[n:]
		if i == 0 {
			if fields[0] > uint64(len(b)) {
				return nil, e, nil, errEntry
			}
			word, b = b[:fields[0]], b[fields[0]:]
		}
	}
	e = entry{docs: uint32(fields[1]), meta: uint32(fields[2]), len: int64(fields[3])}
	if e.len <= maxInline {
		if e.len > int64(len(b)) {
			return nil, e, nil, errEntry
		}
		e.inline = b[:e.len:e.len]
		return word, e, b[e.len:], nil
	}
	off, n := binary.Uvarint(b)
	if n <= 0 || off > maxSegment || len(b)-n < 4 {
		return nil, e, nil, errEntry
	}
	e.off, e.sum = int64(off), binary.LittleEndian.Uint32(b[n:])
	return word, e, b[n+4:], nil
}

var errEntry = fmt.Errorf("%w: invalid block entry", ErrDamaged)

// dictionaryWriter writes a dictionary. Words must be added in order.
type dictionaryWriter struct {
	blocks, index []byte
	values        *[]byte
	entries       int // number of entries in the current block
	start         int // offset of the current block
	first         string
}

// add adds a word and its encoded postings.
func (w *dictionaryWriter) add(word string, docs, meta uint32, postings []byte) {
	if w.entries == blockEntries {
		w.endBlock()
	}
	if w.entries == 0 {
		w.first = strings.Clone(word)
	}
	w.entries++
	b := binary.AppendUvarint(w.blocks, uint64(len(word)))
	b = append(b, word...)
	b = binary.AppendUvarint(b, uint64(docs))
	b = binary.AppendUvarint(b, uint64(meta))
	b = binary.AppendUvarint(b, uint64(len(postings)))
	if len(postings) <= maxInline {
		w.blocks = append(b, postings...)
		return
	}
	b = binary.AppendUvarint(b, uint64(len(*w.values)))
	w.blocks = binary.LittleEndian.AppendUint32(b, checksum(postings))
	*w.values = append(*w.values, postings...)
}

func (w *dictionaryWriter) endBlock() {
	if w.entries == 0 {
		return
	}
	w.index = binary.AppendUvarint(w.index, uint64(len(w.first)))
	w.index = append(w.index, w.first...)
	w.index = binary.AppendUvarint(w.index, uint64(len(w.blocks)-w.start))
	w.index = binary.LittleEndian.AppendUint32(w.index, checksum(w.blocks[w.start:]))
	w.start, w.entries = len(w.blocks), 0
}

// segmentWriter builds a segment in memory.
type segmentWriter struct {
	docs         []byte
	names, terms dictionaryWriter
	values       []byte
}

func newSegmentWriter() *segmentWriter {
	w := &segmentWriter{}
	w.names.values, w.terms.values = &w.values, &w.values
	return w
}

func (w *segmentWriter) addDoc(key uint64, metaLen, fullLen uint32) {
	w.docs = binary.LittleEndian.AppendUint64(w.docs, key)
	w.docs = binary.LittleEndian.AppendUint32(w.docs, metaLen)
	w.docs = binary.LittleEndian.AppendUint32(w.docs, fullLen)
}

func (w *segmentWriter) segment() *Segment {
	w.names.endBlock()
	w.terms.endBlock()
	s := &Segment{}
	for i, b := range [sectionCount][]byte{w.docs, w.names.blocks, w.names.index, w.terms.blocks, w.terms.index, w.values} {
		s.sections[i] = section{mem: b, len: int64(len(b))}
	}
	s.readDocs(w.docs)
	s.names.read(w.names.index, &s.sections[nameSection], &s.sections[valueSection], s.Len())
	s.terms.read(w.terms.index, &s.sections[termSection], &s.sections[valueSection], s.Len())
	return s
}
