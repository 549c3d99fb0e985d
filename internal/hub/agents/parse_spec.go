package agents

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/loadout-dev/loadout/internal/configfile"
	"github.com/loadout-dev/loadout/internal/llm/vendors"
	"github.com/loadout-dev/loadout/internal/plainjson"
	"github.com/loadout-dev/loadout/internal/secretname"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/skill"
)

func (p *parser) parseGhost(n *configfile.Node) *Ghost {
	g := &Ghost{}
	known := p.selectionFields(&g.Selection)
	known["description"] = p.setText(&p.doc.Description)
	known["systemPrompt"] = p.setText(&g.SystemPrompt)
	known["expose"] = func(f configfile.Field) {
		if g.Expose = p.parseText(f.Key, f.Value); !slices.Contains([]string{"", "meta", "direct"}, g.Expose) {
			p.addError("ghost-expose", f.Value, "invalid expose "+quote(g.Expose), "use meta or direct")
		}
	}
	known["policy"] = func(f configfile.Field) { g.Policy = p.parseRules(f) }
	known["defaultKnowledgeBaseRefs"] = nil
	p.parseFields(n, known)
	p.checkSelection(n, &g.Selection)
	return g
}

// parseRules parses policy rules for tool calls: a list, or a map with the key
// rules.
func (p *parser) parseRules(f configfile.Field) []string {
	list := f.Value
	if list.Kind == configfile.Map {
		list = list.Get("rules")
	}
	var texts []string
	if list == nil || list.Kind != configfile.List {
		p.addError("ghost-policy", f.Value, f.Key+": want {rules: [...]}", `use rules such as "deny mcp.*.delete"`)
		return nil
	}
	for _, item := range list.Items {
		texts = append(texts, scalarText(item))
	}
	_, problems := policy.ParseRules(texts)
	for _, problem := range problems {
		p.addError("ghost-policy", list, f.Key+": "+problem.String(), `use rules such as "deny mcp.*.delete"`)
	}
	return texts
}

func (p *parser) parseBot(n *configfile.Node) *Bot {
	b := &Bot{}
	known := p.selectionFields(&b.Selection)
	known["description"] = p.setText(&p.doc.Description)
	ghost := func(f configfile.Field) { b.Ghost = p.parseRef(f) }
	model := func(f configfile.Field) {
		if r := p.parseRef(f); r.Name != "" {
			b.Model = &r
		}
	}
	known["ghostRef"], known["ghost"] = ghost, ghost
	known["modelRef"], known["model"] = model, model
	known["shellRef"], known["secondaryModelRef"] = nil, nil
	p.parseFields(n, known)
	if b.Ghost.Name == "" && p.doc.Findings.Loads() {
		p.addError("bot-ghost", n, "the Bot has no Ghost", "add ghostRef: {name: NAME}")
	}
	p.checkSelection(n, &b.Selection)
	return b
}

func (p *parser) parseTeam(n *configfile.Node) *Team {
	t := &Team{}
	p.parseFields(n, map[string]func(configfile.Field){
		"description":        p.setText(&p.doc.Description),
		"collaborationModel": p.setText(&t.Collaboration),
		"members":            func(f configfile.Field) { p.parseMembers(t, f) },
		"bindMode":           nil, "workflow": nil, "icon": nil, "recommended": nil,
	})
	if len(t.Members) == 0 && p.doc.Findings.Loads() {
		p.addError("team-members", n, "the Team has no members", "add members: [{botRef: {name: NAME}}]")
	}
	return t
}

func (p *parser) parseMembers(t *Team, f configfile.Field) {
	if f.Value.Kind != configfile.List {
		p.addError("team-members", f.Value, fmt.Sprintf("%s is a %s, want a list", f.Key, f.Value.Kind), "use a list of maps with botRef")
		return
	}
	leader, bots := false, map[Ref]bool{}
	for i, item := range f.Value.Items {
		if i == MaxMembers {
			p.addError("team-members", item, fmt.Sprintf("too many members (limit %d)", MaxMembers), "split the Team")
			return
		}
		m, ok := p.parseMember(item)
		if !ok {
			continue
		}
		if bots[m.Bot] {
			p.addError("team-member", item, "duplicate member "+quote(m.Bot.String()), "remove one")
		}
		if m.Role == LeaderRole && leader {
			p.addError("team-leader", item, "more than one leader", "give one member the role leader")
		}
		bots[m.Bot], leader = true, leader || m.Role == LeaderRole
		t.Members = append(t.Members, m)
	}
}

