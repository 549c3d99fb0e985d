package bm25

import "encoding/binary"

// RepairChecksums updates the checksums of a damaged segment, as an attacker
// could, as far as its structure permits.
func RepairChecksums(b []byte, labelLen int) {
	start := headerSize + labelLen + 4
	if len(b) < start {
		return
	}
	fields := b[len(segmentMagic)+8:]
	var sections [sectionCount][]byte
	rest := b[start:]
	for i := range sections {
		n := binary.LittleEndian.Uint64(fields[12*i:])
		if n > uint64(len(rest)) {
			break
		}
		sections[i], rest = rest[:n], rest[n:]
	}
	for _, i := range []int{nameIndexSection, termIndexSection} {
		blocks := sections[i-1]
		for index := sections[i]; len(index) > 0; {
			n, size := binary.Uvarint(index)
			if size <= 0 || n > uint64(len(index)-size) {
				break
			}
			index = index[size+int(n):]
			length, size := binary.Uvarint(index)
			if size <= 0 || length > uint64(len(blocks)) || len(index)-size < 4 {
				break
			}
			repairValues(blocks[:length], sections[valueSection])
			binary.LittleEndian.PutUint32(index[size:], checksum(blocks[:length]))
			blocks, index = blocks[length:], index[size+4:]
		}
	}
	for _, i := range []int{docSection, nameIndexSection, termIndexSection} {
		binary.LittleEndian.PutUint32(fields[12*i+8:], checksum(sections[i]))
	}
	binary.LittleEndian.PutUint32(b[start-4:], checksum(b[:start-4]))
}

// repairValues updates the checksums of postings in a block.
func repairValues(block, values []byte) {
	for rest := block; len(rest) > 0; {
		_, e, next, err := parseEntry(rest)
		if err != nil {
			return
		}
		if at := len(rest) - len(next) - 4; e.inline == nil && e.off+e.len <= int64(len(values)) {
			binary.LittleEndian.PutUint32(rest[at:], checksum(values[e.off:e.off+e.len]))
		}
		rest = next
	}
}
