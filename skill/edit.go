package skill

import (
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// Edit replaces what is between two places of a text. Lines and columns are
// counted from 1, columns in characters; what is at the end stays.
type Edit struct {
	StartLine   int    `json:"startLine"`
	StartColumn int    `json:"startColumn"`
	EndLine     int    `json:"endLine"`
	EndColumn   int    `json:"endColumn"`
	Text        string `json:"text"`
}

// Bounds on what [Mend] looks at, and on what it puts in place of it.
const (
	maxMended   = 1 << 20
	maxEditText = 256 << 10
)

// Mend returns an edit that does away with a diagnostic of a SKILL.md, nil
// where that takes a person. src and folder are what was parsed. Each edit was
// tried: after it the diagnostic is gone, a skill that loaded still does, and no
// other rule of the specification is broken; an edit of the form alone leaves
// what the skill says as it was.
func Mend(src []byte, folder string, d Diagnostic) *Edit {
	mend, ok := mends[d.Code]
	if !ok || len(src) > maxMended || !utf8.Valid(src) {
		return nil
	}
	m := newMending(string(src), folder, d)
	mended := mend.how(m)
	if mended == "" || mended == m.src || !m.better(mended, mend.form) {
		return nil
	}
	if e := newEdit(m.src, mended); len(e.Text) <= maxEditText {
		return e
	}
	return nil
}

// mending is a SKILL.md with a diagnostic that is to go.
type mending struct {
	src, folder string
	d           Diagnostic
	lay         layout
	skill       *Skill // nil where there is none to read
	ds          Diagnostics
}

func newMending(src, folder string, d Diagnostic) *mending {
	m := &mending{src: src, folder: folder, d: d}
	var ds Diagnostics
	m.lay = cut([]byte(src), true, &ds)
	m.skill, m.ds, _ = ParseHead([]byte(src), true, FileName, folder)
	return m
}

// better reports whether a text is one without the diagnostic, and no worse.
func (m *mending) better(mended string, form bool) bool {
	if strings.HasPrefix(m.d.Code, "body-") {
		return true // which no head is checked for
	}
	s, ds, _ := ParseHead([]byte(mended), true, FileName, m.folder)
	if s == nil || ds.count(m.d.Code) >= m.ds.count(m.d.Code) {
		return false
	}
	if !m.ds.Loads() {
		return true
	}
	broken := slices.ContainsFunc(ds, func(d Diagnostic) bool { return d.Rule > 0 && m.ds.count(d.Code) == 0 })
	return ds.Loads() && !broken && (!form || s.says(m.skill))
}

func (ds Diagnostics) count(code string) (n int) {
	for _, d := range ds {
		if d.Code == code {
			n++
		}
	}
	return n
}

// says reports whether two skills say the same, however it is written.
func (s *Skill) says(other *Skill) bool {
	if s == nil || other == nil {
		return s == other
	}
	a, b := *s, *other
	for _, one := range []*Skill{&a, &b} {
		one.Frontmatter, one.Metadata, one.repaired = nil, nil, false
		one.Instructions = strings.TrimSpace(one.Instructions)
	}
	return reflect.DeepEqual(a, b)
}

// newEdit is what makes one text of another: the lines that differ.
func newEdit(old, new string) *Edit {
	was, is := strings.SplitAfter(old, "\n"), strings.SplitAfter(new, "\n")
	head := 0
	for head < min(len(was), len(is)) && was[head] == is[head] {
		head++
	}
	tail := 0
	for tail < min(len(was), len(is))-head && was[len(was)-1-tail] == is[len(is)-1-tail] {
		tail++
	}
	e := &Edit{StartLine: head + 1, StartColumn: 1, EndLine: len(was) - tail + 1, EndColumn: 1, Text: strings.Join(is[head:len(is)-tail], "")}
	if tail == 0 { // the last line has no end of its own
		e.EndLine, e.EndColumn = len(was), utf8.RuneCountInString(was[len(was)-1])+1
	}
	if head == len(was) { // what is added comes after the last line
		e.StartLine, e.StartColumn = e.EndLine, e.EndColumn
	}
	return e
}
