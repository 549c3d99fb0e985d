package replay

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// UnknownError is returned if a request was not recorded. It describes the
// first difference from the most similar recording.
type UnknownError struct {
	Digest  string // digest of the request
	Nearest string // name of the file with the most similar request
	Where   string // position of the first difference, such as "message 3 (user)"
	// Recorded and Requested are the differing parts. If a part is missing, the
	// field says so.
	Recorded, Requested string
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("no recording for this request: %s matches up to %s, where it has %s instead of %s", e.Nearest, e.Where, e.Recorded, e.Requested)
}

// item is a part of a request that is compared as a whole. All items of a
// section are consecutive.
type item struct {
	section     int
	where, text string
}

// items splits a request into items, ordered so that the first difference is
// the most helpful one.
func (q *request) items() []item {
	out := []item{
		{0, "the limits", fmt.Sprintf("max_tokens %d, thinking %d", q.MaxTokens, q.Thinking)},
		{1, "the instructions", q.Instructions},
	}
	for i, t := range q.Tools {
		out = append(out, item{2, fmt.Sprintf("tool %d", i+1), compactLine(t)})
	}
	for i, m := range q.Messages {
		out = append(out, item{3, fmt.Sprintf("message %d (%s)", i+1, m.Role), compactLine(m)})
	}
	return out
}

// compactLine encodes a value as JSON on a single line.
func compactLine(v any) string {
	var b bytes.Buffer
	if err := json.Compact(&b, encode(v)); err != nil {
		panic(err) // encode returned valid JSON
	}
	return b.String()
}

func (m *Model) unknownError(q *request) error {
	asked := q.items()
	e := &UnknownError{Digest: "sha256:" + q.digest()}
	most, longest := -1, -1
	for _, name := range m.order {
		recorded := m.known[name].Request.items()
		n := commonPrefix(recorded, asked)
		a, b := firstDifference(recorded, asked, n)
		length := commonPrefix([]byte(a.text), []byte(b.text))
		if n < most || n == most && length <= longest {
			continue
		}
		most, longest = n, length
		e.Nearest, e.Where = name, cmp.Or(b.where, a.where)
		e.Recorded, e.Requested = excerpt(a, length), excerpt(b, length)
	}
	return e
}

// commonPrefix returns the number of equal elements at the start of a and b.
func commonPrefix[T comparable](a, b []T) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// firstDifference returns the items at which two requests differ. If a request
// has no more items, its item is empty.
func firstDifference(recorded, asked []item, i int) (a, b item) {
	if i < len(recorded) {
		a = recorded[i]
	}
	if i < len(asked) {
		b = asked[i]
	}
	switch {
	case a.where == "" || b.where == "" || a.section == b.section:
	case a.section < b.section:
		b = item{}
	default:
		a = item{}
	}
	return a, b
}

// excerpt returns the part of an item around the byte at offset.
func excerpt(i item, offset int) string {
	const before, after = 20, 60
	if i == (item{}) {
		return "nothing"
	}
	from, to := max(0, offset-before), min(len(i.text), offset+after)
	for from > 0 && !utf8.RuneStart(i.text[from]) {
		from--
	}
	for to < len(i.text) && !utf8.RuneStart(i.text[to]) {
		to++
	}
	return fmt.Sprintf("%q", i.text[from:to])
}
