package skill

import (
	"fmt"

	"github.com/loadout-dev/loadout/internal/printable"
)

// Severity is the severity of a [Diagnostic]: its effect on the use of the
// skill.
type Severity string

// Severities, highest first.
const (
	// Error: the skill does not load.
	Error Severity = "error"
	// Warning: the skill loads, but something was repaired or will not work as
	// its author expects. The author should fix it.
	Warning Severity = "warning"
	// Info: the skill loads and works, but another program may be stricter.
	Info Severity = "info"
)

// Diagnostic is a finding about a skill: the fault, its position and the fix.
// It is data, not an error: parsing a faulty file succeeds and returns
// diagnostics.
type Diagnostic struct {
	Severity Severity `json:"severity"`
	// Code identifies the kind of finding in lower-case words with hyphens.
	// Codes are stable.
	Code string `json:"code"`
	// Line and Column are the 1-based position in the file; columns count
	// characters. Both are 0 if the finding concerns the whole file.
	Line   int `json:"line"`
	Column int `json:"column"`
	// Message describes the fault. If a rule of the reference validator is
	// broken, it starts with that validator's message.
	Message string `json:"message"`
	// Fix says how to fix the fault. It is never empty for an error.
	Fix string `json:"fix"`
	// Rule is the number (1 to 21) of the broken reference validator rule. It
	// is 0 if that validator has no such rule. Text that is not UTF-8 breaks
	// rule 6; the validator stops there without a message.
	Rule int `json:"rule,omitempty"`
}

// String returns the diagnostic on one line, without the file name or the fix.
func (d Diagnostic) String() string {
	s := string(d.Severity) + ": " + d.Message + " [" + d.Code + "]"
	if d.Line > 0 {
		s = fmt.Sprintf("%d:%d: %s", d.Line, max(d.Column, 1), s)
	}
	return s
}

// Diagnostics lists the findings about a skill. Within each check, they are in
// file order. nil means no findings.
type Diagnostics []Diagnostic

// Valid reports whether the skill breaks no rule of the reference validator. A
// valid skill smaller than 10 MiB loads, with two exceptions. The
// validator treats any "---" as the end of the frontmatter, even inside a line,
// and ignores the text after it. It also reads a description of null or ~ as
// text.
func (ds Diagnostics) Valid() bool {
	for _, d := range ds {
		if d.Rule > 0 {
			return false
		}
	}
	return true
}

// Loads reports whether the skill can be used, that is, whether ds contains no
// error.
func (ds Diagnostics) Loads() bool {
	for _, d := range ds {
		if d.Severity == Error {
			return false
		}
	}
	return true
}

// Problems returns a new list of the errors and warnings, in the same order.
func (ds Diagnostics) Problems() Diagnostics {
	var out Diagnostics
	for _, d := range ds {
		if d.Severity != Info {
			out = append(out, d)
		}
	}
	return out
}

// add appends a finding. It removes control characters, because names and
// values in messages are untrusted and may be printed on a terminal.
func (ds *Diagnostics) add(d Diagnostic) {
	d.Message, d.Fix = printable.OneLine(d.Message), printable.OneLine(d.Fix)
	*ds = append(*ds, d)
}
