package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/skill"
)

// serversFileName is the name of the user's servers file, beside the user's
// configuration.
const serversFileName = "servers.yaml"

const maxServersFile = 1 << 20

const serversHeader = "# Your MCP servers for Loadout. To set a value ${{secrets.NAME}}: loadout secret set NAME\n"

// serversFile returns the path of the servers file, or "" if there is no
// directory for it.
func (a *app) serversFile() string {
	f := config.UserFile(a.configInput())
	if f == "" {
		return ""
	}
	return filepath.Join(filepath.Dir(f), serversFileName)
}

// serversDocument is the servers file as it was read.
type serversDocument struct {
	path   string
	data   []byte
	doc    yaml.Node
	byName map[string]*upstream.Config
}

func readServersDocument(path string) (*serversDocument, error) {
	s := &serversDocument{path: path}
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return s, s.parse(data)
}

func (s *serversDocument) parse(data []byte) error {
	s.data, s.byName = data, map[string]*upstream.Config{}
	broken := func(why string) error {
		return fail(exitFailure, "fix the file, or move it away, and try again", "%s: %s", s.path, why)
	}
	if len(data) > maxServersFile {
		return broken("file too large")
	}
	if len(bytes.TrimSpace(data)) == 0 {
		data = []byte(serversHeader + "mcpServers: {}\n")
	}
	if err := yaml.Load(data, &s.doc); err != nil {
		return broken("invalid YAML")
	}
	if m := s.serversNode(); m == nil {
		return broken("mcpServers is not a map of servers by name")
	}
	file, _ := upstream.Parse(data, upstream.ParseOptions{Name: s.path})
	for _, c := range file.Servers {
		s.byName[c.Name] = c
	}
	return nil
}

// serversNode returns the mcpServers map of the document, or nil if there is
// none.
func (s *serversDocument) serversNode() *yaml.Node {
	if len(s.doc.Content) == 0 || s.doc.Content[0].Kind != yaml.MappingNode {
		return nil
	}
	top := s.doc.Content[0]
	for i := 0; i+1 < len(top.Content); i += 2 {
		if top.Content[i].Value != "mcpServers" {
			continue
		}
		v := top.Content[i+1]
		if v.Kind == yaml.ScalarNode && v.Tag == "!!null" {
			*v = yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		}
		if v.Kind == yaml.MappingNode {
			return v
		}
	}
	return nil
}

// add appends a server.
func (s *serversDocument) add(c *upstream.Config) {
	m := s.serversNode()
	m.Style = 0 // block style instead of one line
	m.Content = append(m.Content, textNode(c.Name), encodeServer(c))
	s.byName[c.Name] = c
}

// remove removes a server.
func (s *serversDocument) remove(name string) {
	m := s.serversNode()
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == name {
			m.Content = slices.Delete(m.Content, i, i+2)
			break
		}
	}
	delete(s.byName, name)
}

// encode returns the new content of the file. It fails if a server would not
// read back as the same server.
func (s *serversDocument) encode() ([]byte, error) {
	data, err := yaml.Dump(&s.doc, yaml.WithIndent(2), yaml.WithLineWidth(-1))
	if err != nil {
		return nil, err
	}
	file, _ := upstream.Parse(data, upstream.ParseOptions{Name: s.path})
	back := map[string]string{}
	for _, c := range file.Servers {
		back[c.Name] = c.Digest()
	}
	for name, c := range s.byName {
		if back[name] != c.Digest() {
			return nil, fmt.Errorf("server %q cannot be written to %s without changes", name, s.path)
		}
	}
	return data, nil
}

