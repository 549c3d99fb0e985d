package scan

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"path"
	"strings"
)

// PathReport is a report with the path of its skill. The path uses slashes and
// may be empty. WriteSARIF prepends it to the file paths of the findings.
type PathReport struct {
	Path   string
	Report *Report
}

// levels maps severities to SARIF levels.
var levels = [...]string{Info: "note", Low: "note", Medium: "warning", High: "error"}

// securityScores are the scores by which code hosts rank security findings.
var securityScores = [...]string{Info: "1.0", Low: "3.0", Medium: "5.0", High: "8.0"}

type (
	sarifText struct {
		Text string `json:"text"`
	}
	sarifRule struct {
		ID         string            `json:"id"`
		Short      sarifText         `json:"shortDescription"`
		Help       sarifText         `json:"help"`
		Default    map[string]string `json:"defaultConfiguration"`
		Properties map[string]any    `json:"properties"`
	}
	sarifRegion struct {
		StartLine   int        `json:"startLine"`
		StartColumn int        `json:"startColumn"`
		Snippet     *sarifText `json:"snippet,omitempty"`
	}
	sarifLocation struct {
		Physical struct {
			Artifact struct {
				URI string `json:"uri"`
			} `json:"artifactLocation"`
			Region *sarifRegion `json:"region,omitempty"`
		} `json:"physicalLocation"`
	}
	sarifResult struct {
		RuleID    string          `json:"ruleId"`
		RuleIndex int             `json:"ruleIndex"`
		Level     string          `json:"level"`
		Message   sarifText       `json:"message"`
		Locations []sarifLocation `json:"locations"`
	}
)

// WriteSARIF writes reports as a single SARIF 2.1.0 log for code hosts and
// editors. version is the version of this program. Findings with a severity
// below minimum are omitted.
func WriteSARIF(w io.Writer, version string, minimum Severity, scanned []PathReport) error {
	rules, index := []sarifRule{}, map[string]int{}
	for i, r := range Rules() {
		index[r.ID] = i
		rules = append(rules, sarifRule{ID: r.ID, Short: sarifText{r.Message}, Help: sarifText{r.Advice}, Default: map[string]string{"level": levels[r.Severity]},
			Properties: map[string]any{"security-severity": securityScores[r.Severity], "tags": []string{"security", "skill", string(r.Target)}}})
	}
	results := []sarifResult{}
	for _, s := range scanned {
		for _, f := range s.Report.Findings {
			if f.Severity >= minimum {
				results = append(results, newSARIFResult(s.Path, f, index[f.Rule]))
			}
		}
	}
	log := map[string]any{
		"$schema": "https://json.schemastore.org/sarif-2.1.0.json",
		"version": "2.1.0",
		"runs": []any{map[string]any{
			"tool":       map[string]any{"driver": map[string]any{"name": "loadout scan", "version": version, "rules": rules}},
			"columnKind": "unicodeCodePoints",
			"results":    results,
		}},
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	if err := enc.Encode(log); err != nil {
		return fmt.Errorf("write SARIF: %w", err)
	}
	return nil
}

func newSARIFResult(dir string, f Finding, index int) sarifResult {
	r := sarifResult{RuleID: f.Rule, RuleIndex: index, Level: levels[f.Severity], Message: sarifText{f.Message + ". " + f.Advice + "."}}
	var at sarifLocation
	at.Physical.Artifact.URI = (&url.URL{Path: strings.TrimPrefix(path.Join(dir, f.File), "./")}).EscapedPath()
	if f.Line > 0 {
		at.Physical.Region = &sarifRegion{StartLine: f.Line, StartColumn: max(f.Column, 1)}
		if f.Excerpt != "" {
			at.Physical.Region.Snippet = &sarifText{f.Excerpt}
		}
	}
	r.Locations = []sarifLocation{at}
	return r
}
