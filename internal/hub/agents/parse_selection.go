package agents

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/internal/configfile"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/skill"
)

// selection returns what reads the fields of a selection.
func (p *parser) selection(s *Selection) map[string]func(configfile.Field) {
	preload := func(f configfile.Field) { s.Preload = p.names(f) }
	refs := func(f configfile.Field) { p.refs(s, f) }
	return map[string]func(configfile.Field){
		"skills":        func(f configfile.Field) { s.Skills = p.names(f) },
		"preloadSkills": preload, "preload": preload,
		"skillRefs": refs, "preloadSkillRefs": func(f configfile.Field) { p.refs(s, f) },
		"mcpServers": func(f configfile.Field) { p.servers(s, f) },
	}
}

// check looks at what has to fit together, once all of it is read.
func (p *parser) check(n *configfile.Node, s *Selection) {
	place := func(keys ...string) *configfile.Node {
		for _, key := range keys {
			if v := n.Get(key); v != nil {
				return v
			}
		}
		return n
	}
	have := map[string]bool{}
	for _, name := range s.Skills {
		have[name] = true
	}
	for _, name := range s.Preload {
		if !have[name] {
			p.fault("preload-unknown", place("preload_skills", "preloadSkills", "preload"), "the skill "+quote(name)+" is preloaded and not among the skills", "add it to skills")
		}
	}
	for _, name := range sortedKeys(s.SkillRefs) {
		if !have[name] {
			p.fault("skill-ref", place("skill_refs", "skillRefs", "preload_skill_refs"), "skill_refs: "+quote(name)+" is not among the skills", "add it to skills")
		}
	}
}

// names reads names of skills: a list of them, of maps with a name, or one text with
// commas.
func (p *parser) names(f configfile.Field) []string {
	items := f.Value.Items
	switch {
	case f.Value.Kind == configfile.Map:
		p.fault("document-value", f.Value, f.Key+" is a map", "write a list of names")
	case f.Value.Kind != configfile.List:
		for s := range strings.SplitSeq(f.Value.Text, ",") {
			items = append(items, &configfile.Node{Kind: configfile.String, Text: s, Line: f.Value.Line, Column: f.Value.Column})
		}
	}
	out := []string{} // an empty list is not the same as none
	seen := map[string]bool{}
	for _, n := range items {
		name := strings.TrimSpace(text(n))
		if n.Kind == configfile.Map {
			name = strings.TrimSpace(text(n.Get("name")))
		}
		switch {
		case name == "" || utf8.RuneCountInString(name) > 256 || len(name) > 512 || unprintable(name):
			p.fault("skill-name", n, f.Key+": an item is not the name of a skill", "write a name")
		case len(out) >= MaxSkills:
			p.fault("skill-many", n, fmt.Sprintf("%s: there are more than %d", f.Key, MaxSkills), "split the Ghost")
			return out
		case !seen[name]:
			seen[name] = true
			out = append(out, name)
		}
	}
	return out
}

// refs reads which skills are meant by names.
func (p *parser) refs(s *Selection, f configfile.Field) {
	if f.Value.Kind != configfile.Map {
		p.fault("skill-ref", f.Value, fmt.Sprintf("%s is a %s", f.Key, f.Value.Kind), "write a map of skills by name")
		return
	}
	p.twice(f.Value)
	fields, _ := f.Value.Unique()
	if len(fields) > MaxSkills {
		p.fault("skill-ref", f.Value, fmt.Sprintf("%s: there are more than %d", f.Key, MaxSkills), "split the Ghost")
		return
	}
	for _, one := range fields {
		name := strings.TrimSpace(one.Key)
		ref, ok := p.skillRef(one)
		if !ok || ref == (SkillRef{}) {
			continue
		}
		if other, there := s.SkillRefs[name]; there && other != ref {
			p.fault("skill-ref", at(one), f.Key+": "+quote(name)+" is another skill elsewhere in this document", "write it once")
			continue
		}
		if s.SkillRefs == nil {
			s.SkillRefs = map[string]SkillRef{}
		}
		s.SkillRefs[name] = ref
	}
}

// skillRef reads what one name means. Ids and hashes of Wegent are of another system.
func (p *parser) skillRef(f configfile.Field) (SkillRef, bool) {
	var r SkillRef
	if f.Value.Kind != configfile.Map {
		p.fault("skill-ref", f.Value, "what "+quote(f.Key)+" refers to is a "+string(f.Value.Kind), "write skill_id, namespace, is_public or content_hash")
		return r, false
	}
	p.fields(f.Value, map[string]func(configfile.Field){
		"skill_id": p.into(&r.ID), "id": p.into(&r.ID),
		"namespace": p.into(&r.Namespace), "content_hash": p.into(&r.Digest), "digest": p.into(&r.Digest),
		"is_public": func(f configfile.Field) { r.Public = text(f.Value) == "true" },
	})
	if p.doc.APIVersion == WegentAPIVersion && (r.ID != "" || r.Digest != "") {
		p.warn("skill-ref-elsewhere", at(f), quote(f.Key)+": the id and the hash are of another system: the skill is found by its name", "write it again with apiVersion: "+APIVersion)
		r.ID, r.Digest = "", ""
	}
	if r.Namespace == "default" {
		r.Namespace = ""
	}
	switch {
	case r.Namespace != "" && badName(r.Namespace) != "":
		p.fault("skill-ref", f.Value, quote(f.Key)+": the namespace "+badName(r.Namespace), "write the name of a group, or public")
	case len(r.ID) > 64 || unprintable(r.ID):
		p.fault("skill-ref", f.Value, quote(f.Key)+": skill_id is no id", "write the id that the hub shows")
	case r.Digest != "" && !isDigest(r.Digest):
		p.fault("skill-ref", f.Value, quote(f.Key)+": content_hash is no digest", "write sha256: and 64 hexadecimal digits")
	}
	return r, true
}

