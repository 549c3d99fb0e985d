package agents

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/internal/configfile"
	"github.com/loadout-dev/loadout/internal/plainjson"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/skill"
)

// selectionFields returns the parsers for the fields of s, by key.
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

// checkSelection reports an error for each skill name that occurs in another
// field of s but not in s.Skills.
func (p *parser) checkSelection(n *configfile.Node, s *Selection) {
	nodeOf := func(keys ...string) *configfile.Node {
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
			p.addError("preload-unknown", nodeOf("preload_skills", "preloadSkills", "preload"), "preloaded skill "+quote(name)+" is not in skills", "add it to skills")
		}
	}
	for _, name := range sortedKeys(s.SkillRefs) {
		if !have[name] {
			p.addError("skill-ref", nodeOf("skill_refs", "skillRefs", "preload_skill_refs"), "skill_refs: "+quote(name)+" is not in skills", "add it to skills")
		}
	}
}

// parseNames parses skill names: a list of strings, a list of maps with a name, or
// a comma-separated string.
func (p *parser) parseNames(f configfile.Field) []string {
	items := f.Value.Items
	switch {
	case f.Value.Kind == configfile.Map:
		p.addError("document-value", f.Value, f.Key+" is a map, want a list", "use a list of names")
	case f.Value.Kind != configfile.List:
		for s := range strings.SplitSeq(f.Value.Text, ",") {
			items = append(items, &configfile.Node{Kind: configfile.String, Text: s, Line: f.Value.Line, Column: f.Value.Column})
		}
	}
	out := []string{} // an empty list selects no skills; nil would select all
	seen := map[string]bool{}
	for _, n := range items {
		name := strings.TrimSpace(scalarText(n))
		if n.Kind == configfile.Map {
			name = strings.TrimSpace(scalarText(n.Get("name")))
		}
		switch {
		case name == "" || utf8.RuneCountInString(name) > 256 || len(name) > 512 || hasUnprintable(name):
			p.addError("skill-name", n, f.Key+": invalid skill name", "use the name of a skill")
		case len(out) >= MaxSkills:
			p.addError("skill-many", n, fmt.Sprintf("%s: too many skills (limit %d)", f.Key, MaxSkills), "split the Ghost")
			return out
		case !seen[name]:
			seen[name] = true
			out = append(out, name)
		}
	}
	return out
}

// parseSkillRefs parses a map from skill names to references.
func (p *parser) parseSkillRefs(s *Selection, f configfile.Field) {
	if f.Value.Kind != configfile.Map {
		p.addError("skill-ref", f.Value, fmt.Sprintf("%s is a %s, want a map", f.Key, f.Value.Kind), "use a map of skills by name")
		return
	}
	p.checkDuplicateKeys(f.Value)
	fields, _ := f.Value.UniqueFields()
	if len(fields) > MaxSkills {
		p.addError("skill-ref", f.Value, fmt.Sprintf("%s: too many skills (limit %d)", f.Key, MaxSkills), "split the Ghost")
		return
	}
	for _, one := range fields {
		name := strings.TrimSpace(one.Key)
		ref, ok := p.parseSkillRef(one)
		if !ok || ref == (SkillRef{}) {
			continue
		}
		if other, there := s.SkillRefs[name]; there && other != ref {
			p.addError("skill-ref", fieldNode(one), f.Key+": "+quote(name)+" conflicts with another reference in this document", "keep one reference")
			continue
		}
		if s.SkillRefs == nil {
			s.SkillRefs = map[string]SkillRef{}
		}
		s.SkillRefs[name] = ref
	}
}

