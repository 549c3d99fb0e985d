// Package profile reads Ghosts: documents that combine skills, instructions and
// MCP servers under a name. It reads the loadout/v1 format and Wegent's format
// from a file or a directory, and reports diagnostics for each file.
//
// It does not look up skills, connect to servers or resolve variables. A
// profile is only data; the caller decides what the names mean and whether they
// may be used.
package profile

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/internal/configfile"
	"github.com/loadout-dev/loadout/internal/printable"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/skill"
)

// API versions of Ghosts.
const (
	Own    = "loadout/v1"
	Wegent = "agent.wecode.io/v1"
)

// maxListed is the maximum number of skills in a profile.
const maxListed = 1000

// Profile is a Ghost: a named set of skills, MCP servers, instructions and
// policy.
type Profile struct {
	Name         string
	Description  string
	SystemPrompt string
	// Skills lists skill names as written, with or without an origin.
	Skills []string
	// Preload lists the names in Skills whose skills are active from the start.
	Preload []string
	// MCPServers lists the servers that the Ghost defines. Their variables are
	// not resolved.
	MCPServers []*upstream.Config
	// ServerNames lists names of servers that are defined elsewhere.
	ServerNames []string
	// Expose is the tool exposure mode as written, or "".
	Expose string
	// Policy is the policy section as JSON, or nil.
	Policy json.RawMessage

	// Owner identifies who provides the profile, such as a trusted project; ""
	// means the user. The caller sets it.
	Owner string

	// File and Line are the position of the Ghost in its file.
	File string
	Line int
}

// Parse reads the Ghosts in a file of at most 1 MiB: JSON, or YAML with one or
// more documents. It skips documents of other kinds and reports them as notes.
// Parse never fails: it returns problems as diagnostics with positions. A
// [skill.Error] means that a document or a server was skipped.
func Parse(data []byte, file string) ([]*Profile, []skill.Diagnostic) {
	p := &parser{file: file}
	docs, err := configfile.Parse(data, configfile.FormatOf(file, data))
	for _, doc := range docs {
		p.parseDocument(doc)
	}
	if err != nil {
		p.add(skill.Error, "profile-unreadable", &configfile.Node{Line: err.Line, Column: err.Column}, "cannot read the file: "+err.Message, "fix the file at this position")
	}
	return p.profiles, p.ds
}

type parser struct {
	file     string
	profiles []*Profile
	ds       []skill.Diagnostic
}

func (p *parser) add(s skill.Severity, code string, n *configfile.Node, msg, fix string) {
	const most = 1000
	if len(p.ds) < most {
		p.ds = append(p.ds, skill.Diagnostic{Severity: s, Code: code, Line: n.Line, Column: n.Column, Message: printable.OneLine(msg), Fix: printable.OneLine(fix)})
	}
}

func text(n *configfile.Node) string {
	if n.IsScalar() {
		return n.Text
	}
	return ""
}

func quote(s string) string {
	if len(s) > 80 {
		s = strings.ToValidUTF8(s[:80], "") + "…"
	}
	return `"` + s + `"`
}

// parseDocument parses a document. It skips documents of other kinds.
func (p *parser) parseDocument(doc *configfile.Node) {
	kind := doc.Get("kind")
	switch {
	case doc.Kind != configfile.Map:
		p.add(skill.Error, "profile-shape", doc, fmt.Sprintf("the document is a %s", doc.Kind), "write kind: Ghost, metadata and spec")
		return
	case text(kind) == "":
		p.add(skill.Error, "profile-kind", doc, "the document has no kind", "write kind: Ghost")
		return
	case kind.Text != "Ghost":
		p.add(skill.Info, "profile-kind", kind, "document of kind "+quote(kind.Text)+" skipped", "")
		return
	}
	if v := doc.Get("apiVersion"); v == nil {
		p.add(skill.Info, "profile-version", doc, "Ghost has no apiVersion; assuming "+Own, "write apiVersion: "+Own)
	} else if text(v) != Own && text(v) != Wegent {
		p.add(skill.Warning, "profile-version", v, "the apiVersion "+quote(text(v))+" is unknown; assuming "+Own, "write apiVersion: "+Own)
	}
	meta, spec := doc.Get("metadata"), doc.Get("spec")
	name := meta.Get("name")
	if why := nameFault(text(name)); why != "" {
		if name == nil {
			name = kind
		}
		p.add(skill.Error, "profile-name", name, "the name of the Ghost "+why, "write metadata: {name: NAME}")
		return
	}
	ghost := &Profile{Name: name.Text, Description: text(meta.Get("description")), File: p.file, Line: name.Line}
	for _, other := range p.profiles {
		if other.Name == ghost.Name {
			p.add(skill.Warning, "profile-duplicate", name, fmt.Sprintf("Ghost %s is already defined on line %d; this one is skipped", quote(name.Text), other.Line), "rename one of them")
			return
		}
	}
	switch {
	case spec == nil || spec.Kind == configfile.Null:
		p.add(skill.Warning, "profile-empty", name, "Ghost "+quote(ghost.Name)+" has no spec, so no skills and no servers", "write spec: {skills: [NAME]}")
	case spec.Kind != configfile.Map:
		p.add(skill.Error, "profile-shape", spec, fmt.Sprintf("spec is a %s", spec.Kind), "write a map with skills, systemPrompt and mcpServers")
		return
	default:
		p.parseSpec(ghost, spec)
	}
	p.profiles = append(p.profiles, ghost)
}

