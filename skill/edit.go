package skill

import (
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// Edit replaces the text between two positions with Text. Lines and columns are
// 1-based; columns count characters. Lines end after a line feed. The end
// position is exclusive.
type Edit struct {
	StartLine   int    `json:"startLine"`
	StartColumn int    `json:"startColumn"`
	EndLine     int    `json:"endLine"`
	EndColumn   int    `json:"endColumn"`
	Text        string `json:"text"`
}

// Limits on the input and the output of [Diagnostic.SuggestEdit].
const (
	maxFixBytes = 1 << 20
	maxEditText = 256 << 10
)

// SuggestEdit returns an edit of a SKILL.md that fixes the diagnostic, or nil
// if only the author can fix it. src and folder are the parameters of the parse
// that returned the diagnostic. SuggestEdit returns nil if src is not UTF-8 or
// larger than 1 MiB, or if the edit has more than 256 KiB.
//
// SuggestEdit checks the result of each edit: the diagnostic is gone, a skill
// that loaded still loads, and no other rule of the specification is broken. An
// edit that only changes the format preserves the meaning of the skill.
func (d Diagnostic) SuggestEdit(src []byte, folder string) *Edit {
	fix := fixFor(d.Code)
	if fix.apply == nil || len(src) > maxFixBytes || !utf8.Valid(src) {
		return nil
	}
	m := newFixer(string(src), folder, d)
	edited := fix.apply(m)
	if edited == "" || edited == m.src || !m.isImprovement(edited, fix.formOnly) {
		return nil
	}
	if e := newEdit(m.src, edited); len(e.Text) <= maxEditText {
		return e
	}
	return nil
}

// fixer fixes a diagnostic in a SKILL.md.
type fixer struct {
	src, folder string
	d           Diagnostic
	lay         layout
	skill       *Skill // nil if the file cannot be read
	ds          Diagnostics
}

func newFixer(src, folder string, d Diagnostic) *fixer {
	m := &fixer{src: src, folder: folder, d: d}
	var ds Diagnostics
	m.lay = findLayout([]byte(src), true, &ds)
	m.skill, m.ds, _ = ParseHead([]byte(src), true, FileName, folder)
	return m
}

// isImprovement reports whether the edited text has fewer diagnostics with the code
// that the edit is meant to fix, still loads if it loaded before, and breaks no
// other rule. If formOnly is set, the content must not change.
func (m *fixer) isImprovement(edited string, formOnly bool) bool {
	if strings.HasPrefix(m.d.Code, "body-") {
		return true // ParseHead does not check the body
	}
	s, ds, _ := ParseHead([]byte(edited), true, FileName, m.folder)
	if s == nil || ds.count(m.d.Code) >= m.ds.count(m.d.Code) {
		return false
	}
	if !m.ds.Loads() {
		return true
	}
	broken := slices.ContainsFunc(ds, func(d Diagnostic) bool { return d.Rule > 0 && m.ds.count(d.Code) == 0 })
	return ds.Loads() && !broken && (!formOnly || s.equalContent(m.skill))
}

func (ds Diagnostics) count(code string) (n int) {
	for _, d := range ds {
		if d.Code == code {
			n++
		}
	}
	return n
}

// equalContent reports whether two skills have the same content, regardless of
// its YAML style.
func (s *Skill) equalContent(other *Skill) bool {
	if s == nil || other == nil {
		return s == other
	}
	a, b := *s, *other
	for _, one := range []*Skill{&a, &b} {
		one.Frontmatter, one.Metadata, one.Repaired = nil, nil, false
		one.Instructions = strings.TrimSpace(one.Instructions)
	}
	return reflect.DeepEqual(a, b)
}

// newEdit returns an edit that changes old to new by replacing the lines that
// differ.
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
	if tail == 0 { // the last line has no line feed
		e.EndLine, e.EndColumn = len(was), utf8.RuneCountInString(was[len(was)-1])+1
	}
	if head == len(was) { // text is appended after the last line
		e.StartLine, e.StartColumn = e.EndLine, e.EndColumn
	}
	return e
}
