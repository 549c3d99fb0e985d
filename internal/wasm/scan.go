package wasm

import (
	"encoding/binary"
	"errors"
)

// maxLocals is the usual limit of engines for the local variables of one function.
const maxLocals = 50_000

// Sections of a module, and the part of the name section that is one name and no list.
const (
	customSection = 0
	startSection  = 8
	codeSection   = 10
	countSection  = 12
	moduleName    = 0
)

var (
	errSections = errors.New("invalid module: a section is longer than the module, or a list longer than its section")
	errLocals   = errors.New("invalid module: a function has more than 50000 local variables")
)

// scan refuses modules of a few bytes for which wazero would allocate gigabytes before it reads on: it makes room for
// as many elements, or local variables, as a module announces. This covers lists of sections, locals and names; what
// lists are inside an element is left to the decoder, and its memory to the limit of the process.
func scan(module []byte) error {
	c := cursor{rest: module[8:]}
	for len(c.rest) > 0 {
		id := c.take(1)
		body := cursor{rest: c.take(c.number())}
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
		if string(body.take(body.number())) == "name" {
			scanNames(body)
		}
	case startSection, countSection: // a number, no list
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

// scanNames looks at the lists of the name section, and at the lists in the list of local names.
func scanNames(body *cursor) {
	const localNames = 2
	for len(body.rest) > 0 && !body.bad {
		id := body.take(1)
		part := cursor{rest: body.take(body.number())}
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
				part.take(part.number())
			}
		}
		body.bad = body.bad || part.bad
	}
}

// scanCode adds up the local variables of each function.
func scanCode(body *cursor) error {
	for range body.count() {
		f := cursor{rest: body.take(body.number())}
		if body.bad {
			return errSections
		}
		locals := uint64(0)
		for range f.count() {
			locals += f.number()
			f.take(1) // the type; a longer one is of a feature that is off
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

// cursor reads bytes from the front of rest. Once it was asked for more than there is, it is bad and returns nothing.
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

func (c *cursor) take(n uint64) []byte {
	if n > uint64(len(c.rest)) {
		c.bad, c.rest = true, nil
		return nil
	}
	b := c.rest[:n]
	c.rest = c.rest[n:]
	return b
}

// count is the number of elements of a list. Each of them takes a byte at least.
func (c *cursor) count() uint64 {
	n := c.number()
	if n > uint64(len(c.rest)) {
		c.bad, c.rest = true, nil
		return 0
	}
	return n
}