func (p *parser) parseMember(n *configfile.Node) (m Member, ok bool) {
	if n.Kind == configfile.String {
		m.Bot = p.parseRef(configfile.Field{Key: "members", Value: n})
		return m, m.Bot.Name != ""
	}
	if n.Kind != configfile.Map {
		p.addError("team-member", n, fmt.Sprintf("a member is a %s, want a map", n.Kind), "use a map with botRef")
		return m, false
	}
	bot := func(f configfile.Field) { m.Bot = p.parseRef(f) }
	p.parseFields(n, map[string]func(configfile.Field){
		"botRef": bot, "bot": bot,
		"prompt": p.setText(&m.Prompt), "role": p.setText(&m.Role),
		"requireConfirmation": func(f configfile.Field) {
			if f.Value.Kind != configfile.Bool {
				p.addError("document-value", f.Value, f.Key+" is not a boolean", "use true or false")
			}
			m.Confirm = scalarText(f.Value) == "true"
		},
		"contextPassing": nil, "name": nil,
	})
	if strings.EqualFold(m.Role, LeaderRole) {
		m.Role = LeaderRole
	}
	if m.Bot.Name == "" {
		p.addError("team-member", n, "a member has no Bot", "add botRef: {name: NAME}")
	}
	return m, m.Bot.Name != ""
}

func (p *parser) parseModel(n *configfile.Node) *Model {
	m := &Model{}
	var key, base configfile.Field
	known := map[string]func(configfile.Field){
		"description": p.setText(&p.doc.Description),
		"vendor":      func(f configfile.Field) { m.Vendor = p.parseVendor(f) },
		"model":       p.setText(&m.Model),
		"baseUrl":     func(f configfile.Field) { base = f },
		"apiKey":      func(f configfile.Field) { key = f },
		"images":      func(f configfile.Field) { m.Images = p.parseBool(f) },
		"window":      func(f configfile.Field) { m.Window = p.parseWindow(f) },
		"protocol":    nil, "isCustomConfig": nil,
	}
	known["provider"], known["modelId"] = known["vendor"], known["model"]
	// Wegent uses a map env, whose key model is the vendor.
	known["modelConfig"] = func(f configfile.Field) {
		if env := f.Value.Get("env"); env != nil && env.Kind == configfile.Map {
			p.parseFields(env, map[string]func(configfile.Field){"model": known["vendor"], "modelId": known["model"], "baseUrl": known["baseUrl"], "apiKey": known["apiKey"]})
			return
		}
		p.addError("model-config", f.Value, f.Key+" has no map env", "use vendor, model, baseUrl and apiKey")
	}
	p.parseFields(n, known)
	m.BaseURL, m.Key = p.parseBaseURL(base), p.parseKey(key)
	switch {
	case !p.doc.Findings.Loads():
	case m.Vendor == "":
		p.addError("model-vendor", n, "the Model has no vendor", "set vendor to anthropic, openai or demo")
	case m.Model == "" && m.Vendor != vendors.Demo:
		p.addError("model-name", n, "the Model has no model name", "add model: NAME")
	case len(m.Model) > 256 || hasUnprintable(m.Model):
		p.addError("model-name", n, "invalid model name", "use model: NAME")
	}
	return m
}

func (p *parser) parseBool(f configfile.Field) *bool {
	v, err := strconv.ParseBool(scalarText(f.Value))
	if err != nil {
		p.addError("not-a-flag", f.Value, f.Key+" is neither true nor false", "write "+f.Key+": true or false")
		return nil
	}
	return &v
}

// maxWindow is the maximum size of a context window in tokens.
const maxWindow = 100_000_000

func (p *parser) parseWindow(f configfile.Field) int {
	n, err := strconv.Atoi(scalarText(f.Value))
	if err != nil || n < 1 || n > maxWindow {
		p.addError("model-window", f.Value, f.Key+" is no number of tokens", "write "+f.Key+": 128000")
		return 0
	}
	return n
}

func (p *parser) parseVendor(f configfile.Field) string {
	v, ok := vendors.Lookup(scalarText(f.Value))
	if !ok {
		p.addError("model-vendor", f.Value, "unknown "+f.Key+" "+quote(scalarText(f.Value)), "use anthropic, openai (also for compatible servers) or demo")
	}
	return v.Name
}

func (p *parser) parseBaseURL(f configfile.Field) string {
	if f.Value == nil {
		return ""
	}
	s := p.parseText(f.Key, f.Value)
	u, err := url.Parse(s)
	if s == "" || err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http") && u.User == nil && u.RawQuery == "" && u.Fragment == "" && len(s) <= 2048 {
		return s
	}
	p.addError("model-url", f.Value, "invalid "+f.Key, "use https://HOST/PATH without user, password and query")
	return ""
}

