package scan

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Severity says how much a finding asks for a person's eyes.
type Severity int

// The severities, from what is worth knowing to what is rarely harmless.
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

// ParseSeverity reads what [Severity.String] writes.
func ParseSeverity(s string) (Severity, error) {
	if i := slices.Index(severities[:], s); i >= 0 {
		return Severity(i), nil
	}
	return 0, fmt.Errorf("severity %q is none of info, low, medium, high", s)
}

// MarshalJSON writes the severity as its word.
func (s Severity) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }

// UnmarshalJSON reads the word of a severity.
func (s *Severity) UnmarshalJSON(data []byte) error {
	var word string
	if err := json.Unmarshal(data, &word); err != nil {
		return fmt.Errorf("read severity: %w", err)
	}
	v, err := ParseSeverity(word)
	*s = v
	return err
}

// Finding is one place in a skill that somebody should look at.
type Finding struct {
	// Rule is the id of the rule, lower-case with hyphens; stable.
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	// File is the path inside the skill, with what could drive a terminal or
	// cannot be seen written as \u{…}.
	File string `json:"file"`
	// Line and Column are 1-based, in lines and characters; 0 where the finding
	// is about the file or the skill as a whole.
	Line   int `json:"line"`
	Column int `json:"column"`
	// Excerpt is the words that were found, on one line and cut, with the
	// characters of File, and without the secrets that were found.
	Excerpt string `json:"excerpt"`
	Message string `json:"message"`
	Advice  string `json:"advice"`
}

// Key is the same for what is found in one file by one rule in the same words,
// and a different one otherwise: what two versions of a skill have in common.
// The line does not count, as lines above come and go, nor does how serious it
// is. Two secrets of a kind in one file have one key, as neither is in Excerpt.
// It is for comparing within one release of this module, and not to be kept.
func (f Finding) Key() string { return f.Rule + "\n" + f.File + "\n" + f.Excerpt }

// Report is what was found in one skill.
type Report struct {
	// Name is that of the skill, "" where there is no SKILL.md that loads.
	Name string `json:"name"`
	// Findings are sorted: by severity, the highest first, then by place.
	Findings []Finding `json:"findings"`
	Files    int       `json:"files"` // that were looked at
	Bytes    int64     `json:"bytes"` // that were read
	// Truncated says that a bound was met and something not looked at or reported.
	Truncated bool `json:"truncated"`
}

// Worst is the highest severity in the report, and false where there is no finding.
func (r *Report) Worst() (Severity, bool) {
	if len(r.Findings) == 0 {
		return Info, false
	}
	return r.Findings[0].Severity, true
}

// Counts is how many findings of each severity are in the report; of a severity
// without any there is no entry.
func (r *Report) Counts() map[Severity]int {
	counts := map[Severity]int{}
	for _, f := range r.Findings {
		counts[f.Severity]++
	}
	return counts
}