// parseSkillRef parses a skill reference. It ignores IDs and hashes in Wegent
// documents, because they belong to another system.
func (p *parser) parseSkillRef(f configfile.Field) (SkillRef, bool) {
	var r SkillRef
	if f.Value.Kind != configfile.Map {
		p.addError("skill-ref", f.Value, quote(f.Key)+" is a "+string(f.Value.Kind)+", want a map", "use skill_id, namespace, is_public or content_hash")
		return r, false
	}
	p.parseFields(f.Value, map[string]func(configfile.Field){
		"skill_id": p.setText(&r.ID), "id": p.setText(&r.ID),
		"namespace": p.setText(&r.Namespace), "content_hash": p.setText(&r.Digest), "digest": p.setText(&r.Digest),
		"is_public": func(f configfile.Field) { r.Public = scalarText(f.Value) == "true" },
	})
	if p.doc.APIVersion == WegentAPIVersion && (r.ID != "" || r.Digest != "") {
		p.addWarning("skill-ref-elsewhere", fieldNode(f), quote(f.Key)+": ID and hash of another system are ignored; the skill is resolved by name", "change apiVersion to "+APIVersion+" and update the reference")
		r.ID, r.Digest = "", ""
	}
	if r.Namespace == "default" {
		r.Namespace = ""
	}
	switch {
	case r.Namespace != "" && nameProblem(r.Namespace) != "":
		p.addError("skill-ref", f.Value, quote(f.Key)+": the namespace "+nameProblem(r.Namespace), "use the name of a group, or public")
	case len(r.ID) > 64 || hasUnprintable(r.ID):
		p.addError("skill-ref", f.Value, quote(f.Key)+": invalid skill_id", "use the ID shown by the hub")
	case r.Digest != "" && policy.Digest(r.Digest).Check() != nil:
		p.addError("skill-ref", f.Value, quote(f.Key)+": invalid content_hash", "use sha256: and 64 hexadecimal digits")
	}
	return r, true
}

// parseServers checks the servers of a Ghost or Bot and stores them in s as
// written.
func (p *parser) parseServers(s *Selection, f configfile.Field) {
	read, ds := upstream.ParseNode(f.Value, upstream.ParseOptions{})
	p.doc.Findings = append(p.doc.Findings, ds...)
	raw, err := plainjson.Canonical(f.Value.JSON())
	if err != nil {
		p.addError("servers-shape", f.Value, "invalid "+f.Key, "use a map of servers by name")
		return
	}
	if len(read.Servers)+len(read.Names) > MaxServers {
		p.addError("servers-many", f.Value, fmt.Sprintf("%s: too many servers (limit %d)", f.Key, MaxServers), "split the Ghost")
		return
	}
	s.MCPServers = raw
	configs, names, err := s.parseServers()
	if err != nil && p.doc.Findings.Loads() {
		p.addError("servers-shape", f.Value, f.Key+": "+err.Error(), "use a map of servers by name")
	}
	if len(configs)+len(names) == 0 {
		s.MCPServers = nil
	}
	s.serverNames = names
	p.checkSecrets(f.Value, read.Servers)
}

// parseServers returns the servers that a selection defines, and the names of
// servers defined elsewhere.
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

const secretFix = "store it as a secret of the hub and use ${{secrets.NAME}}"

// checkSecrets reports an error for each plaintext value that looks like a
// secret, because documents are visible to more users, and stored longer, than
// secrets should be.
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
			say("the client secret")
		}
		for _, u := range c.URLs {
			if hasPlainPassword(u) {
				say("the URL")
			}
		}
		if slices.ContainsFunc(c.Variables(), func(u upstream.VariableUse) bool { return u.Kind == upstream.FromEnv || u.Kind == upstream.FromInput }) {
			p.addWarning("server-variable", at, "server "+quote(c.Name)+": environment variables are not available on a hub", secretFix)
		}
		if c.EnvFile != "" {
			p.addError("server-env-file", at, "server "+quote(c.Name)+": envFile is not supported on a hub", "use env")
		}
	}
}

// looksLikeSecret reports whether a name suggests that its value is secret.
func looksLikeSecret(name, value string) bool {
	name = normalizeKey(name)
	return value != "" && !strings.Contains(value, "${") && slices.ContainsFunc(
		[]string{"authorization", "token", "secret", "password", "passwd", "apikey", "accesskey", "privatekey", "cookie", "credential"},
		func(word string) bool { return strings.Contains(name, word) })
}

// hasPlainPassword reports whether a URL contains a password or a parameter whose
// name suggests a secret.
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

// decodeSpec decodes a stored spec.
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
		return nil, fmt.Errorf("unknown kind %q", kind)
	}
	if err := json.Unmarshal(raw, s); err != nil {
		return nil, fmt.Errorf("decode spec of %s: %w", kind, err)
	}
	if have := findSelection(s); have != nil {
		_, names, err := have.parseServers()
		if err != nil {
			return nil, fmt.Errorf("decode spec of %s: %w", kind, err)
		}
		have.serverNames = names
	}
	return s, nil
}

// findSelection returns the selection in a spec, or nil if it has none.
func findSelection(s Spec) *Selection {
	switch s := s.(type) {
	case *Ghost:
		return &s.Selection
	case *Bot:
		return &s.Selection
	}
	return nil
}
