// Package scan finds dangerous, hidden or unusual content in a skill's files.
// It reports the position of each finding and what to do about it.
//
// The package only informs and makes no decisions. A report without findings is
// not a guarantee, because authors who know the rules can evade them, and a
// finding can be harmless. The sandbox is what protects against code. The
// package executes nothing, unpacks no archives and makes no connections. It
// treats all input as hostile and limits sizes, counts and time. Its results
// contain no control or hidden characters, and no secrets from the files. Start
// reading at [Skill] and [Rules].
package scan

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/skill"
)

// Limits per scan. [Report.Truncated] is set if a scan exceeds any of them.
const (
	// MaxFileBytes is the maximum number of bytes read from a text file.
	MaxFileBytes = 4 << 20
	// MaxBytes is the maximum number of bytes read from all files.
	MaxBytes = 64 << 20
	// MaxFindings is the maximum number of findings in a report.
	MaxFindings = 500
	// MaxPerRule is the maximum number of findings per rule and file.
	MaxPerRule = 10
)

// Skill scans the skill whose root is fsys, which need not contain a SKILL.md.
// folder is the name of its directory, as for [skill.Parse]. Errors in a file
// become findings. Skill returns an error if the files cannot be listed or ctx
// is done. It is safe for concurrent use.
func Skill(ctx context.Context, fsys fs.FS, folder string) (*Report, error) {
	s := newScanner(fsys)
	if err := s.scan(ctx, folder); err != nil {
		return nil, fmt.Errorf("scan skill: %w", err)
	}
	return s.report, nil
}

func newScanner(fsys fs.FS) *scanner {
	return &scanner{fsys: fsys, report: &Report{Findings: []Finding{}},
		scripts: map[string]bool{}, hosts: map[string]position{}, seen: map[findingKey]bool{}, count: map[findingKey]int{}}
}

// scan fills in the report.
func (s *scanner) scan(ctx context.Context, folder string) error {
	files, ds, err := skill.List(s.fsys)
	if err != nil {
		return err
	}
	if err := s.readManifest(folder); err != nil {
		return err
	}
	for _, f := range files {
		if s.scanFile(ctx, f); ctx.Err() != nil { // findings may be missing
			return context.Cause(ctx)
		}
	}
	if s.flowing {
		s.report.Truncated = s.report.Truncated || s.flowFull
		if s.followValues(ctx); ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	s.addListingFindings(ds)
	s.compareFrontmatter()
	s.report.sort()
	return nil
}

// scanner holds the state of a scan.
type scanner struct {
	fsys         fs.FS
	skill        *skill.Skill // nil if no SKILL.md is valid
	manifestPath string       // path of the SKILL.md
	manifest     []byte       // content of the SKILL.md; nil before it is read
	report       *Report

	mentions  [][]byte // text of all Markdown files, searched for script names
	mentioned int
	scripts   map[string]bool     // paths of code files
	hosts     map[string]position // hosts in code, with their first positions
	shell     *position           // position of a shell command, or nil

	programs []*program // code for followValues
	files    map[language]*program
	retained int  // bytes of code in programs
	flowing  bool // the code reads a source that followValues tracks
	flowFull bool // programs lacks code, because there is too much

	buffer    []byte    // reused for files that are not retained
	work      int       // bytes that patterns and searches have processed
	last, hit []int     // reused buffers, by rule
	at        *position // position to report for text that is not literally in a file
	seen      map[findingKey]bool
	count     map[findingKey]int
}

// findingKey identifies a rule in a file, or in a line of a file.
type findingKey struct {
	rule, file string
	line       int
}

// position is the location of a finding.
type position struct {
	file         string
	line, column int
	excerpt      string
}

// readManifest reads the SKILL.md if it exists.
func (s *scanner) readManifest(folder string) error {
	name, err := skillfile.Find(s.fsys)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	parsed, ds, err := skill.Parse(s.fsys, folder)
	if err != nil {
		return err
	}
	s.manifestPath = name
	if parsed != nil && ds.Loads() {
		s.skill, s.report.Name = parsed, escapeText(parsed.Name, 80)
	}
	return nil
}

// scanFile scans a file's name, its first bytes and its text.
func (s *scanner) scanFile(ctx context.Context, f skill.File) {
	s.report.Files++
	s.checkFileName(f)
	if s.report.Bytes >= MaxBytes {
		s.report.Truncated = true
		return
	}
	data, err := s.readFile(f)
	if err != nil {
		s.addFinding("unreadable", position{file: f.Path, excerpt: ""})
		return
	}
	s.report.Bytes += int64(len(data))
	if int64(len(data)) < f.Size {
		s.report.Truncated = true
	}
	if s.checkBinary(f, data) {
		return
	}
	if f.Path == s.manifestPath {
		s.manifest = data
	}
	s.scanText(ctx, f.Path, data)
}

func (s *scanner) readFile(f skill.File) ([]byte, error) {
	r, err := s.fsys.Open(f.Path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	most := min(f.Size+1, MaxFileBytes, MaxBytes-s.report.Bytes)
	if isMarkdown(f.Path) { // retained until the end of the scan
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

// isRuleFull reports whether a file has the maximum number of findings for a
// rule. If so, it marks the report as truncated.
func (s *scanner) isRuleFull(rule, file string) bool {
	if s.count[findingKey{rule, file, 0}] < MaxPerRule {
		return false
	}
	s.report.Truncated = true
	return true
}

// addFinding adds a finding with the rule's severity.
func (s *scanner) addFinding(rule string, p position) { s.addFindingAs(rule, byID()[rule].Severity, p) }

func (s *scanner) addFindingAs(rule string, severity Severity, p position) {
	r := byID()[rule]
	if p.line > 0 && s.seen[findingKey{rule, p.file, p.line}] {
		return // one finding per line is enough
	}
	if s.isRuleFull(rule, p.file) {
		return
	}
	s.seen[findingKey{rule, p.file, p.line}] = true
	s.count[findingKey{rule, p.file, 0}]++
	if len(s.report.Findings) >= 4*MaxFindings { // the most severe are selected at the end
		s.report.Truncated = true
		return
	}
	s.report.Findings = append(s.report.Findings, Finding{Rule: rule, Severity: severity, File: escapeText(p.file, maxPath), Line: p.line, Column: p.column,
		Excerpt: escapeText(redactSecrets(p.excerpt), maxExcerpt), Message: r.Message, Advice: r.Advice})
}