// parseKey parses a reference to an API key. A literal key is an error.
func (p *parser) parseKey(f configfile.Field) string {
	if f.Value == nil {
		return ""
	}
	s := p.parseText(f.Key, f.Value)
	if _, ok := parseSecretRef(s); !ok && s != "" {
		p.addError("document-secret", f.Value, f.Key+" is not a reference to a secret", secretFix)
		return ""
	}
	return s
}

// parseSecretRef returns the secret's name if s consists of one secret reference.
func parseSecretRef(s string) (string, bool) {
	name, ok := strings.CutPrefix(s, "${{secrets.")
	name, end := strings.CutSuffix(name, "}}")
	return name, ok && end && secretname.Check(name) == nil
}

func (p *parser) parseServer(n *configfile.Node) *MCPServer {
	if p.doc.Name == "" {
		return &MCPServer{}
	}
	if d := n.Get("description"); d != nil {
		p.doc.Description = p.parseText("description", d)
	}
	raw, err := plainjson.Canonical(n.JSON())
	if err != nil {
		p.addError("server-shape", n, "invalid server", "use a command or a url")
		return &MCPServer{}
	}
	f, ds := upstream.ParseNode(wrapServer(p.doc.Name, n), upstream.ParseOptions{})
	p.doc.Findings = append(p.doc.Findings, ds...)
	s := &MCPServer{Config: raw}
	if _, again := s.parseConfig(p.doc.Name); p.doc.Findings.Loads() && (len(f.Servers) != 1 || again != nil) {
		p.addError("server-shape", n, "want exactly one server", "use a command or a url")
	}
	p.checkSecrets(n, f.Servers)
	return s
}

// wrapServer returns a map that contains the server n under the given name.
func wrapServer(name string, n *configfile.Node) *configfile.Node {
	return &configfile.Node{Kind: configfile.Map, Line: n.Line, Column: n.Column, Fields: []configfile.Field{{Key: name, Line: n.Line, Column: n.Column, Value: n}}}
}

// parseConfig parses the server's configuration.
func (s *MCPServer) parseConfig(name string) (*upstream.Config, error) {
	raw, err := plainjson.Line(map[string]json.RawMessage{name: s.Config})
	if err != nil {
		return nil, err
	}
	f, ds := upstream.ParseMap(raw, "")
	for _, d := range ds {
		if d.Severity == skill.Error {
			return nil, fmt.Errorf("%s", d.Message)
		}
	}
	if len(f.Servers) != 1 || f.Servers[0].Name != name {
		return nil, fmt.Errorf("invalid configuration of MCP server %q: want exactly one server", name)
	}
	return f.Servers[0], nil
}

// parseSkill parses the spec of a skill.
func (p *parser) parseSkill(n *configfile.Node) *Skill {
	p.checkDuplicateKeys(n)
	s := &Skill{Prompt: p.parseText("prompt", n.Get("prompt"))}
	fields, _ := n.UniqueFields()
	kept := &configfile.Node{Kind: configfile.Map}
	for _, f := range fields {
		if isInvalidKey(f.Key) {
			p.addError("document-key", fieldNode(f), "key "+quote(f.Key)+" is not a valid field name", "use letters, digits, - and _")
			continue
		}
		// The prompt becomes the body, and the document has the name. A document
		// cannot set the source or visibility of a skill.
		if f.Value.Kind != configfile.Null && !slices.Contains([]string{"prompt", "name", "visible", "source", "capability"}, f.Key) {
			kept.Fields = append(kept.Fields, f)
		}
	}
	if kept.Get("description") == nil && p.doc.Description != "" {
		kept.Fields = append(kept.Fields, configfile.Field{Key: "description", Value: &configfile.Node{Kind: configfile.String, Text: p.doc.Description}})
	}
	raw, err := plainjson.Canonical(kept.JSON())
	if err != nil {
		p.addError("document-shape", n, "invalid fields", "fix the fields")
		return s
	}
	s.Fields = raw
	if p.doc.Name == "" {
		return s
	}
	src, err := s.skillFile(p.doc.Name)
	_, ds := skill.ParseBytes(src, skill.FileName, p.doc.Name)
	for _, d := range ds { // omit positions, which refer to the generated file
		p.addFinding(d.Severity, d.Code, n, d.Message, d.Fix)
	}
	if err != nil {
		p.addError("document-shape", n, "invalid fields", "fix the fields")
	}
	return s
}

// isInvalidKey reports whether key is not allowed as a frontmatter field.
func isInvalidKey(key string) bool {
	return key == "" || len(key) > 100 || strings.Trim(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != ""
}
