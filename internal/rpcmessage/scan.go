package rpcmessage

import (
	"encoding/binary"
	"encoding/json"
	"math/bits"
)

// The functions below find the parts of a JSON text without copying or decoding
// them, and check its syntax as [json.Valid] does. They read each byte once. A
// large text costs a fraction of what package json takes.

// maxDepth is the maximum number of nested values, as in the SDK.
const maxDepth = 1000

// largeText is the minimum size in bytes of messages that are decoded with these functions instead
// of package json.
const largeText = 64 << 10

// Members calls visit for each member of the JSON object at text[at:], with its name
// and the position of its value. visit returns the end of the value, as [Skip]
// does. Members returns the end of the object, or -1 if it is not valid or a name
// has an escape.
func Members(text []byte, at int, visit func(name string, at int) int) int {
	at = skipSpace(text, at)
	if at >= len(text) || text[at] != '{' {
		return -1
	}
	return skipContainer(text, at, '}', func(at int) int {
		end := skipString(text, at)
		if end < 0 {
			return -1
		}
		name, ok := plainText(text[at:end])
		if end = skipSpace(text, end); !ok || end >= len(text) || text[end] != ':' {
			return -1
		}
		return visit(name, skipSpace(text, end+1))
	})
}

// Elements calls visit for each element of the JSON array at text[at:] with its
// position. visit returns the end of the element, as [Skip] does. Elements returns
// the end of the array, or -1 if it is not valid.
func Elements(text []byte, at int, visit func(at int) int) int {
	at = skipSpace(text, at)
	if at >= len(text) || text[at] != '[' {
		return -1
	}
	return skipContainer(text, at, ']', visit)
}

// Skip returns the end of the JSON value at text[at:], or -1 if it is not valid.
func Skip(text []byte, at int) int { return skip(text, at, 0) }

// splitObject returns the members of a large JSON object as parts of text, or nil if
// package json must decode it.
func splitObject(text []byte) map[string]json.RawMessage {
	parts := map[string]json.RawMessage{}
	end := Members(text, 0, func(name string, at int) int {
		end := Skip(text, at)
		if end >= 0 {
			parts[name] = text[at:end:end]
		}
		return end
	})
	if end < 0 || skipSpace(text, end) != len(text) {
		return nil
	}
	return parts
}

func skip(text []byte, at, depth int) int {
	at = skipSpace(text, at)
	if at >= len(text) || depth > maxDepth {
		return -1
	}
	switch text[at] {
	case '"':
		return skipString(text, at)
	case '[':
		return skipContainer(text, at, ']', func(at int) int { return skip(text, at, depth+1) })
	case '{':
		return skipContainer(text, at, '}', func(at int) int {
			if at = skipString(text, at); at < 0 {
				return -1
			}
			if at = skipSpace(text, at); at >= len(text) || text[at] != ':' {
				return -1
			}
			return skip(text, at+1, depth+1)
		})
	case 't':
		return skipWord(text, at, "true")
	case 'f':
		return skipWord(text, at, "false")
	case 'n':
		return skipWord(text, at, "null")
	}
	return skipNumber(text, at)
}

// skipContainer skips an array or object that begins at text[at]. item returns
// the end of the item at a position, or -1.
func skipContainer(text []byte, at int, last byte, item func(at int) int) int {
	at = skipSpace(text, at+1)
	if at < len(text) && text[at] == last {
		return at + 1
	}
	for {
		if at = item(at); at < 0 {
			return -1
		}
		at = skipSpace(text, at)
		switch {
		case at >= len(text):
			return -1
		case text[at] == last:
			return at + 1
		case text[at] != ',':
			return -1
		}
		at = skipSpace(text, at+1)
	}
}

func skipSpace(text []byte, at int) int {
	for at < len(text) && (text[at] == ' ' || text[at] == '\n' || text[at] == '\t' || text[at] == '\r') {
		at++
	}
	return at
}

func skipWord(text []byte, at int, word string) int {
	if end := at + len(word); end <= len(text) && string(text[at:end]) == word {
		return end
	}
	return -1
}

// skipString skips the string at text[at:], eight bytes at a time.
func skipString(text []byte, at int) int {
	if at >= len(text) || text[at] != '"' {
		return -1
	}
	for at++; ; {
		at = skipPlain(text, at)
		switch {
		case at >= len(text) || text[at] < ' ':
			return -1
		case text[at] == '"':
			return at + 1
		}
		if at++; at >= len(text) { // after a backslash
			return -1
		}
		switch text[at] {
		case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			at++
		case 'u':
			if at+5 > len(text) || !isHex(text[at+1]) || !isHex(text[at+2]) || !isHex(text[at+3]) || !isHex(text[at+4]) {
				return -1
			}
			at += 5
		default:
			return -1
		}
	}
}

// skipPlain returns the position of the next quote, backslash or control character.
func skipPlain(text []byte, at int) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	for ; at+8 <= len(text); at += 8 {
		w := binary.LittleEndian.Uint64(text[at:])
		quote, slash := w^(ones*'"'), w^(ones*'\\')
		// A difference has its high bit set where a byte is too small. Only the
		// first such byte is exact.
		if found := ((quote-ones)&^quote | (slash-ones)&^slash | (w-ones*' ')&^w) & highs; found != 0 {
			return at + bits.TrailingZeros64(found)/8
		}
	}
	for at < len(text) && text[at] != '"' && text[at] != '\\' && text[at] >= ' ' {
		at++
	}
	return at
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func skipNumber(text []byte, at int) int {
	if text[at] == '-' {
		at++
	}
	digits := func() bool {
		start := at
		for at < len(text) && '0' <= text[at] && text[at] <= '9' {
			at++
		}
		return at > start
	}
	if at < len(text) && text[at] == '0' {
		at++
	} else if !digits() {
		return -1
	}
	if at < len(text) && text[at] == '.' {
		if at++; !digits() {
			return -1
		}
	}
	if at < len(text) && (text[at] == 'e' || text[at] == 'E') {
		if at++; at < len(text) && (text[at] == '+' || text[at] == '-') {
			at++
		}
		if !digits() {
			return -1
		}
	}
	return at
}
