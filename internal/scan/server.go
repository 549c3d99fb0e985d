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

// serverRules returns the rules about MCP servers that a skill configures. The
// rules about shell commands also apply to these servers' commands.
func serverRules() []Rule {
	return []Rule{
		{ID: "server-command", Severity: High, Target: Server, Message: "the command of an MCP server is not a server: it sends, requests, deletes or changes something and exits",
			Advice: "find out what the command is for before you approve the skill"},
		{ID: "server-inline", Severity: High, Target: Server, Message: "an MCP server is inline code that receives a secret",
			Advice: "give it no secret; legitimate servers are files or packages"},
		{ID: "server-decoding", Severity: High, Target: Server, Message: "an MCP server is inline code that decodes data", Advice: "decode it yourself and read it"},
	}
}

// server holds the part of an MCP server's configuration that is scanned.
type server struct {
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
}

const maxServerFile = 1 << 20

// scanServerFile scans the MCP servers in a configuration file or in the
// frontmatter.
func (s *scanner) scanServerFile(t *source) {
	name, data := t.name, t.data
	switch {
	case name == s.manifestPath && s.skill != nil:
		if len(s.skill.MCPServers.Configs) > 0 {
			s.scanServers(t, s.skill.MCPServers.Configs)
		}
	case strings.ToLower(path.Ext(name)) == ".json" && len(data) <= maxServerFile && (bytes.Contains(data, []byte(`"mcpServers"`)) || bytes.Contains(data, []byte(`"servers"`))):
		var file struct {
			MCPServers json.RawMessage `json:"mcpServers"`
			Servers    json.RawMessage `json:"servers"`
		}
		if json.Unmarshal(data, &file) == nil {
			s.scanServers(t, file.MCPServers)
			s.scanServers(t, file.Servers)
		}
	}
}

func (s *scanner) scanServers(t *source, raw json.RawMessage) {
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
		s.scanServer(t.position(at, at), v)
	}
}

var (
	shellPrograms  = lazyregexp.New(`^(ba|z|da|k)?sh$|^cmd(\.exe)?$|^powershell$|^pwsh$`)
	scriptPrograms = lazyregexp.New(`^(python[\d.]*|node|deno|bun|ruby|perl|php)$`)
	oneTimeCommand = lazyregexp.New(`(?i)^\s*(sudo\s+)?(curl|wget|dig|nslookup|host|nc|ncat|netcat|rm|chmod|chown|dd|mkfs|echo|printf|crontab|scp|ftp|telnet|shred|kill|useradd)\s`)
	decodingCall   = lazyregexp.New(`(?i)b64decode|fromhex|unhexlify|atob\(|Buffer\.from\(|frombase64|base64\s+(-d|--decode)`)
	secretVariable = lazyregexp.New(`^` + secretName + `$`)
	inputCall      = lazyregexp.New(`(?i)environ|process\.env|getenv|requests\.|urllib|https?\b|fetch\(|socket`)
)

// scanServer applies the rules to a server's command.
func (s *scanner) scanServer(p position, v server) {
	program := strings.ToLower(path.Base(v.Command))
	line := strings.Join(append([]string{v.Command}, v.Args...), " ")
	script, inlined := line, false
	for i, a := range v.Args {
		if i+1 < len(v.Args) && (shellPrograms.MatchString(program) && (a == "-c" || a == "/c" || a == "-Command") || scriptPrograms.MatchString(program) && (a == "-c" || a == "-e" || a == "--eval")) {
			script, inlined = v.Args[i+1], true
			break
		}
	}
	p.excerpt = line
	switch {
	case oneTimeCommand.MatchString(script + " "):
		s.addFinding("server-command", p)
	case inlined && scriptPrograms.MatchString(program) && inputCall.MatchString(script) && slices.ContainsFunc(slices.Collect(maps.Keys(v.Env)), secretVariable.MatchString):
		s.addFinding("server-inline", p)
	case inlined && decodingCall.MatchString(script):
		s.addFinding("server-decoding", p)
	}
	s.scanCommand(p, script)
}

// scanCommand scans a command whose text does not occur literally in a file.
// Findings are reported at p.
func (s *scanner) scanCommand(p position, text string) {
	data := []byte(text)
	b := &block{end: len(data), language: config}
	s.at = &p
	s.scanBlock(context.Background(), newSource(p.file, data), b, s.findWords(data))
	s.at = nil
}
