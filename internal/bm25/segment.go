package bm25

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"sync"
)

// A segment consists of a header and six sections. All numbers are
// little-endian.
//
//	header       magic, number of documents, length of the label, length and
//	             checksum of each section, the label, checksum of the header
//	documents    of each document: its key, and its number of words without and
//	             with the body
//	names        blocks of a dictionary of names
//	name index   first name, length and checksum of each block
//	terms        blocks of a dictionary of stems
//	term index   first stem, length and checksum of each block
//	values       postings that are too long for a block
//
// Sections that are read at once have a checksum in the header, and the others
// have one for each part that is read.

// segmentMagic contains the version of the format. Change it whenever the same
// documents would produce a different segment.
const segmentMagic = "loadout search 1"

const (
	docSection = iota
	nameSection
	nameIndexSection
	termSection
	termIndexSection
	valueSection
	sectionCount
)

const (
	headerSize = len(segmentMagic) + 8 + sectionCount*12 // without the label and the checksum
	docSize    = 16
	maxPosting = binary.MaxVarintLen32 + 3
	maxDocs    = 1 << 22
	maxSegment = 1 << 30
	maxSection = 256 << 20 // maximum length of a section that is read at once
)

// ErrDamaged is returned for a segment that is damaged, or was written in a
// different format or with a different label.
var ErrDamaged = errors.New("damaged search index")

// crcTable is computed at its first use. At package initialization, each sandboxed
// process of this program would compute it too.
var crcTable = sync.OnceValue(func() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) })

func checksum(b []byte) uint32 { return crc32.Checksum(b, crcTable()) }

// Segment is an immutable set of documents that were split into words, in
// memory or in a file. The weights of words depend on other documents and are
// not part of it, so segments can be combined into an [Index]. A segment does
// not retain the documents. It is safe for concurrent use.
type Segment struct {
	keys     []uint64
	metaLen  []uint32 // number of words of each document without its body
	fullLen  []uint32
	names    dictionary
	terms    dictionary
	sections [sectionCount]section
}

// section is a part of a segment. A section of a file is read on demand, and
// everything that is read is verified.
type section struct {
	mem  []byte
	file io.ReaderAt // nil if the section is in memory
	off  int64
	len  int64
}

// Len returns the number of documents.
func (s *Segment) Len() int { return len(s.keys) }

// Keys returns the keys of the documents. The slice must not be modified.
func (s *Segment) Keys() []uint64 { return s.keys }

// Size returns the number of bytes that [Segment.Write] writes for an empty
// label.
func (s *Segment) Size() int64 {
	n := int64(headerSize + 4)
	for i := range s.sections {
		n += s.sections[i].len
	}
	return n
}

// OpenSegment opens a segment that [Segment.Write] wrote with the same label.
// It reads the list of documents and the first word of each block. The rest is
// read from r by searches, so r must remain open and unchanged. If the content
// is not a valid segment, the error is [ErrDamaged].
func OpenSegment(r io.ReaderAt, size int64, label string) (*Segment, error) {
	if size < int64(headerSize+4+len(label)) || size > maxSegment {
		return nil, fmt.Errorf("%w: invalid file size (%d bytes, limit %d)", ErrDamaged, size, maxSegment)
	}
	header := make([]byte, headerSize+len(label)+4)
	if err := readAt(r, header, 0); err != nil {
		return nil, err
	}
	body, sum := header[:len(header)-4], binary.LittleEndian.Uint32(header[len(header)-4:])
	switch {
	case string(header[:len(segmentMagic)]) != segmentMagic:
		return nil, fmt.Errorf("%w: unknown format", ErrDamaged)
	case checksum(body) != sum || string(body[headerSize:]) != label:
		return nil, fmt.Errorf("%w: header mismatch", ErrDamaged)
	}
	fields := body[len(segmentMagic):]
	docs, labelLen := binary.LittleEndian.Uint32(fields), binary.LittleEndian.Uint32(fields[4:])
	fields = fields[8:]
	s := &Segment{}
	var sums [sectionCount]uint32
	off := int64(len(header))
	for i := range s.sections {
		n := binary.LittleEndian.Uint64(fields[12*i:])
		if n > uint64(size-off) {
			return nil, fmt.Errorf("%w: section %d is truncated", ErrDamaged, i)
		}
		s.sections[i] = section{file: r, off: off, len: int64(n)}
		sums[i] = binary.LittleEndian.Uint32(fields[12*i+8:])
		off += int64(n)
	}
	if off != size || int(labelLen) != len(label) || docs > maxDocs || s.sections[docSection].len != int64(docs)*docSize {
		return nil, fmt.Errorf("%w: length mismatch", ErrDamaged)
	}
	var read [sectionCount][]byte
	for _, i := range []int{docSection, nameIndexSection, termIndexSection} {
		b, err := s.sections[i].readAll(sums[i])
		if err != nil {
			return nil, err
		}
		read[i] = b
	}
	s.readDocs(read[docSection])
	if !slices.IsSorted(s.keys) || !s.names.read(read[nameIndexSection], &s.sections[nameSection], &s.sections[valueSection], s.Len()) ||
		!s.terms.read(read[termIndexSection], &s.sections[termSection], &s.sections[valueSection], s.Len()) {
		return nil, fmt.Errorf("%w: invalid document list or block index", ErrDamaged)
	}
	return s, nil
}

