// Package profile reads Ghosts: files that say which skills, instructions and
// MCP servers belong together under a name. It reads the form of loadout/v1 and
// Wegent's, one file or a directory of them, and says what is wrong with each.
//
// It never looks a skill up, connects a server or resolves a variable: a profile
// is data, and what its names mean, and whether they may be used, is decided by
// who reads it.
package profile

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/internal/configfile"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/skill"
)

// API versions of files with Ghosts.
const (
	Own    = "loadout/v1"
	Wegent = "agent.wecode.io/v1"
)

// maxListed bounds the skills of a profile.
const maxListed = 1000

// Profile is one Ghost. It is data.
type Profile struct {
	Name         string
	Description  string
	SystemPrompt string
	// Skills are names of skills, or names with an origin, as written.
	Skills []string
	// Preload are those of Skills that are in force from the beginning.
	Preload []string
	// MCPServers are the servers that it defines, their variables not resolved.
	MCPServers []*upstream.Config
	// ServerNames are servers that it only names, defined elsewhere.
	ServerNames []string
	// Expose is how its tools are shown, as written; "" where it does not say.
	Expose string
	// Policy is what it says of policy, as JSON; nil where it does not.
	Policy json.RawMessage

	// Owner is what brings it, as a project that is trusted; "" is the person. It is
	// the caller's to set.
	Owner string

	// File and Line are where it is.
	File string
	Line int
}

// Parse reads the Ghosts of a file of YAML, of one document or several, or of
// JSON, of at most 1 MiB. Documents of other kinds are passed over with a note.
// It never fails: what is wrong is said in the diagnostics, with places; an
// [skill.Error] is about a document or a server that is left out.
func Parse(data []byte, file string) ([]*Profile, []skill.Diagnostic) {
	p := &parser{file: file}
	docs, err := configfile.Parse(data, configfile.FormatOf(file, data))
	for _, doc := range docs {
		p.document(doc)
	}
	if err != nil {
		p.add(skill.Error, "profile-unreadable", &configfile.Node{Line: err.Line, Column: err.Column}, "the file cannot be read: "+err.Message, "mend the file at this place")
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
		p.ds = append(p.ds, skill.Diagnostic{Severity: s, Code: code, Line: n.Line, Column: n.Column, Message: skill.OneLine(msg), Fix: skill.OneLine(fix)})
	}
}

