package library

import (
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/skill"
)

// meta is what is kept of a SKILL.md besides the columns of a version: enough to list
// and choose a skill without reading its files.
type meta struct {
	File          string             `json:"file,omitempty"` // its spelling, where not SKILL.md
	Author        string             `json:"author,omitempty"`
	License       string             `json:"license,omitempty"`
	Category      string             `json:"category,omitempty"`
	ArgumentHint  string             `json:"argument_hint,omitempty"`
	BindShells    []string           `json:"bind_shells,omitempty"`
	Dependencies  []string           `json:"dependencies,omitempty"`
	UserOnly      bool               `json:"person_only,omitempty"`
	ModelOnly     bool               `json:"model_only,omitempty"`
	ProvidesTools bool               `json:"brings,omitempty"` // servers, or tools of a provider
	Scripts       int                `json:"scripts,omitempty"`
	Unnamed       bool               `json:"unnamed,omitempty"`
	Repaired      bool               `json:"repaired,omitempty"`
	Tokens        int                `json:"tokens"` // of the instructions
	Warnings      int                `json:"warnings,omitempty"`
	Diagnostics   []skill.Diagnostic `json:"diagnostics,omitempty"`
	Findings      map[string]int     `json:"findings,omitempty"` // how many of a severity
	Unscanned     bool               `json:"unscanned,omitempty"`
}

// maxDiagnostics bounds what is kept of a form that needs mending.
const maxDiagnostics = 20

func newMeta(s *skill.Skill, ds skill.Diagnostics, file string, files skill.Manifest) *meta {
	m := &meta{
		Author: cleanLine(s.Author, 256), License: cleanLine(s.License, 256), Category: cleanLine(s.Category, 256), ArgumentHint: cleanLine(s.ArgumentHint, 1024),
		BindShells: cleanLines(s.BindShells), Dependencies: cleanLines(s.Dependencies),
		UserOnly: s.DisableModelInvocation, ModelOnly: !s.UserInvocable,
		Unnamed: !s.HasOwnName(), Repaired: !s.Verbatim(),
		Tokens: skill.EstimateTokens(s.Instructions),
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

// readMeta reads what newMeta made; what a later program cannot read is empty.
func readMeta(data json.RawMessage) meta {
	var m meta
	_ = json.Unmarshal(data, &m)
	return m
}

// hasCode reports whether something of the skill runs.
func (m *meta) hasCode() bool { return m.Scripts > 0 || m.ProvidesTools }

// catalogEntry is level 1 of a skill, without the place that it is listed in.
func (m *meta) catalogEntry(name, display, description, label string, tags []string) *catalog.Entry {
	return &catalog.Entry{
		Name: name, DisplayName: display, Description: description, Version: label, Tags: tags,
		ArgumentHint: m.ArgumentHint, BindShells: m.BindShells, Dependencies: m.Dependencies,
		DisableModelInvocation: m.UserOnly, UserInvocable: !m.ModelOnly, ProvidesTools: m.ProvidesTools,
		HasOwnName: !m.Unnamed, Verbatim: !m.Repaired, Warnings: m.Warnings,
	}
}

// catalogTokens is about how many tokens the line takes by which a model is told of a skill;
// 0 where it is not.
func (m *meta) catalogTokens(s store.Skill) int {
	if m.UserOnly {
		return 0
	}
	e := m.catalogEntry(s.Name, s.Display, s.Description, s.Label, s.Tags)
	return skill.EstimateTokens(catalog.Format([]*catalog.Entry{e}, catalog.FormatOptions{}))
}

// dependencyRefs are the skills that it names as those it needs.
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

// cleanLine is a text of a stranger as it is kept: on one line, and no longer than so many
// bytes.
func cleanLine(text string, most int) string { return truncate(skill.OneLine(text), most) }

// truncate is the beginning of a text, as valid UTF-8 and without zero bytes.
func truncate(text string, most int) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "\x00", "")
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

// maxListItems bounds lists that a SKILL.md has, as of tags.
const maxListItems = 100

func cleanLines(texts []string) []string {
	var out []string
	for _, t := range texts[:min(len(texts), maxListItems)] {
		out = append(out, cleanLine(t, 256))
	}
	return out
}

// maxName bounds the name of a skill, in bytes.
const maxName = 256

// checkName says why a skill cannot have a name here: it stands in addresses, in
// references and in the paths of archives.
func checkName(name string) error {
	why := ""
	switch {
	case name == "" || name == "." || name == "..":
		why = "it needs a word"
	case len(name) > maxName:
		why = "it is longer than 256 bytes"
	case !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		why = "it has characters that cannot be seen"
	case strings.ContainsAny(name, `/\@:`):
		why = `/, \, @ and : mean something else in references`
	case strings.TrimSpace(name) != name:
		why = "it begins or ends with a blank"
	default:
		if found := skill.CheckFiles(skill.Manifest{{Path: name + "/" + skill.FileName}}, skill.Limits{}); found != nil {
			why = "it cannot name a folder: " + found[0].Message
		}
	}
	if why == "" {
		return nil
	}
	return &NameError{Name: skill.OneLine(name), Why: why}
}

// dependencyName is the name in what a skill says that it needs: a name, or one with a
// constraint of its version; "" where it can be none.
func dependencyName(text string) string {
	name, _, _ := strings.Cut(text, "@")
	if name = strings.TrimSpace(name); checkName(name) != nil {
		return ""
	}
	return name
}
