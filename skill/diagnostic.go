package skill

import "fmt"

// Severity says what a diagnostic means for the person who has the skill.
type Severity string

const (
	// Error: the skill does not load.
	Error Severity = "error"
	// Warning: the skill loads, and something about it was repaired or will
	// disappoint: its author should mend it.
	Warning Severity = "warning"
	// Info: the skill loads and works; another program may be stricter.
	Info Severity = "info"
)

// Diagnostic is one finding about a skill: what is wrong, where, and how to
// mend it. It is data, not an error: parsing a bad file succeeds and says so.
type Diagnostic struct {
	Severity Severity `json:"severity"`
	// Code names the kind of finding, lower-case with hyphens; stable.
	Code string `json:"code"`
	// Line and Column are 1-based positions in the file, counted in lines and
	// characters; 0 where the finding is about the file as a whole.
	Line   int `json:"line"`
	Column int `json:"column"`
	// Message says what is wrong. For a broken rule of the reference
	// validator it begins with that validator's words.
	Message string `json:"message"`
	// Fix says how to mend it; never empty for an error.
	Fix string `json:"fix"`
	// Rule is the number (1 to 21) of the rule of the reference validator
	// that is broken, 0 for findings that validator does not make. A byte
	// that is not UTF-8, at which that validator stops without a word of its
	// own, breaks rule 6.
	Rule int `json:"rule,omitempty"`
}

// String renders the diagnostic as one line without the file's name.
func (d Diagnostic) String() string {
	s := string(d.Severity) + ": " + d.Message + " [" + d.Code + "]"
	if d.Line > 0 {
		s = fmt.Sprintf("%d:%d: %s", d.Line, max(d.Column, 1), s)
	}
	return s
}

// Diagnostics are all findings of one pass over a skill, in file order within
// each step of the pass.
type Diagnostics []Diagnostic

// Valid is the strict verdict: no rule of the reference validator is broken.
// A valid skill of less than [MaxFileBytes] loads, but for two oddities of that
// validator: it takes any "---" for the end of the frontmatter, even inside a
// line, and does not look at what follows; and it reads a description of null
// or ~ as that text.
func (ds Diagnostics) Valid() bool {
	for _, d := range ds {
		if d.Rule > 0 {
			return false
		}
	}
	return true
}

// Loads is the lenient verdict: nothing keeps the skill from being used.
func (ds Diagnostics) Loads() bool {
	for _, d := range ds {
		if d.Severity == Error {
			return false
		}
	}
	return true
}

// Noteworthy returns the findings that are more than [Info].
func (ds Diagnostics) Noteworthy() Diagnostics {
	var out Diagnostics
	for _, d := range ds {
		if d.Severity != Info {
			out = append(out, d)
		}
	}
	return out
}

// add appends a finding. Names and values in its texts come from a stranger
// and may end up on a terminal.
func (ds *Diagnostics) add(d Diagnostic) {
	d.Message, d.Fix = OneLine(d.Message), OneLine(d.Fix)
	*ds = append(*ds, d)
}
