package scan

import (
	"bytes"
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"
)

// frontmatterRules compare what a skill says of itself with what it holds.
func frontmatterRules() []Rule {
	return []Rule{
		{ID: "script-unmentioned", Severity: Low, Looks: Frontmatter, Message: "no text of the skill names this script", Advice: "find out what runs it, or leave it out"},
		{ID: "host-unasked", Severity: Info, Looks: Frontmatter, languages: anyCode &^ inline, words: []string{"http://", "https://"}, pattern: re(`https?://([a-z0-9-]+(\.[a-z0-9-]+)+)`),
			note:    func(s *scanner, m []string, p place) { s.host(m[1], p) },
			Message: "a script names a host that sandbox.network does not ask for", Advice: "ask for it there if the script speaks to it; without, the sandbox refuses"},
		{ID: "tool-unnamed", Severity: Low, Looks: Frontmatter, Message: "it gives commands for a shell, and allowed-tools names none", Advice: "name the commands in allowed-tools, as Bash(git:*)"},
		{ID: "tools-all", Severity: Low, Looks: Frontmatter, Message: "allowed-tools lets every command run without being asked", Advice: "name the commands that it needs, as Bash(git:*)"},
	}
}

// host remembers a host that a script names.
func (s *scanner) host(name string, p place) {
	name = strings.ToLower(name)
	if _, ok := s.hosts[name]; !ok && len(s.hosts) < 256 && !passive(name) {
		s.hosts[name] = p
	}
}

// passive reports whether a host is one that files name and do not speak to.
func passive(host string) bool {
	for _, h := range []string{"example.com", "example.org", "example.net", "localhost", "127.0.0.1", "0.0.0.0", "www.w3.org", "schemas.openxmlformats.org", "schemas.microsoft.com", "json-schema.org", "www.apache.org", "opensource.org", "purl.org", "ns.adobe.com"} {
		if host == h || strings.HasSuffix(host, "."+h) {
			return true
		}
	}
	return strings.HasSuffix(host, ".test") || strings.HasSuffix(host, ".local") || strings.HasSuffix(host, ".invalid")
}

// compare holds the frontmatter to what was seen.
func (s *scanner) compare() {
	if s.skill == nil {
		return
	}
	s.unmentioned()
	asked := s.asked()
	for _, h := range slices.Sorted(maps.Keys(s.hosts)) {
		if !slices.ContainsFunc(asked, func(a string) bool { return covers(a, h) }) {
			s.add("host-unasked", s.hosts[h])
		}
	}
	s.tools()
}

// Bounds on the scripts that are looked for in the texts.
const (
	maxScripts    = 500
	maxScriptName = 100
)

// unmentioned reports scripts that no text names, by their names or, as modules
// are, without the extension.
func (s *scanner) unmentioned() {
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
	w, named := newWords(names), make([]bool, len(names))
	for _, text := range s.mentions {
		w.each(text, func(n uint16, _ int) { named[n] = true })
	}
	for i, f := range files {
		if !named[i] {
			s.add("script-unmentioned", place{file: f})
		}
	}
}

// asked are the hosts of sandbox.network, at the top level or under metadata.
func (s *scanner) asked() []string {
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
	_ = json.Unmarshal(raw, &top) // what has another form asks for nothing
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

// covers reports whether a host that is asked for, as *.example.com:443, is this one.
func covers(asked, host string) bool {
	asked, _, _ = strings.Cut(strings.ToLower(asked), ":")
	if suffix, ok := strings.CutPrefix(asked, "*"); ok {
		return strings.HasSuffix(host, suffix)
	}
	return asked == host
}

// field is the place of a field of the frontmatter, at the top level or below.
func (s *scanner) field(key, excerpt string) place {
	p := place{file: s.main, line: 1, column: 1, excerpt: excerpt}
	front := s.skill.Frontmatter
	at := keyed(front, key)
	if start := bytes.Index(s.head, front); start >= 0 && at >= 0 {
		found := newSource(s.main, s.head).place(start+at, start+at)
		p.line, p.column = found.line, found.column
	}
	return p
}

// tools compares allowed-tools with the commands of the instructions.
func (s *scanner) tools() {
	if len(s.skill.AllowedTools) == 0 {
		return
	}
	shells := false
	for _, t := range s.skill.AllowedTools {
		name, arguments, bounded := strings.Cut(strings.ToLower(t), "(")
		if t == "*" || (name == "bash" || name == "shell") && (!bounded || strings.Trim(arguments, "*:) ") == "") {
			s.add("tools-all", s.field("allowed-tools", "allowed-tools: "+t))
		}
		shells = shells || t == "*" || strings.Contains(name, "bash") || strings.Contains(name, "shell") || strings.Contains(name, "terminal") || strings.Contains(name, "execute") || strings.Contains(name, "run")
	}
	if !shells && s.shell != nil {
		s.add("tool-unnamed", *s.shell)
	}
}