// servers reads the servers of a Ghost, which are kept as they are written.
func (p *parser) servers(s *Selection, f configfile.Field) {
	read, ds := upstream.ParseNode(f.Value, upstream.ParseOptions{})
	p.doc.Findings = append(p.doc.Findings, ds...)
	raw, err := canonical(f.Value.JSON())
	if err != nil {
		p.fault("servers-shape", f.Value, f.Key+" cannot be kept", "write a map of servers by name")
		return
	}
	if len(read.Servers)+len(read.Names) > MaxServers {
		p.fault("servers-many", f.Value, fmt.Sprintf("%s: there are more than %d", f.Key, MaxServers), "split the Ghost")
		return
	}
	s.MCPServers = raw
	configs, names, err := s.servers()
	if err != nil && p.doc.Findings.Loads() {
		p.fault("servers-shape", f.Value, f.Key+": "+err.Error(), "write a map of servers by name")
	}
	if len(configs)+len(names) == 0 {
		s.MCPServers = nil
	}
	s.names = names
	p.secrets(f.Value, read.Servers)
}

// servers are those that a selection defines, and the names of others.
func (s *Selection) servers() ([]*upstream.Config, []string, error) {
	if len(s.MCPServers) == 0 {
		return nil, nil, nil
	}
	f, ds := upstream.ParseMap(s.MCPServers, "")
	for _, d := range ds {
		if d.Severity == skill.Error {
			return nil, nil, fmt.Errorf("%s", d.Message)
		}
	}
	return f.Servers, f.Names, nil
}

const keepSecret = "keep it as a secret of the hub, and write ${{secrets.NAME}}"

// secrets refuses values that look like secrets where a reference should stand:
// documents are read by more people, and kept longer, than a secret should be.
func (p *parser) secrets(n *configfile.Node, servers []*upstream.Config) {
	for _, c := range servers {
		at := &configfile.Node{Line: c.Line, Column: n.Column}
		say := func(where string) {
			p.fault("document-secret", at, "server "+quote(c.Name)+": "+where+" is a secret in plain text", keepSecret)
		}
		for name, value := range ordered(c.Headers) {
			if plainSecret(name, value) {
				say("header " + quote(name))
			}
		}
		for name, value := range ordered(c.Env) {
			if plainSecret(name, value) {
				say("variable " + quote(name))
			}
		}
		if c.OAuth != nil && plainSecret("secret", c.OAuth.Secret) {
			say("the secret of the client")
		}
		for _, u := range c.URLs {
			if plainPassword(u) {
				say("the URL")
			}
		}
		if slices.ContainsFunc(c.Variables(), func(u upstream.VariableUse) bool { return u.Kind == upstream.FromEnv || u.Kind == upstream.FromInput }) {
			p.warn("server-variable", at, "server "+quote(c.Name)+": it uses variables of an environment, of which there is none on a hub", keepSecret)
		}
		if c.EnvFile != "" {
			p.fault("server-env-file", at, "server "+quote(c.Name)+": envFile is a file of whoever runs the hub", "write env")
		}
	}
}

// plainSecret reports whether a value is one that should not be read by others, by
// what it is called.
func plainSecret(name, value string) bool {
	name = canon(name)
	return value != "" && !strings.Contains(value, "${") && slices.ContainsFunc(
		[]string{"authorization", "token", "secret", "password", "passwd", "apikey", "accesskey", "privatekey", "cookie", "credential"},
		func(word string) bool { return strings.Contains(name, word) })
}

// plainPassword reports whether a URL has a password, or a parameter called like one.
func plainPassword(s string) bool {
	u, err := url.Parse(s)
	if err != nil {
		return strings.Contains(s, "@") && !strings.Contains(s, "${")
	}
	if password, ok := u.User.Password(); ok && plainSecret("password", password) {
		return true
	}
	for name, values := range u.Query() {
		if plainSecret(name, strings.Join(values, "")) {
			return true
		}
	}
	return false
}

func ordered(m map[string]string) func(yield func(string, string) bool) {
	return func(yield func(string, string) bool) {
		for _, k := range sortedKeys(m) {
			if !yield(k, m[k]) {
				return
			}
		}
	}
}

// decode is a spec as it is kept.
func decode(kind string, raw json.RawMessage) (Spec, error) {
	var s Spec
	switch kind {
	case GhostKind:
		s = &Ghost{}
	case BotKind:
		s = &Bot{}
	case TeamKind:
		s = &Team{}
	case ModelKind:
		s = &Model{}
	case ServerKind:
		s = &MCPServer{}
	default:
		return nil, fmt.Errorf("there is no kind %q", kind)
	}
	if err := json.Unmarshal(raw, s); err != nil {
		return nil, fmt.Errorf("what is kept of a %s is damaged: %w", kind, err)
	}
	if have := selected(s); have != nil {
		_, names, err := have.servers()
		if err != nil {
			return nil, fmt.Errorf("what is kept of a %s is damaged: %w", kind, err)
		}
		have.names = names
	}
	return s, nil
}

// selected is the selection of a spec, nil where it has none.
func selected(s Spec) *Selection {
	switch s := s.(type) {
	case *Ghost:
		return &s.Selection
	case *Bot:
		return &s.Selection
	}
	return nil
}

func isDigest(s string) bool {
	hex, ok := strings.CutPrefix(s, "sha256:")
	return ok && len(hex) == 64 && strings.Trim(hex, "0123456789abcdef") == ""
}
