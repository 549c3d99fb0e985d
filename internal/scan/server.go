package scan

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
)

// serverRules returns the rules about MCP servers of a skill. The rules about
// commands apply to their commands too.
func serverRules() []Rule {
	return []Rule{
		{ID: "server-command", Severity: High, Target: Server, Message: "the command of an MCP server is not a server: it sends, looks up, deletes or changes something once",
			Advice: "find out what the command is for before you approve the skill"},
		{ID: "server-inline", Severity: High, Target: Server, Message: "an MCP server is a line of code that receives a secret",
			Advice: "give it no secret; a legitimate server is a file or package"},
		{ID: "server-decoding", Severity: High, Target: Server, Message: "an MCP server is a line of code that decodes something", Advice: "decode it yourself and read it"},
	}
}

// server is an MCP server in a configuration.
type server struct {
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
}

const maxServerFile = 1 << 20

// serversIn scans the servers in a configuration file or in the frontmatter.
func (s *scanner) serversIn(t *source) {
	name, data := t.name, t.data
	switch {
	case name == s.main && s.skill != nil:
		if len(s.skill.MCPServers.Configs) > 0 {
			s.servers(t, s.skill.MCPServers.Configs)
		}
	case strings.ToLower(path.Ext(name)) == ".json" && len(data) <= maxServerFile && (bytes.Contains(data, []byte(`"mcpServers"`)) || bytes.Contains(data, []byte(`"servers"`))):
		var file struct {
			MCPServers json.RawMessage `json:"mcpServers"`
			Servers    json.RawMessage `json:"servers"`
		}
		if json.Unmarshal(data, &file) == nil {
			s.servers(t, file.MCPServers)
			s.servers(t, file.Servers)
		}
	}
}

func (s *scanner) servers(t *source, raw json.RawMessage) {
	var all map[string]json.RawMessage
	if len(raw) == 0 || json.Unmarshal(raw, &all) != nil || len(all) > 256 {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		var v server
		if json.Unmarshal(all[key], &v) != nil || v.Command == "" {
			continue
		}
		at := max(0, keyOffset(t.data, key))
		s.server(t.position(at, at), v)
	}
}

var (
	interpreters = lazyregexp.New(`^(ba|z|da|k)?sh$|^cmd(\.exe)?$|^powershell$|^pwsh$`)
	programFlags = lazyregexp.New(`^(python[\d.]*|node|deno|bun|ruby|perl|php)$`)
	onceOnly     = lazyregexp.New(`(?i)^\s*(sudo\s+)?(curl|wget|dig|nslookup|host|nc|ncat|netcat|rm|chmod|chown|dd|mkfs|echo|printf|crontab|scp|ftp|telnet|shred|kill|useradd)\s`)
	decoding     = lazyregexp.New(`(?i)b64decode|fromhex|unhexlify|atob\(|Buffer\.from\(|frombase64|base64\s+(-d|--decode)`)
	secretNamed  = lazyregexp.New(`^` + secretName + `$`)
	reading      = lazyregexp.New(`(?i)environ|process\.env|getenv|requests\.|urllib|https?\b|fetch\(|socket`)
)

// server scans the command of one server.
func (s *scanner) server(p place, v server) {
	program := strings.ToLower(path.Base(v.Command))
	line := strings.Join(append([]string{v.Command}, v.Args...), " ")
	script, inlined := line, false
	for i, a := range v.Args {
		if i+1 < len(v.Args) && (interpreters().MatchString(program) && (a == "-c" || a == "/c" || a == "-Command") || programFlags().MatchString(program) && (a == "-c" || a == "-e" || a == "--eval")) {
			script, inlined = v.Args[i+1], true
			break
		}
	}
	p.excerpt = line
	switch {
	case onceOnly().MatchString(script + " "):
		s.add("server-command", p)
	case inlined && programFlags().MatchString(program) && reading().MatchString(script) && slices.ContainsFunc(slices.Collect(maps.Keys(v.Env)), secretNamed().MatchString):
		s.add("server-inline", p)
	case inlined && decoding().MatchString(script):
		s.add("server-decoding", p)
	}
	s.command(p, script)
}

// command scans a command that is not literally in a file. Findings are reported at p.
func (s *scanner) command(p place, text string) {
	data := []byte(text)
	b := &block{end: len(data), language: config}
	s.at = &p
	s.block(context.Background(), newSource(p.file, data), b, s.hits(data))
	s.at = nil
}
