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

// selectionFields returns what reads the fields of a selection.
func (p *parser) selectionFields(s *Selection) map[string]func(configfile.Field) {
	preload := func(f configfile.Field) { s.Preload = p.parseNames(f) }
	refs := func(f configfile.Field) { p.parseSkillRefs(s, f) }
	return map[string]func(configfile.Field){
		"skills":        func(f configfile.Field) { s.Skills = p.parseNames(f) },
		"preloadSkills": preload, "preload": preload,
		"skillRefs": refs, "preloadSkillRefs": func(f configfile.Field) { p.parseSkillRefs(s, f) },
		"mcpServers": func(f configfile.Field) { p.parseServers(s, f) },
	}
}

// checkSelection looks at what has to fit together, once all of it is read.
func (p *parser) checkSelection(n *configfile.Node, s *Selection) {
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
			p.addError("preload-unknown", place("preload_skills", "preloadSkills", "preload"), "the skill "+quote(name)+" is preloaded and not among the skills", "add it to skills")
		}
	}
	for _, name := range sortedKeys(s.SkillRefs) {
		if !have[name] {
			p.addError("skill-ref", place("skill_refs", "skillRefs", "preload_skill_refs"), "skill_refs: "+quote(name)+" is not among the skills", "add it to skills")
		}
	}
}

// parseNames reads names of skills: a list of them, of maps with a name, or one text with
// commas.
func (p *parser) parseNames(f configfile.Field) []string {
	items := f.Value.Items
	switch {
	case f.Value.Kind == configfile.Map:
		p.addError("document-value", f.Value, f.Key+" is a map", "write a list of names")
	case f.Value.Kind != configfile.List:
		for s := range strings.SplitSeq(f.Value.Text, ",") {
			items = append(items, &configfile.Node{Kind: configfile.String, Text: s, Line: f.Value.Line, Column: f.Value.Column})
		}
	}
	out := []string{} // an empty list is not the same as none
	seen := map[string]bool{}
	for _, n := range items {
		name := strings.TrimSpace(scalarText(n))
		if n.Kind == configfile.Map {
			name = strings.TrimSpace(scalarText(n.Get("name")))
		}
		switch {
		case name == "" || utf8.RuneCountInString(name) > 256 || len(name) > 512 || hasUnprintable(name):
			p.addError("skill-name", n, f.Key+": an item is not the name of a skill", "write a name")
		case len(out) >= MaxSkills:
			p.addError("skill-many", n, fmt.Sprintf("%s: there are more than %d", f.Key, MaxSkills), "split the Ghost")
			return out
		case !seen[name]:
			seen[name] = true
			out = append(out, name)
		}
	}
	return out
}

// parseSkillRefs reads which skills are meant by names.
func (p *parser) parseSkillRefs(s *Selection, f configfile.Field) {
	if f.Value.Kind != configfile.Map {
		p.addError("skill-ref", f.Value, fmt.Sprintf("%s is a %s", f.Key, f.Value.Kind), "write a map of skills by name")
		return
	}
	p.checkDuplicateKeys(f.Value)
	fields, _ := f.Value.Unique()
	if len(fields) > MaxSkills {
		p.addError("skill-ref", f.Value, fmt.Sprintf("%s: there are more than %d", f.Key, MaxSkills), "split the Ghost")
		return
	}
	for _, one := range fields {
		name := strings.TrimSpace(one.Key)
		ref, ok := p.parseSkillRef(one)
		if !ok || ref == (SkillRef{}) {
			continue
		}
		if other, there := s.SkillRefs[name]; there && other != ref {
			p.addError("skill-ref", fieldNode(one), f.Key+": "+quote(name)+" is another skill elsewhere in this document", "write it once")
			continue
		}
		if s.SkillRefs == nil {
			s.SkillRefs = map[string]SkillRef{}
		}
		s.SkillRefs[name] = ref
	}
}

// parseSkillRef reads what one name means. Ids and hashes of Wegent are of another system.
func (p *parser) parseSkillRef(f configfile.Field) (SkillRef, bool) {
	var r SkillRef
	if f.Value.Kind != configfile.Map {
		p.addError("skill-ref", f.Value, "what "+quote(f.Key)+" refers to is a "+string(f.Value.Kind), "write skill_id, namespace, is_public or content_hash")
		return r, false
	}
	p.parseFields(f.Value, map[string]func(configfile.Field){
		"skill_id": p.textInto(&r.ID), "id": p.textInto(&r.ID),
		"namespace": p.textInto(&r.Namespace), "content_hash": p.textInto(&r.Digest), "digest": p.textInto(&r.Digest),
		"is_public": func(f configfile.Field) { r.Public = scalarText(f.Value) == "true" },
	})
	if p.doc.APIVersion == WegentAPIVersion && (r.ID != "" || r.Digest != "") {
		p.addWarning("skill-ref-elsewhere", fieldNode(f), quote(f.Key)+": the id and the hash are of another system: the skill is found by its name", "write it again with apiVersion: "+APIVersion)
		r.ID, r.Digest = "", ""
	}
	if r.Namespace == "default" {
		r.Namespace = ""
	}
	switch {
	case r.Namespace != "" && nameProblem(r.Namespace) != "":
		p.addError("skill-ref", f.Value, quote(f.Key)+": the namespace "+nameProblem(r.Namespace), "write the name of a group, or public")
	case len(r.ID) > 64 || hasUnprintable(r.ID):
		p.addError("skill-ref", f.Value, quote(f.Key)+": skill_id is no id", "write the id that the hub shows")
	case r.Digest != "" && !isDigest(r.Digest):
		p.addError("skill-ref", f.Value, quote(f.Key)+": content_hash is no digest", "write sha256: and 64 hexadecimal digits")
	}
	return r, true
}

