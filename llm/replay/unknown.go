package replay

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// UnknownError says that a request was not recorded, and where it is first different
// from the recorded one that is most like it.
type UnknownError struct {
	Digest  string // of the request
	Nearest string // name of the file that is most like it
	Where   string // what is different first, as "message 3 (user)"
	// Recorded and Asked are what is there: some text from where it parts, or that
	// there is nothing.
	Recorded, Asked string
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("no recording answers this request: it is as %s up to %s, where %s was recorded and %s is asked", e.Nearest, e.Where, e.Recorded, e.Asked)
}

// item is a piece of a request that is compared as one. Those of one section follow
// each other.
type item struct {
	section     int
	where, text string
}

// items are a request in the order in which a difference tells most.
func (q *request) items() []item {
	out := []item{
		{0, "the limits", fmt.Sprintf("max_tokens %d, thinking %d", q.MaxTokens, q.Thinking)},
		{1, "the instructions", q.Instructions},
	}
	for i, t := range q.Tools {
		out = append(out, item{2, fmt.Sprintf("tool %d", i+1), line(t)})
	}
	for i, m := range q.Messages {
		out = append(out, item{3, fmt.Sprintf("message %d (%s)", i+1, m.Role), line(m)})
	}
	return out
}

// line is a value as JSON in one line.
func line(v any) string {
	var b bytes.Buffer
	if err := json.Compact(&b, encode(v)); err != nil {
		panic(err) // it was just written
	}
	return b.String()
}

func (m *Model) unknown(q *request) error {
	asked := q.items()
	e := &UnknownError{Digest: "sha256:" + q.digest()}
	most, longest := -1, -1
	for _, name := range m.order {
		recorded := m.known[name].Request.items()
		n := same(recorded, asked)
		a, b := apart(recorded, asked, n)
		length := common(a.text, b.text)
		if n < most || n == most && length <= longest {
			continue
		}
		most, longest = n, length
		e.Nearest, e.Where = name, cmp.Or(b.where, a.where)
		e.Recorded, e.Asked = shown(a, length), shown(b, length)
	}
	return e
}

// same is how many items are the same from the first on.
func same(a, b []item) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// apart are the items at which two requests part; the one whose section has ended
// has none there.
func apart(recorded, asked []item, i int) (a, b item) {
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

// common is for how many bytes two texts are the same.
func common(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// shown is a little of an item around the byte where it parts from another one.
func shown(i item, parts int) string {
	const before, after = 20, 60
	if i == (item{}) {
		return "nothing"
	}
	from, to := max(0, parts-before), min(len(i.text), parts+after)
	for from > 0 && !utf8.RuneStart(i.text[from]) {
		from--
	}
	for to < len(i.text) && !utf8.RuneStart(i.text[to]) {
		to++
	}
	return fmt.Sprintf("%q", i.text[from:to])
}
