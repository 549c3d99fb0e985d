package wasm

import (
	"encoding/binary"
	"errors"
)

// maxLocals is the usual engine limit for the local variables of a function.
const maxLocals = 50_000

// Sections of a module, and the subsection of the name section that is not a
// list.
const (
	customSection = 0
	startSection  = 8
	codeSection   = 10
	countSection  = 12
	moduleName    = 0
)

var (
	errSections = errors.New("invalid module: section or list exceeds its bounds")
	errLocals   = errors.New("invalid module: too many local variables in a function (limit 50000)")
)

// scan rejects small modules that would make wazero allocate gigabytes. wazero
// allocates as many elements or local variables as a module declares before it
// reads them. scan checks the lists of sections, locals and names. It leaves
// nested lists to the decoder, whose memory the process limits.
func scan(module []byte) error {
	c := cursor{rest: module[8:]}
	for len(c.rest) > 0 {
		id := c.readBytes(1)
		body := cursor{rest: c.readBytes(c.number())}
		if c.bad {
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
		if string(body.readBytes(body.number())) == "name" {
			scanNames(body)
		}
	case startSection, countSection: // a number, not a list
	case codeSection:
		return scanCode(body)
	default:
		body.count()
	}
	if body.bad {
		return errSections
	}
	return nil
}

// scanNames checks the lists of the name section, including the nested lists of
// local names.
func scanNames(body *cursor) {
	const localNames = 2
	for len(body.rest) > 0 && !body.bad {
		id := body.readBytes(1)
		part := cursor{rest: body.readBytes(body.number())}
		if body.bad || id[0] == moduleName {
			continue
		}
		n := part.count()
		for range n {
			if id[0] != localNames || part.bad {
				break
			}
			part.number()
			for range part.count() {
				part.number()
				part.readBytes(part.number())
			}
		}
		body.bad = body.bad || part.bad
	}
}

// scanCode counts the local variables of each function.
func scanCode(body *cursor) error {
	for range body.count() {
		f := cursor{rest: body.readBytes(body.number())}
		if body.bad {
			return errSections
		}
		locals := uint64(0)
		for range f.count() {
			locals += f.number()
			f.readBytes(1) // the type; longer types belong to a disabled feature
			if f.bad {
				return errSections
			}
			if locals > maxLocals {
				return errLocals
			}
		}
		if f.bad {
			return errSections
		}
	}
	if body.bad {
		return errSections
	}
	return nil
}

// cursor reads bytes from the front of rest. After a read past the end it sets
// bad and returns nothing.
type cursor struct {
	rest []byte
	bad  bool
}

func (c *cursor) number() uint64 {
	v, n := binary.Uvarint(c.rest)
	if n <= 0 {
		c.bad, c.rest = true, nil
		return 0
	}
	c.rest = c.rest[n:]
	return v
}

func (c *cursor) readBytes(n uint64) []byte {
	if n > uint64(len(c.rest)) {
		c.bad, c.rest = true, nil
		return nil
	}
	b := c.rest[:n]
	c.rest = c.rest[n:]
	return b
}

// count returns the number of elements of a list. Each element takes at least
// one byte.
func (c *cursor) count() uint64 {
	n := c.number()
	if n > uint64(len(c.rest)) {
		c.bad, c.rest = true, nil
		return 0
	}
	return n
}
