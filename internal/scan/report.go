package scan

import (
	"fmt"
	"slices"
)

// Severity is the urgency of a finding.
type Severity int

// Severities in ascending order. A High finding is rarely harmless.
const (
	Info Severity = iota
	Low
	Medium
	High
)

var severities = [...]string{"info", "low", "medium", "high"}

func (s Severity) String() string {
	if s < Info || s > High {
		return fmt.Sprintf("Severity(%d)", int(s))
	}
	return severities[s]
}

// ParseSeverity parses a severity as formatted by [Severity.String].
func ParseSeverity(s string) (Severity, error) {
	if i := slices.Index(severities[:], s); i >= 0 {
		return Severity(i), nil
	}
	return 0, fmt.Errorf("unknown severity %q (want info, low, medium or high)", s)
}

// MarshalText implements [encoding.TextMarshaler]. It returns the severity's
// name.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler]. It parses the severity's
// name.
func (s *Severity) UnmarshalText(text []byte) error {
	v, err := ParseSeverity(string(text))
	*s = v
	return err
}

// Finding describes a part of a skill that a user should review.
type Finding struct {
	// Rule is the ID of the rule: lower-case words joined with hyphens. IDs are
	// stable.
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity" enum:"info,low,medium,high"`
	// File is the path inside the skill, with control and invisible characters
	// escaped as \u{…}.
	File string `json:"file"`
	// Line and Column are 1-based; columns count characters. Both are 0 if the
	// finding concerns the whole file or skill.
	Line   int `json:"line" doc:"0 for the whole file"`
	Column int `json:"column"`
	// Excerpt is the matching text on one line. It is truncated, escaped like
	// File, and contains no secrets.
	Excerpt string `json:"excerpt"`
	Message string `json:"message"`
	Advice  string `json:"advice"`
}

// Key returns a key for comparing findings across two versions of a skill.
// Findings with the same rule, file and text have the same key, regardless of
// line and severity. All secrets of one kind in a file share a key, because
// Excerpt omits them. Keys may change between releases, so do not store them.
func (f Finding) Key() string { return f.Rule + "\n" + f.File + "\n" + f.Excerpt }

// Report holds the findings in a skill.
type Report struct {
	// Name is the name of the skill, or "" if no SKILL.md is valid.
	Name string `json:"name"`
	// Findings are sorted by severity, highest first, then by position.
	Findings []Finding `json:"findings"`
	Files    int       `json:"files"` // number of scanned files
	Bytes    int64     `json:"bytes"` // number of bytes read
	// Truncated is set if a limit was reached, so findings may be missing.
	Truncated bool `json:"truncated"`
}

// Worst returns the highest severity in the report. It returns false if there
// are no findings.
func (r *Report) Worst() (Severity, bool) {
	if len(r.Findings) == 0 {
		return Info, false
	}
	return r.Findings[0].Severity, true
}

// Counts returns the number of findings by severity. It omits severities
// without findings.
func (r *Report) Counts() map[Severity]int {
	counts := map[Severity]int{}
	for _, f := range r.Findings {
		counts[f.Severity]++
	}
	return counts
}