// readDocs decodes the list of documents.
func (s *Segment) readDocs(b []byte) {
	n := len(b) / docSize
	s.keys, s.metaLen, s.fullLen = make([]uint64, n), make([]uint32, n), make([]uint32, n)
	for i := range n {
		s.keys[i] = binary.LittleEndian.Uint64(b[i*docSize:])
		s.metaLen[i] = binary.LittleEndian.Uint32(b[i*docSize+8:])
		s.fullLen[i] = binary.LittleEndian.Uint32(b[i*docSize+12:])
	}
}

// Write writes the segment to w. The same documents, keys and label produce the
// same bytes if the keys are unique.
func (s *Segment) Write(w io.Writer, label string) error {
	header := make([]byte, 0, headerSize+len(label)+4)
	header = append(header, segmentMagic...)
	header = binary.LittleEndian.AppendUint32(header, uint32(s.Len()))
	header = binary.LittleEndian.AppendUint32(header, uint32(len(label)))
	var content [sectionCount][]byte
	for i := range s.sections {
		if s.sections[i].file != nil {
			return errors.New("write search index: segment is not in memory; merge it first")
		}
		content[i] = s.sections[i].mem
		sum := uint32(0)
		if i == docSection || i == nameIndexSection || i == termIndexSection {
			sum = checksum(content[i])
		}
		header = binary.LittleEndian.AppendUint64(header, uint64(len(content[i])))
		header = binary.LittleEndian.AppendUint32(header, sum)
	}
	header = append(header, label...)
	header = binary.LittleEndian.AppendUint32(header, checksum(header))
	for _, b := range append([][]byte{header}, content[:]...) {
		if _, err := w.Write(b); err != nil {
			return err
		}
	}
	return nil
}

// readAll reads a section with the given checksum.
func (s *section) readAll(sum uint32) ([]byte, error) {
	if s.len > maxSection {
		return nil, fmt.Errorf("%w: section too large (%d bytes, limit %d)", ErrDamaged, s.len, maxSection)
	}
	buf := make([]byte, s.len)
	return s.read(0, s.len, sum, &buf)
}

// read returns n bytes at an offset. If the section is in a file, read uses buf
// and verifies the checksum.
func (s *section) read(off, n int64, sum uint32, buf *[]byte) ([]byte, error) {
	if off < 0 || n < 0 || off > s.len || n > s.len-off {
		return nil, fmt.Errorf("%w: offset outside section", ErrDamaged)
	}
	if s.file == nil {
		return s.mem[off : off+n], nil
	}
	if int64(cap(*buf)) < n {
		*buf = make([]byte, n, n+n/2)
	}
	b := (*buf)[:n]
	if err := readAt(s.file, b, s.off+off); err != nil {
		return nil, err
	}
	if checksum(b) != sum {
		return nil, fmt.Errorf("%w: checksum mismatch", ErrDamaged)
	}
	return b, nil
}

func readAt(r io.ReaderAt, b []byte, off int64) error {
	if n, err := r.ReadAt(b, off); n < len(b) {
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("%w: file is truncated", ErrDamaged)
		}
		return fmt.Errorf("read search index: %w", err)
	}
	return nil
}

// posting is a document that contains a term.
type posting struct {
	doc        uint32
	meta, full uint8 // occurrences without and with the body; more than 255 count as 255
}

// The counts of a posting are usually encoded in one byte. A code below
// metaCode is the number of occurrences if all of them are in the body. Codes
// from metaCode on stand for up to maxMetaCode occurrences outside of the body
// and up to 16 in total. After the code longCode, two bytes hold the counts.
const (
	metaCode    = 0xC0
	longCode    = 0xFF
	maxMetaCode = 3
)

// decodeCounts returns the counts for a code of one byte, or 0 and 0 if it is invalid.
func decodeCounts(code uint8) (meta, full uint8) {
	switch {
	case code < metaCode:
		return 0, code
	case code < metaCode+16*maxMetaCode:
		return (code-metaCode)/16 + 1, (code-metaCode)%16 + 1
	}
	return 0, 0
}

// appendPosting appends a posting. next is one more than the document of the
// previous posting, or 0 for the first.
func appendPosting(b []byte, p posting, next uint32) []byte {
	b = binary.AppendUvarint(b, uint64(p.doc+1-next))
	switch {
	case p.meta == 0 && p.full < metaCode:
		return append(b, p.full)
	case p.meta > 0 && p.meta <= maxMetaCode && p.full > 0 && p.full <= 16:
		return append(b, metaCode+(p.meta-1)*16+p.full-1)
	}
	return append(b, longCode, p.meta, p.full)
}

// appendPostings decodes the postings in b and appends them to out. It omits
// documents whose position is negative. It returns false if b is damaged.
func appendPostings(out []posting, b []byte, positions []int32) ([]posting, bool) {
	next := uint64(0) // one more than the previous document
	for i := 0; i < len(b); {
		delta := uint64(b[i])
		if i++; delta >= 0x80 {
			var n int
			if delta, n = binary.Uvarint(b[i-1:]); n <= 0 {
				return out, false
			}
			i += n - 1
		}
		if delta == 0 || delta > uint64(len(positions))-next || i == len(b) {
			return out, false
		}
		next += delta
		p := posting{}
		if c := b[i]; c != longCode {
			p.meta, p.full = decodeCounts(c)
			i++
		} else {
			if i+3 > len(b) {
				return out, false
			}
			p.meta, p.full = b[i+1], b[i+2]
			i += 3
		}
		if at := positions[next-1]; at >= 0 {
			p.doc = uint32(at)
			out = append(out, p)
		}
	}
	return out, true
}