// nameFault returns the reason why a name is invalid, or "". Names become part
// of URLs.
func nameFault(name string) string {
	const most = 128
	switch {
	case strings.TrimSpace(name) == "":
		return "is missing"
	case utf8.RuneCountInString(name) > most:
		return fmt.Sprintf("is longer than %d characters", most)
	case name == "." || name == ".." || strings.ContainsAny(name, `/\?#%`):
		return "cannot be part of a URL"
	case !printable.IsLabel(name):
		return "contains an invisible character"
	}
	return ""
}

// parseSpec parses the spec of a Ghost.
func (p *parser) parseSpec(g *Profile, spec *configfile.Node) {
	var servers *configfile.Node
	var preload configfile.Field
	fields, passed := spec.UniqueFields()
	for _, f := range passed {
		p.add(skill.Warning, "profile-key-twice", &configfile.Node{Line: f.Line, Column: f.Column}, "key "+quote(f.Key)+" is duplicated; the last value counts", "remove one of them")
	}
	for _, f := range fields {
		at := &configfile.Node{Line: f.Line, Column: f.Column}
		if f.Value.Kind == configfile.Null {
			continue
		}
		switch f.Key {
		case "systemPrompt", "system_prompt":
			g.SystemPrompt = p.parseText(f)
		case "description":
			g.Description = p.parseText(f)
		case "skills":
			g.Skills = p.parseNames(f)
		case "preload_skills", "preloadSkills", "preload":
			preload = f
		case "mcpServers", "mcp_servers":
			servers = f.Value
		case "expose":
			g.Expose = p.parseText(f)
		case "policy":
			g.Policy = f.Value.JSON()
		case "skill_refs", "preload_skill_refs", "defaultKnowledgeBaseRefs":
			p.add(skill.Info, "profile-hub-only", at, f.Key+" is ignored outside a hub: skills are found by name", "")
		default:
			p.add(skill.Info, "profile-key", at, "key "+quote(f.Key)+" is unknown and ignored", "")
		}
	}
	if preload.Value != nil {
		p.parsePreload(g, preload)
	}
	f, ds := upstream.ParseNode(servers, upstream.ParseOptions{Name: p.file})
	g.MCPServers, g.ServerNames = f.Servers, f.Names
	p.ds = append(p.ds, ds...)
}

// parsePreload parses the names of preloaded skills, and adds missing ones to
// Skills.
func (p *parser) parsePreload(g *Profile, f configfile.Field) {
	g.Preload = p.parseNames(f)
	have := map[string]bool{}
	for _, name := range g.Skills {
		have[name] = true
	}
	for _, name := range g.Preload {
		if have[name] {
			continue
		}
		p.add(skill.Warning, "profile-preload", f.Value, fmt.Sprintf("%s: %s is not listed in skills; it was added", f.Key, quote(name)), "add it to skills")
		g.Skills = append(g.Skills, name)
	}
}

func (p *parser) parseText(f configfile.Field) string {
	if !f.Value.IsScalar() {
		p.add(skill.Warning, "profile-value", f.Value, fmt.Sprintf("%s is a %s and is ignored", f.Key, f.Value.Kind), "write a string")
		return ""
	}
	return f.Value.Text
}

// parseNames parses skill names: a list of strings, a list of maps with a name,
// or a comma-separated string.
func (p *parser) parseNames(f configfile.Field) []string {
	items := f.Value.Items
	switch {
	case f.Value.Kind == configfile.Map:
		p.add(skill.Warning, "profile-value", f.Value, f.Key+" is a map and is ignored", "write a list of names")
	case f.Value.Kind != configfile.List:
		for s := range strings.SplitSeq(f.Value.Text, ",") {
			items = append(items, &configfile.Node{Kind: configfile.String, Text: s, Line: f.Value.Line, Column: f.Value.Column})
		}
	}
	var out []string
	seen := map[string]bool{}
	for _, n := range items {
		name := strings.TrimSpace(text(n))
		if n.Kind == configfile.Map {
			name = strings.TrimSpace(text(n.Get("name")))
		}
		switch {
		case name == "" || utf8.RuneCountInString(name) > 256 || !printable.IsLabel(name):
			p.add(skill.Warning, "profile-skill", n, f.Key+": an item is not a skill name and is ignored", "write a name")
		case len(out) >= maxListed:
			p.add(skill.Warning, "profile-skill", n, fmt.Sprintf("%s: too many skills (limit %d); others are skipped", f.Key, maxListed), "split the Ghost")
			return out
		case !seen[name]:
			seen[name] = true
			out = append(out, name)
		}
	}
	return out
}