func text(n *configfile.Node) string {
	if n.Scalar() {
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

// document reads one document, which may be of another kind.
func (p *parser) document(doc *configfile.Node) {
	kind := doc.Get("kind")
	switch {
	case doc.Kind != configfile.Map:
		p.add(skill.Error, "profile-shape", doc, fmt.Sprintf("the document is a %s", doc.Kind), "write kind: Ghost, metadata and spec")
		return
	case text(kind) == "":
		p.add(skill.Error, "profile-kind", doc, "the document has no kind", "write kind: Ghost")
		return
	case kind.Text != "Ghost":
		p.add(skill.Info, "profile-kind", kind, "a document of the kind "+quote(kind.Text)+" is passed over", "")
		return
	}
	if v := doc.Get("apiVersion"); v == nil {
		p.add(skill.Info, "profile-version", doc, "the Ghost has no apiVersion; it is read as "+Own, "write apiVersion: "+Own)
	} else if text(v) != Own && text(v) != Wegent {
		p.add(skill.Warning, "profile-version", v, "the apiVersion "+quote(text(v))+" is not known; it is read as "+Own, "write apiVersion: "+Own)
	}
	meta, spec := doc.Get("metadata"), doc.Get("spec")
	name := meta.Get("name")
	if why := badName(text(name)); why != "" {
		if name == nil {
			name = kind
		}
		p.add(skill.Error, "profile-name", name, "the name of the Ghost "+why, "write metadata: {name: NAME}")
		return
	}
	ghost := &Profile{Name: name.Text, Description: text(meta.Get("description")), File: p.file, Line: name.Line}
	for _, other := range p.profiles {
		if other.Name == ghost.Name {
			p.add(skill.Warning, "profile-duplicate", name, fmt.Sprintf("Ghost %s is defined on line %d already; this one is passed over", quote(name.Text), other.Line), "rename one of them")
			return
		}
	}
	switch {
	case spec == nil || spec.Kind == configfile.Null:
		p.add(skill.Warning, "profile-empty", name, "Ghost "+quote(ghost.Name)+" has no spec: it has no skills and no servers", "write spec: {skills: [NAME]}")
	case spec.Kind != configfile.Map:
		p.add(skill.Error, "profile-shape", spec, fmt.Sprintf("spec is a %s", spec.Kind), "write a map with skills, systemPrompt and mcpServers")
		return
	default:
		p.spec(ghost, spec)
	}
	p.profiles = append(p.profiles, ghost)
}

// badName says what is wrong with a name, which is part of a URL later.
func badName(name string) string {
	const most = 128
	switch {
	case strings.TrimSpace(name) == "":
		return "is missing"
	case utf8.RuneCountInString(name) > most:
		return fmt.Sprintf("is longer than %d characters", most)
	case name == "." || name == ".." || strings.ContainsAny(name, `/\?#%`):
		return "cannot be part of a URL"
	case strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return "has a character that cannot be seen"
	}
	return ""
}

// spec reads what a Ghost consists of.
func (p *parser) spec(g *Profile, spec *configfile.Node) {
	var servers *configfile.Node
	var preload configfile.Field
	fields, passed := spec.Unique()
	for _, f := range passed {
		p.add(skill.Warning, "profile-key-twice", &configfile.Node{Line: f.Line, Column: f.Column}, "key "+quote(f.Key)+" comes twice; the last one counts", "remove one of them")
	}
	for _, f := range fields {
		at := &configfile.Node{Line: f.Line, Column: f.Column}
		if f.Value.Kind == configfile.Null {
			continue
		}
		switch f.Key {
		case "systemPrompt", "system_prompt":
			g.SystemPrompt = p.text(f)
		case "description":
			g.Description = p.text(f)
		case "skills":
			g.Skills = p.names(f)
		case "preload_skills", "preloadSkills", "preload":
			preload = f
		case "mcpServers", "mcp_servers":
			servers = f.Value
		case "expose":
			g.Expose = p.text(f)
		case "policy":
			g.Policy = f.Value.JSON()
		case "skill_refs", "preload_skill_refs", "defaultKnowledgeBaseRefs":
			p.add(skill.Info, "profile-hub-only", at, f.Key+" is for a hub and is not read: skills are found by name", "")
		default:
			p.add(skill.Info, "profile-key", at, "key "+quote(f.Key)+" is not known and is ignored", "")
		}
	}
	if preload.Value != nil {
		p.preload(g, preload)
	}
	f, ds := upstream.ParseNode(servers, upstream.ParseOptions{Name: p.file})
	g.MCPServers, g.ServerNames = f.Servers, f.Names
	p.ds = append(p.ds, ds...)
}

// preload reads what is loaded from the beginning. It belongs to the skills.
func (p *parser) preload(g *Profile, f configfile.Field) {
	g.Preload = p.names(f)
	have := map[string]bool{}
	for _, name := range g.Skills {
		have[name] = true
	}
	for _, name := range g.Preload {
		if have[name] {
			continue
		}
		p.add(skill.Warning, "profile-preload", f.Value, fmt.Sprintf("%s: %s is not among the skills; it is added to them", f.Key, quote(name)), "add it to skills")
		g.Skills = append(g.Skills, name)
	}
}

func (p *parser) text(f configfile.Field) string {
	if !f.Value.Scalar() {
		p.add(skill.Warning, "profile-value", f.Value, fmt.Sprintf("%s is a %s and is ignored", f.Key, f.Value.Kind), "write a text")
		return ""
	}
	return f.Value.Text
}

// names reads names of skills: a list of them, of maps with a name, or one text
// that holds several, separated by commas.
func (p *parser) names(f configfile.Field) []string {
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
		case name == "" || utf8.RuneCountInString(name) > 256 || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
			p.add(skill.Warning, "profile-skill", n, f.Key+": an item is not the name of a skill and is ignored", "write a name")
		case len(out) >= maxListed:
			p.add(skill.Warning, "profile-skill", n, fmt.Sprintf("%s: there are more than %d; the rest is left out", f.Key, maxListed), "split the Ghost")
			return out
		case !seen[name]:
			seen[name] = true
			out = append(out, name)
		}
	}
	return out
}
