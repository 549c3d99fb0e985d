package telemetry

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
)

// message is a message in the protobuf wire format. Its methods append a field and
// return the extended message. All except add omit zero values, as proto3 does.
//
// The generated types of the protocol would link the protobuf library, which takes
// a megabyte and initializes itself whenever the program starts.
type message []byte

// Wire types.
const (
	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2
	wireFixed32 = 5
)

func (m message) tag(field, wire int) message {
	return binary.AppendUvarint(m, uint64(field)<<3|uint64(wire))
}

// addVarint appends an integer, a boolean or an enumeration.
func (m message) addVarint(field int, v uint64) message {
	if v == 0 {
		return m
	}
	return binary.AppendUvarint(m.tag(field, wireVarint), v)
}

// addCount appends a number of type uint32.
func (m message) addCount(field, n int) message {
	return m.addVarint(field, min(uint64(max(n, 0)), math.MaxUint32))
}

func (m message) addFixed64(field int, v uint64) message {
	if v == 0 {
		return m
	}
	return binary.LittleEndian.AppendUint64(m.tag(field, wireFixed64), v)
}

func (m message) addFixed32(field int, v uint32) message {
	if v == 0 {
		return m
	}
	return binary.LittleEndian.AppendUint32(m.tag(field, wireFixed32), v)
}

func (m message) addBytes(field int, b []byte) message {
	if len(b) == 0 {
		return m
	}
	return m.add(field, b)
}

// addText appends a string, which must be valid UTF-8 in a message.
func (m message) addText(field int, s string) message {
	return m.addBytes(field, []byte(strings.ToValidUTF8(s, "\uFFFD")))
}

// add appends a message, bytes or a string, even if it is empty.
func (m message) add(field int, content []byte) message {
	return append(binary.AppendUvarint(m.tag(field, wireBytes), uint64(len(content))), content...)
}

var errWireFormat = errors.New("invalid protobuf message")

// forEachField calls yield for each field of a message. It passes the value of a
// varint field as v and that of a bytes field as b. For fields of other types, it
// passes no value.
func (m message) forEachField(yield func(field, v uint64, b []byte) error) error {
	for len(m) > 0 {
		tag, n := binary.Uvarint(m)
		if field := tag >> 3; n <= 0 || field < 1 || field > 1<<29-1 {
			return errWireFormat
		}
		m = m[n:]
		var v uint64
		var b []byte
		size := 0 // of the value
		switch tag & 7 {
		case wireVarint:
			v, size = binary.Uvarint(m)
			if size <= 0 {
				return errWireFormat
			}
		case wireFixed64:
			size = 8
		case wireFixed32:
			size = 4
		case wireBytes:
			length, n := binary.Uvarint(m)
			if n <= 0 || length > uint64(len(m)-n) {
				return errWireFormat
			}
			size = n + int(length)
			b = m[n:size]
		default:
			return fmt.Errorf("%w: unsupported wire type %d", errWireFormat, tag&7)
		}
		if size > len(m) {
			return errWireFormat
		}
		if err := yield(tag>>3, v, b); err != nil {
			return err
		}
		m = m[size:]
	}
	return nil
}
