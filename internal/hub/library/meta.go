package library

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/bm25"
	"github.com/loadout-dev/loadout/internal/printable"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/tokencount"
	"github.com/loadout-dev/loadout/skill"
)

// meta holds version metadata that has no database columns. It is sufficient for
// listing and selecting a skill without reading its files.
type meta struct {
	File          string             `json:"file,omitempty"` // file name, if not SKILL.md
	Author        string             `json:"author,omitempty"`
	License       string             `json:"license,omitempty"`
	Category      string             `json:"category,omitempty"`
	ArgumentHint  string             `json:"argument_hint,omitempty"`
	BindShells    []string           `json:"bind_shells,omitempty"`
	Dependencies  []string           `json:"dependencies,omitempty"`
	Examples      string             `json:"examples,omitempty"`  // requests that the skill is for, one a line; missing from versions of an older program
	Questions     []string           `json:"questions,omitempty"` // see [readQuestions]; missing from versions of an older program
	UserOnly      bool               `json:"person_only,omitempty"`
	ModelOnly     bool               `json:"model_only,omitempty"`
	ProvidesTools bool               `json:"brings,omitempty"` // whether the skill provides tools, through MCP servers or a provider
	Scripts       int                `json:"scripts,omitempty"`
	Requests      bool               `json:"requests,omitempty"` // whether the skill requests permitted tools or a model; false for versions of an older program
	Unnamed       bool               `json:"unnamed,omitempty"`
	Repaired      bool               `json:"repaired,omitempty"`
	Tokens        int                `json:"tokens"` // tokens in the instructions
	Warnings      int                `json:"warnings,omitempty"`
	Diagnostics   []skill.Diagnostic `json:"diagnostics,omitempty"`
	Findings      map[string]int     `json:"findings,omitempty"` // number of findings by severity
	Unscanned     bool               `json:"unscanned,omitempty"`

	undecodable bool // whether the stored metadata could not be read
}

// maxDiagnostics is the maximum number of SKILL.md diagnostics stored.
const maxDiagnostics = 20

// maxExamples is the maximum length of the stored examples, in bytes. The
// search index reads at most as many characters.
const maxExamples = bm25.BodyHead

func newMeta(s *skill.Skill, ds skill.Diagnostics, file string, files skill.Manifest) *meta {
	m := &meta{
		Author: cleanLine(s.Author, 256), License: cleanLine(s.License, 256), Category: cleanLine(s.Category, 256), ArgumentHint: cleanLine(s.ArgumentHint, 1024),
		BindShells: cleanLines(s.BindShells), Dependencies: cleanLines(s.Dependencies), Examples: truncate(strings.Join(s.Examples, "\n"), maxExamples),
		UserOnly: s.DisableModelInvocation, ModelOnly: !s.UserInvocable,
		Requests: len(s.AllowedTools) > 0 || s.Model != "" && s.Model != "inherit",
		Unnamed:  s.Unnamed, Repaired: s.Repaired,
		Tokens: tokencount.Estimate(s.Instructions),
	}
	m.ProvidesTools = s.MCPServers.Configs != nil || s.Provider != nil
	for _, t := range s.Tools {
		m.ProvidesTools = m.ProvidesTools || t.Provider != ""
	}
	if file != skill.FileName {
		m.File = file
	}
	for _, f := range files {
		if f.Script {
			m.Scripts++
		}
	}
	worth := ds.Problems()
	m.Warnings = len(worth)
	for _, d := range worth[:min(len(worth), maxDiagnostics)] {
		d.Message, d.Fix = cleanLine(d.Message, 1024), cleanLine(d.Fix, 1024)
		m.Diagnostics = append(m.Diagnostics, d)
	}
	return m
}

// readMeta decodes metadata. If data is invalid, the result is incomplete, and its
// hasCode returns true.
func readMeta(data json.RawMessage) meta {
	var m meta
	m.undecodable = json.Unmarshal(data, &m) != nil
	return m
}

// hasCode reports whether the skill has scripts, servers or provided tools.
func (m *meta) hasCode() bool { return m.Scripts > 0 || m.ProvidesTools || m.undecodable }

// needsReview reports whether the skill must be reviewed because it has code,
// or requests allowed tools or a model.
func (m *meta) needsReview() bool { return m.hasCode() || m.Requests }

// catalogEntry returns the catalog entry of a skill, without origin and path.
func (m *meta) catalogEntry(name, display, description, label string, tags []string) *catalog.Entry {
	return &catalog.Entry{
		Name: name, DisplayName: display, Description: description, Version: label, Tags: tags,
		ArgumentHint: m.ArgumentHint, BindShells: m.BindShells, Dependencies: m.Dependencies,
		DisableModelInvocation: m.UserOnly, UserInvocable: !m.ModelOnly, ProvidesTools: m.ProvidesTools,
		HasOwnName: !m.Unnamed, Verbatim: !m.Repaired, Warnings: m.Warnings,
	}
}

// catalogTokens estimates the number of tokens in the skill's catalog line. It
// returns 0 if the skill is hidden from models.
func (m *meta) catalogTokens(s store.Skill) int {
	if m.UserOnly {
		return 0
	}
	e := m.catalogEntry(s.Name, s.Display, s.Description, s.Label, s.Tags)
	return tokencount.Estimate(catalog.Format([]*catalog.Entry{e}, catalog.FormatOptions{}))
}

// dependencyRefs returns references to the skill's dependencies.
func (m *meta) dependencyRefs() []store.Reference {
	var out []store.Reference
	for _, d := range m.Dependencies {
		name := dependencyName(d)
		if name != "" {
			out = append(out, store.Reference{Slot: "dependencies", ToKind: store.SkillKind, ToName: name})
		}
	}
	return out
}

// cleanLine returns untrusted text as a single line of up to limit bytes.
func cleanLine(text string, limit int) string { return truncate(printable.OneLine(text), limit) }

// truncate truncates text to limit bytes. The result is valid UTF-8 without NUL
// bytes.
func truncate(text string, limit int) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "\x00", "")
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}

// maxListItems is the maximum number of items in a SKILL.md list, such as tags.
const maxListItems = 100

func cleanLines(texts []string) []string {
	var out []string
	for _, t := range texts[:min(len(texts), maxListItems)] {
		out = append(out, cleanLine(t, 256))
	}
	return out
}

// maxName is the maximum length of a skill name, in bytes.
const maxName = 256

// checkName returns an error if name cannot be used in URLs, references and
// archive paths.
func checkName(name string) error {
	why := ""
	switch {
	case name == "" || name == "." || name == "..":
		why = "the name is empty or a relative path"
	case len(name) > maxName:
		why = "the name is longer than 256 bytes"
	case !utf8.ValidString(name) || !printable.IsLabel(name):
		why = "the name has unprintable characters"
	case strings.ContainsAny(name, `/\@:`):
		why = `/, \, @ and : have a meaning in references`
	case strings.TrimSpace(name) != name:
		why = "the name starts or ends with a space"
	default:
		if found := (skill.Limits{}).Check(skill.Manifest{{Path: name + "/" + skill.FileName}}); found != nil {
			why = "not a valid directory name: " + found[0].Message
		}
	}
	if why == "" {
		return nil
	}
	return &NameError{Name: printable.OneLine(name), Why: why}
}

// dependencyName returns the name of a dependency without its version constraint,
// or "" if the name is invalid.
func dependencyName(text string) string {
	name, _, _ := strings.Cut(text, "@")
	if name = strings.TrimSpace(name); checkName(name) != nil {
		return ""
	}
	return name
}
