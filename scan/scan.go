// Package scan looks for what is dangerous, hidden or out of place in the files
// of a skill, and says where it is and what to do about it.
//
// It advises and never decides: a clean report is no proof, as whoever knows the
// rules can write around them, and a finding can be harmless. What holds code
// back is the sandbox. It executes nothing, decodes no archive, opens no
// connection, and treats every byte as hostile: sizes, counts and time are
// bounded, and nothing it returns holds a control or hidden character of the
// files, or a secret that it found in them.
package scan

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/loadout-dev/loadout/skill"
)

// Bounds on one scan. What is beyond them is not looked at, and the report says so.
const (
	// MaxFileBytes is the most of a file that is read as text.
	MaxFileBytes = 4 << 20
	// MaxBytes is the most that is read of all files together.
	MaxBytes = 64 << 20
	// MaxFindings is the most findings in a report.
	MaxFindings = 500
	// MaxPerRule is the most findings of one rule in one file.
	MaxPerRule = 10
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

// Skill looks through the files of the skill that is rooted at fsys, and of a tree
// without a SKILL.md alike. folder is the name of its directory, as for
// [skill.Parse]. What is wrong with a file is a finding; an error means that the
// files could not be listed, or that ctx ended. It is safe for concurrent use.
func Skill(ctx context.Context, fsys fs.FS, folder string) (*Report, error) {
	files, ds, err := skill.List(fsys)
	if err != nil {
		return nil, fmt.Errorf("scan skill: %w", err)
	}
	s := &scanner{fsys: fsys, files: files, report: &Report{Findings: []Finding{}},
		scripts: map[string]bool{}, hosts: map[string]place{}, seen: map[key]bool{}, count: map[key]int{}}
	if err := s.manifest(folder); err != nil {
		return nil, err
	}
	s.listed(ds)
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("scan skill: %w", context.Cause(ctx))
		}
		s.file(ctx, f)
	}
	s.compare()
	slices.SortStableFunc(s.report.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(b.Severity, a.Severity), cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Rule, b.Rule))
	})
	if len(s.report.Findings) > MaxFindings {
		s.report.Findings, s.report.Truncated = s.report.Findings[:MaxFindings], true
	}
	return s.report, nil
}

// scanner is the state of one scan.
type scanner struct {
	fsys   fs.FS
	files  skill.Manifest
	skill  *skill.Skill // nil where none loads
	main   string       // the path of its SKILL.md
	report *Report

	mentions  [][]byte // text of all Markdown, where scripts are named
	mentioned int
	scripts   map[string]bool  // files of code
	hosts     map[string]place // that code speaks to, and where it says so
	shell     *place           // a command for a shell

	buffer    []byte // of files that are not kept
	last, hit []int  // scratch of hits, by rule
	at        *place // that is reported, for what stands in no file as it is
	seen      map[key]bool
	count     map[key]int
}

// key is a rule in a file, or in a line of it.
type key struct {
	rule, file string
	line       int
}

// place is where in the skill something is.
type place struct {
	file         string
	line, column int
	excerpt      string
}

// manifest reads the SKILL.md, where there is one.
func (s *scanner) manifest(folder string) error {
	name, err := skill.FindFile(s.fsys)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("scan skill: %w", err)
	}
	parsed, ds, err := skill.Parse(s.fsys, folder)
	if err != nil {
		return fmt.Errorf("scan skill: %w", err)
	}
	s.main = name
	if parsed != nil && ds.Loads() {
		s.skill, s.report.Name = parsed, visible(parsed.Name, 80)
	}
	return nil
}

// file looks at one file: its name, its first bytes, and what it says.
func (s *scanner) file(ctx context.Context, f skill.File) {
	s.report.Files++
	s.fileName(f)
	if s.report.Bytes >= MaxBytes {
		s.report.Truncated = true
		return
	}
	data, err := s.read(f)
	if err != nil {
		s.add("unreadable", place{file: f.Path, excerpt: ""})
		return
	}
	s.report.Bytes += int64(len(data))
	if int64(len(data)) < f.Size {
		s.report.Truncated = true
	}
	if s.binary(f, data) {
		return
	}
	s.text(ctx, f.Path, data)
}

func (s *scanner) read(f skill.File) ([]byte, error) {
	r, err := s.fsys.Open(f.Path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	most := min(f.Size+1, MaxFileBytes, MaxBytes-s.report.Bytes)
	if isMarkdown(f.Path) { // is kept until the end
		s.buffer = nil
	}
	if int64(cap(s.buffer)) < most {
		s.buffer = make([]byte, most)
	}
	data := s.buffer[:most]
	if isMarkdown(f.Path) {
		s.buffer = nil
	}
	n, err := io.ReadFull(r, data)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return data[:n], err
}

// enough reports whether a file has as many findings of a rule as are reported.
func (s *scanner) enough(rule, file string) bool {
	if s.count[key{rule, file, 0}] < MaxPerRule {
		return false
	}
	s.report.Truncated = true
	return true
}

// add reports a finding of a rule with its usual severity.
func (s *scanner) add(rule string, p place) { s.addAs(rule, byID()[rule].Severity, p) }

func (s *scanner) addAs(rule string, severity Severity, p place) {
	r := byID()[rule]
	if p.line > 0 && s.seen[key{rule, p.file, p.line}] {
		return // one line is one finding
	}
	if s.enough(rule, p.file) {
		return
	}
	s.seen[key{rule, p.file, p.line}] = true
	s.count[key{rule, p.file, 0}]++
	if len(s.report.Findings) >= 4*MaxFindings { // before the worst are chosen
		s.report.Truncated = true
		return
	}
	s.report.Findings = append(s.report.Findings, Finding{Rule: rule, Severity: severity, File: visible(p.file, maxPath), Line: p.line, Column: p.column,
		Excerpt: visible(redacted(p.excerpt), maxExcerpt), Message: r.Message, Advice: r.Advice})
}