// write replaces the file, unless it changed since it was read.
func (s *serversDocument) write(data []byte) error {
	now, err := os.ReadFile(s.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if !bytes.Equal(now, s.data) {
		return fmt.Errorf("%s changed in the meantime", s.path)
	}
	dir := filepath.Dir(s.path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	target := s.path
	if real, err := filepath.EvalSymlinks(s.path); err == nil {
		target = real // keep a symlink of the user
	}
	return replaceFile(target, data, 0o600)
}

// replaceFile atomically replaces or creates a file.
func replaceFile(path string, data []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".loadout-*.tmp") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails after the rename, which is fine
	_, err = f.Write(data)
	if err := errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

func textNode(s string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(s)
	return n
}

// encodeServer returns a server as YAML.
func encodeServer(c *upstream.Config) *yaml.Node {
	m := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	add := func(key string, v *yaml.Node) { m.Content = append(m.Content, textNode(key), v) }
	text := func(key, s string) {
		if s != "" {
			add(key, textNode(s))
		}
	}
	list := func(key string, l []string) {
		if len(l) == 0 {
			return
		}
		n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Style: yaml.FlowStyle}
		for _, s := range l {
			n.Content = append(n.Content, textNode(s))
		}
		add(key, n)
	}
	texts := func(key string, t map[string]string) {
		if len(t) == 0 {
			return
		}
		n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		for _, k := range slices.Sorted(maps.Keys(t)) {
			n.Content = append(n.Content, textNode(k), textNode(t[k]))
		}
		add(key, n)
	}
	yes := func(key string, set bool) {
		if set {
			add(key, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: "true"})
		}
	}
	if c.Type != upstream.Stdio {
		text("type", c.Type)
	}
	text("command", c.Command)
	list("args", c.Args)
	texts("env", c.Env)
	text("envFile", c.EnvFile)
	text("cwd", c.Dir)
	if len(c.URLs) == 1 {
		text("url", c.URLs[0])
	} else {
		list("urls", c.URLs)
	}
	texts("headers", c.Headers)
	if c.OAuth != nil {
		add("oauth", encodeOAuth(c.OAuth))
	}
	list("includeTools", c.Include)
	list("excludeTools", c.Exclude)
	list("tools", c.Tools)
	yes("disabled", c.Disabled)
	if c.ConnectTimeout > 0 {
		text("connectTimeout", c.ConnectTimeout.String())
	}
	if c.CallTimeout > 0 {
		text("timeout", c.CallTimeout.String())
	}
	if c.Concurrency > 0 {
		add("concurrency", &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: fmt.Sprint(c.Concurrency)})
	}
	text("safety", c.Safety)
	yes("ask", c.RequireApproval)
	yes("stateful", c.Stateful)
	if c.AtStart {
		text("connect", "at-start")
	}
	if c.Strict {
		text("pin", "strict")
	}
	return m
}

// encodeOAuth returns the user's own OAuth client as YAML. An empty map means
// that the server needs a sign-in.
func encodeOAuth(o *upstream.OAuthClient) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	for _, f := range [][2]string{{"clientId", o.ID}, {"clientSecret", o.Secret}, {"scopes", strings.Join(o.Scopes, ",")}, {"redirectUri", o.Redirect}, {"issuer", o.Issuer}} {
		if f[1] != "" {
			n.Content = append(n.Content, textNode(f[0]), textNode(f[1]))
		}
	}
	return n
}

// parseClientServer parses one server of a client, so that the findings are
// about this server.
func parseClientServer(client, name string, value, inputs any) (*upstream.Config, []upstream.Input, []skill.Diagnostic) {
	doc := map[string]any{"mcpServers": map[string]any{name: value}}
	if inputs != nil {
		doc["inputs"] = inputs
	}
	data, err := json.Marshal(doc)
	if err != nil {
		return nil, nil, []skill.Diagnostic{{Severity: skill.Error, Message: "contains a value that is not a string, number or list"}}
	}
	file := map[string]string{"gemini": ".gemini/settings.json", "claude-code": ".claude.json", "claude-desktop": "claude_desktop_config.json"}[client]
	if file == "" {
		file = "mcp.json"
	}
	f, findings := upstream.Parse(data, upstream.ParseOptions{Name: file})
	if len(f.Servers) != 1 || f.Servers[0].Name != name {
		return nil, nil, findings
	}
	c := *f.Servers[0]
	c.File, c.Line = "", 0
	return &c, f.Inputs, findings
}

// mayNeedLogin reports whether a remote server has no credentials in its
// configuration, or has an OAuth client. The sign-in of the client is not
// imported.
func mayNeedLogin(c *upstream.Config) bool {
	return len(c.URLs) > 0 && !slices.ContainsFunc(slices.Collect(maps.Keys(c.Headers)), secretKey().MatchString) &&
		(c.OAuth != nil || !slices.ContainsFunc(c.URLs, func(u string) bool {
			return strings.Contains(u, "@") || strings.Contains(u, "${") || strings.HasPrefix(u, "http://127.") || strings.HasPrefix(u, "http://localhost")
		}))
}
