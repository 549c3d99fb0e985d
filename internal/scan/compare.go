package scan

import (
	"bytes"
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"
)

// frontmatterRules returns the rules that compare the frontmatter with the
// skill's files.
func frontmatterRules() []Rule {
	return []Rule{
		{ID: "script-unmentioned", Severity: Low, Target: Frontmatter, Message: "no text of the skill mentions this script", Advice: "find out what runs it, or remove it"},
		{ID: "host-unasked", Severity: Info, Target: Frontmatter, languages: anyCode &^ inline, words: []string{"http://", "https://"}, pattern: ignoreCase(`https?://([a-z0-9-]+(\.[a-z0-9-]+)+)`),
			note:    func(s *scanner, m []string, p position) { s.addHost(m[1], p) },
			Message: "a script uses a host that is not in sandbox.network", Advice: "add it there if the script connects to it; otherwise the sandbox blocks it"},
		{ID: "tool-unnamed", Severity: Low, Target: Frontmatter, Message: "contains shell commands, but allowed-tools lists none", Advice: "list the commands in allowed-tools, for example Bash(git:*)"},
		{ID: "tools-all", Severity: Low, Target: Frontmatter, Message: "allowed-tools lets every command run without approval", Advice: "list the commands that it needs, for example Bash(git:*)"},
	}
}

// addHost records a host that occurs in a script.
func (s *scanner) addHost(name string, p position) {
	name = strings.ToLower(name)
	if _, ok := s.hosts[name]; !ok && len(s.hosts) < 256 && !isIdentifierHost(name) {
		s.hosts[name] = p
	}
}

// isIdentifierHost reports whether a host occurs only in identifiers, such as
// XML namespaces, to which programs do not connect.
func isIdentifierHost(host string) bool {
	for _, h := range []string{"example.com", "example.org", "example.net", "localhost", "127.0.0.1", "0.0.0.0", "www.w3.org", "schemas.openxmlformats.org", "schemas.microsoft.com", "json-schema.org", "www.apache.org", "opensource.org", "purl.org", "ns.adobe.com"} {
		if host == h || strings.HasSuffix(host, "."+h) {
			return true
		}
	}
	return strings.HasSuffix(host, ".test") || strings.HasSuffix(host, ".local") || strings.HasSuffix(host, ".invalid")
}

// compareFrontmatter compares the frontmatter with the skill's files.
func (s *scanner) compareFrontmatter() {
	if s.skill == nil {
		return
	}
	s.checkMentions()
	asked := s.requestedHosts()
	for _, h := range slices.Sorted(maps.Keys(s.hosts)) {
		if !slices.ContainsFunc(asked, func(a string) bool { return coversHost(a, h) }) {
			s.addFinding("host-unasked", s.hosts[h])
		}
	}
	s.checkTools()
}

// Limits on the search for script names in text files.
const (
	maxScripts    = 500
	maxScriptName = 100
)

// checkMentions reports scripts that no text file mentions. A script is
// mentioned if a text contains its file name. For names of at least four
// characters, the name without its extension is sufficient.
func (s *scanner) checkMentions() {
	var files, names []string
	for _, f := range slices.Sorted(maps.Keys(s.scripts)) {
		base := path.Base(f)
		stem := strings.ToLower(strings.TrimSuffix(base, path.Ext(base)))
		if len(stem) < 2 || len(stem) > maxScriptName || base == "__init__.py" || strings.Contains(f, "test") {
			continue
		}
		if len(stem) < 4 {
			stem = strings.ToLower(base)
		}
		if len(files) == maxScripts {
			s.report.Truncated = true
			break
		}
		files, names = append(files, f), append(names, stem)
	}
	if len(files) == 0 {
		return
	}
	w, named := newWordMatcher(names), make([]bool, len(names))
	for _, text := range s.mentions {
		w.findAll(text, func(n uint16, _ int) { named[n] = true })
	}
	for i, f := range files {
		if !named[i] {
			s.addFinding("script-unmentioned", position{file: f})
		}
	}
}

// requestedHosts returns the hosts listed in sandbox.network, either at the top
// level or under metadata.
func (s *scanner) requestedHosts() []string {
	raw, err := s.skill.FrontmatterJSON()
	if err != nil {
		return nil
	}
	type sandbox struct {
		Network json.RawMessage `json:"network"`
	}
	var top struct {
		Sandbox  json.RawMessage `json:"sandbox"`
		Metadata json.RawMessage `json:"metadata"`
	}
	var below struct {
		Sandbox json.RawMessage `json:"sandbox"`
	}
	_ = json.Unmarshal(raw, &top) // other JSON types request no hosts
	_ = json.Unmarshal(top.Metadata, &below)
	var out []string
	for _, part := range []json.RawMessage{top.Sandbox, below.Sandbox} {
		var box sandbox
		var list []string
		var text string
		_ = json.Unmarshal(part, &box)
		if json.Unmarshal(box.Network, &text) == nil {
			list = strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' })
		} else {
			_ = json.Unmarshal(box.Network, &list)
		}
		out = append(out, list...)
	}
	return out
}

// coversHost reports whether a requested host, such as *.example.com:443,
// includes host.
func coversHost(asked, host string) bool {
	asked, _, _ = strings.Cut(strings.ToLower(asked), ":")
	if suffix, ok := strings.CutPrefix(asked, "*"); ok {
		return strings.HasSuffix(host, suffix)
	}
	return asked == host
}

// fieldPosition returns the position of a frontmatter field, at the top level
// or nested.
func (s *scanner) fieldPosition(key, excerpt string) position {
	p := position{file: s.manifestPath, line: 1, column: 1, excerpt: excerpt}
	front := s.skill.Frontmatter
	at := keyOffset(front, key)
	if start := bytes.Index(s.manifest, front); start >= 0 && at >= 0 {
		found := newSource(s.manifestPath, s.manifest).position(start+at, start+at)
		p.line, p.column = found.line, found.column
	}
	return p
}

// checkTools compares allowed-tools with the commands in the instructions.
func (s *scanner) checkTools() {
	if len(s.skill.AllowedTools) == 0 {
		return
	}
	shells := false
	for _, t := range s.skill.AllowedTools {
		name, arguments, bounded := strings.Cut(strings.ToLower(t), "(")
		if t == "*" || (name == "bash" || name == "shell") && (!bounded || strings.Trim(arguments, "*:) ") == "") {
			s.addFinding("tools-all", s.fieldPosition("allowed-tools", "allowed-tools: "+t))
		}
		shells = shells || t == "*" || strings.Contains(name, "bash") || strings.Contains(name, "shell") || strings.Contains(name, "terminal") || strings.Contains(name, "execute") || strings.Contains(name, "run")
	}
	if !shells && s.shell != nil {
		s.addFinding("tool-unnamed", *s.shell)
	}
}