// parseServers reads the servers of a Ghost, which are kept as they are written.
func (p *parser) parseServers(s *Selection, f configfile.Field) {
	read, ds := upstream.ParseNode(f.Value, upstream.ParseOptions{})
	p.doc.Findings = append(p.doc.Findings, ds...)
	raw, err := canonicalJSON(f.Value.JSON())
	if err != nil {
		p.addError("servers-shape", f.Value, f.Key+" cannot be kept", "write a map of servers by name")
		return
	}
	if len(read.Servers)+len(read.Names) > MaxServers {
		p.addError("servers-many", f.Value, fmt.Sprintf("%s: there are more than %d", f.Key, MaxServers), "split the Ghost")
		return
	}
	s.MCPServers = raw
	configs, names, err := s.parseServers()
	if err != nil && p.doc.Findings.Loads() {
		p.addError("servers-shape", f.Value, f.Key+": "+err.Error(), "write a map of servers by name")
	}
	if len(configs)+len(names) == 0 {
		s.MCPServers = nil
	}
	s.serverNames = names
	p.checkSecrets(f.Value, read.Servers)
}

// parseServers are those that a selection defines, and the names of others.
func (s *Selection) parseServers() ([]*upstream.Config, []string, error) {
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

const secretFix = "keep it as a secret of the hub, and write ${{secrets.NAME}}"

// checkSecrets refuses values that look like secrets where a reference should stand:
// documents are read by more people, and kept longer, than a secret should be.
func (p *parser) checkSecrets(n *configfile.Node, servers []*upstream.Config) {
	for _, c := range servers {
		at := &configfile.Node{Line: c.Line, Column: n.Column}
		say := func(where string) {
			p.addError("document-secret", at, "server "+quote(c.Name)+": "+where+" is a secret in plain text", secretFix)
		}
		for name, value := range sortedPairs(c.Headers) {
			if looksLikeSecret(name, value) {
				say("header " + quote(name))
			}
		}
		for name, value := range sortedPairs(c.Env) {
			if looksLikeSecret(name, value) {
				say("variable " + quote(name))
			}
		}
		if c.OAuth != nil && looksLikeSecret("secret", c.OAuth.Secret) {
			say("the secret of the client")
		}
		for _, u := range c.URLs {
			if hasPlainPassword(u) {
				say("the URL")
			}
		}
		if slices.ContainsFunc(c.Variables(), func(u upstream.VariableUse) bool { return u.Kind == upstream.FromEnv || u.Kind == upstream.FromInput }) {
			p.addWarning("server-variable", at, "server "+quote(c.Name)+": it uses variables of an environment, of which there is none on a hub", secretFix)
		}
		if c.EnvFile != "" {
			p.addError("server-env-file", at, "server "+quote(c.Name)+": envFile is a file of whoever runs the hub", "write env")
		}
	}
}

// looksLikeSecret reports whether a value is one that should not be read by others, by
// what it is called.
func looksLikeSecret(name, value string) bool {
	name = normalizeKey(name)
	return value != "" && !strings.Contains(value, "${") && slices.ContainsFunc(
		[]string{"authorization", "token", "secret", "password", "passwd", "apikey", "accesskey", "privatekey", "cookie", "credential"},
		func(word string) bool { return strings.Contains(name, word) })
}

// hasPlainPassword reports whether a URL has a password, or a parameter called like one.
func hasPlainPassword(s string) bool {
	u, err := url.Parse(s)
	if err != nil {
		return strings.Contains(s, "@") && !strings.Contains(s, "${")
	}
	if password, ok := u.User.Password(); ok && looksLikeSecret("password", password) {
		return true
	}
	for name, values := range u.Query() {
		if looksLikeSecret(name, strings.Join(values, "")) {
			return true
		}
	}
	return false
}

func sortedPairs(m map[string]string) func(yield func(string, string) bool) {
	return func(yield func(string, string) bool) {
		for _, k := range sortedKeys(m) {
			if !yield(k, m[k]) {
				return
			}
		}
	}
}

// decodeSpec is a spec as it is kept.
func decodeSpec(kind string, raw json.RawMessage) (Spec, error) {
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
	if have := selectionOf(s); have != nil {
		_, names, err := have.parseServers()
		if err != nil {
			return nil, fmt.Errorf("what is kept of a %s is damaged: %w", kind, err)
		}
		have.serverNames = names
	}
	return s, nil
}

// selectionOf is the selection of a spec, nil where it has none.
func selectionOf(s Spec) *Selection {
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
