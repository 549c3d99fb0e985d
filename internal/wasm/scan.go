package wasm

import (
	"encoding/binary"
	"errors"
)

// maxLocals is the maximum number of local variables in a function. It is the
// limit of most engines.
const maxLocals = 50_000

// IDs of sections, and of the only subsection of the name section that is not a
// list.
const (
	customSection = 0
	startSection  = 8
	codeSection   = 10
	countSection  = 12
	moduleName    = 0
)

var (
	errSections = errors.New("invalid module: section or list exceeds the end of the module")
	errLocals   = errors.New("invalid module: too many local variables in a function (limit 50000)")
)

// checkSections returns an error for a small module that would make wazero
// allocate gigabytes. wazero allocates the declared number of elements or local
// variables before it reads them. checkSections checks the lists of sections,
// locals and names. Nested lists are left to the decoder, whose memory is
// limited by the process.
func checkSections(module []byte) error {
	c := cursor{rest: module[8:]}
	for len(c.rest) > 0 {
		id := c.readBytes(1)
		body := cursor{rest: c.readBytes(c.readNumber())}
		if c.failed {
			return errSections
		}
		if err := scanSection(id[0], &body); err != nil {
			return err
		}
	}
	return nil
}

func scanSection(id byte, body *cursor) error {
	switch id {
	case customSection:
		if string(body.readBytes(body.readNumber())) == "name" {
			scanNames(body)
		}
	case startSection, countSection: // a number instead of a list
	case codeSection:
		return scanCode(body)
	default:
		body.readCount()
	}
	if body.failed {
		return errSections
	}
	return nil
}

// scanNames checks the lists in the name section, including the nested lists of
// local names.
func scanNames(body *cursor) {
	const localNames = 2
	for len(body.rest) > 0 && !body.failed {
		id := body.readBytes(1)
		part := cursor{rest: body.readBytes(body.readNumber())}
		if body.failed || id[0] == moduleName {
			continue
		}
		n := part.readCount()
		for range n {
			if id[0] != localNames || part.failed {
				break
			}
			part.readNumber()
			for range part.readCount() {
				part.readNumber()
				part.readBytes(part.readNumber())
			}
		}
		body.failed = body.failed || part.failed
	}
}

// scanCode checks the number of local variables of each function.
func scanCode(body *cursor) error {
	for range body.readCount() {
		f := cursor{rest: body.readBytes(body.readNumber())}
		if body.failed {
			return errSections
		}
		locals := uint64(0)
		for range f.readCount() {
			locals += f.readNumber()
			f.readBytes(1) // the type; longer types belong to a disabled feature
			if f.failed {
				return errSections
			}
			if locals > maxLocals {
				return errLocals
			}
		}
		if f.failed {
			return errSections
		}
	}
	if body.failed {
		return errSections
	}
	return nil
}

// cursor reads bytes from the front of rest. A read past the end sets failed;
// later reads return nothing.
type cursor struct {
	rest   []byte
	failed bool
}

func (c *cursor) readNumber() uint64 {
	v, n := binary.Uvarint(c.rest)
	if n <= 0 {
		c.failed, c.rest = true, nil
		return 0
	}
	c.rest = c.rest[n:]
	return v
}

func (c *cursor) readBytes(n uint64) []byte {
	if n > uint64(len(c.rest)) {
		c.failed, c.rest = true, nil
		return nil
	}
	b := c.rest[:n]
	c.rest = c.rest[n:]
	return b
}

// readCount reads the number of elements in a list. Each element takes at least
// one byte.
func (c *cursor) readCount() uint64 {
	n := c.readNumber()
	if n > uint64(len(c.rest)) {
		c.failed, c.rest = true, nil
		return 0
	}
	return n
}
