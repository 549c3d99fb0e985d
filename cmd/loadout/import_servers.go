package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/skill"
	"github.com/loadout-dev/loadout/upstream"
)

// serversName is the file with the person's own servers, beside the person's
// configuration.
const serversName = "servers.yaml"

const maxServersFile = 1 << 20

const serversHead = "# MCP servers of yours, for Loadout. A value ${{secrets.NAME}} is kept by: loadout secret set NAME\n"

// serversFile is the path of that file, "" where there is no place for it.
func (a *app) serversFile() string {
	f := config.UserFile(a.configInput())
	if f == "" {
		return ""
	}
	return filepath.Join(filepath.Dir(f), serversName)
}

// ownServers is the file as it was read.
type ownServers struct {
	path string
	data []byte
	doc  yaml.Node
	have map[string]*upstream.Config
}

func readOwnServers(path string) (*ownServers, error) {
	s := &ownServers{path: path}
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return s, s.parse(data)
}

func (s *ownServers) parse(data []byte) error {
	s.data, s.have = data, map[string]*upstream.Config{}
	broken := func(why string) error {
		return fail(exitFound, "mend the file, or move it away, and try again", "%s: %s", s.path, why)
	}
	if len(data) > maxServersFile {
		return broken("it is too large")
	}
	if len(bytes.TrimSpace(data)) == 0 {
		data = []byte(serversHead + "mcpServers: {}\n")
	}
	if err := yaml.Load(data, &s.doc); err != nil {
		return broken("it is not valid YAML")
	}
	if m := s.servers(); m == nil {
		return broken("it has no mcpServers: with servers by name")
	}
	file, _ := upstream.Parse(data, upstream.ParseOptions{Name: s.path})
	for _, c := range file.Servers {
		s.have[c.Name] = c
	}
	return nil
}

// servers is the map in the document, nil where it has none.
func (s *ownServers) servers() *yaml.Node {
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

// add puts a server at the end.
func (s *ownServers) add(c *upstream.Config) {
	m := s.servers()
	m.Style = 0 // not on one line
	m.Content = append(m.Content, textNode(c.Name), serverNode(c))
	s.have[c.Name] = c
}

// remove takes a server out.
func (s *ownServers) remove(name string) {
	m := s.servers()
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == name {
			m.Content = slices.Delete(m.Content, i, i+2)
			break
		}
	}
	delete(s.have, name)
}

// text is the file as it is to be, which says what was meant, or an error.
func (s *ownServers) text() ([]byte, error) {
	data, err := yaml.Dump(&s.doc, yaml.WithIndent(2), yaml.WithLineWidth(-1))
	if err != nil {
		return nil, err
	}
	file, _ := upstream.Parse(data, upstream.ParseOptions{Name: s.path})
	back := map[string]string{}
	for _, c := range file.Servers {
		back[c.Name] = c.Digest()
	}
	for name, c := range s.have {
		if back[name] != c.Digest() {
			return nil, fmt.Errorf("server %q cannot be written to %s so that it stays the same", name, s.path)
		}
	}
	return data, nil
}

// write puts the file in place, unless another wrote it since.
func (s *ownServers) write(data []byte) error {
	now, err := os.ReadFile(s.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if !bytes.Equal(now, s.data) {
		return fmt.Errorf("%s changed while its change was being looked at", s.path)
	}
	dir := filepath.Dir(s.path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	target := s.path
	if real, err := filepath.EvalSymlinks(s.path); err == nil {
		target = real // a link of the person's stays one
	}
	f, err := os.CreateTemp(filepath.Dir(target), ".loadout-*.tmp") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone by then, if all is well
	_, err = f.Write(data)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), target)
}

func textNode(s string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(s)
	return n
}

// serverNode is a server as it is written.
func serverNode(c *upstream.Config) *yaml.Node {
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
	text("cwd", c.Dir)
	if len(c.URLs) == 1 {
		text("url", c.URLs[0])
	} else {
		list("urls", c.URLs)
	}
	texts("headers", c.Headers)
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
	yes("ask", c.Ask)
	yes("stateful", c.Stateful)
	if c.AtStart {
		text("connect", "at-start")
	}
	if c.Strict {
		text("pin", "strict")
	}
	return m
}

// parseForeign reads the servers of a client, each by itself, so that the
// findings are of one.
func parseForeign(client, name string, value, inputs any) (*upstream.Config, []upstream.Input, []skill.Diagnostic) {
	doc := map[string]any{"mcpServers": map[string]any{name: value}}
	if inputs != nil {
		doc["inputs"] = inputs
	}
	data, err := json.Marshal(doc)
	if err != nil {
		return nil, nil, []skill.Diagnostic{{Severity: skill.Error, Message: "it has a value that is no text, number or list"}}
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

// moved is a value that goes to the secrets.
type moved struct {
	Secret string `json:"secret"`
	Server string `json:"server"`
	Where  string `json:"where"` // as env GITHUB_TOKEN
	value  string // "" where the person has to set it
}

var (
	secretKey   = regexp.MustCompile(`(?i)token|secret|passw|credential|api[-_]?key|apikey|access[-_]?key|private[-_]?key|(^|[-_])(key|pat|auth|pwd|cookie)([-_]|$)|authorization|cookie`)
	secretValue = regexp.MustCompile(`^(gh[pousr]_|github_pat_|glpat-|sk-|sk_|xox[abprs]-|AKIA|AIza|hf_|npm_|eyJ|ntn_|lin_api_|dop_v1_)[A-Za-z0-9._=/+-]{8,}`)
	scheme      = regexp.MustCompile(`(?i)^(bearer|basic|token) +`)
	inputRef    = regexp.MustCompile(`\$\{input:([^}]+)\}`)
	notInName   = regexp.MustCompile(`[^A-Za-z0-9]+`)
)

// moveSecrets takes what looks like a token out of env and headers, and values
// that the client asks a person for, and puts references in their place.
func moveSecrets(c *upstream.Config, inputs []upstream.Input) []moved {
	var out []moved
	c.Env, c.Headers, c.Args, c.URLs = maps.Clone(c.Env), maps.Clone(c.Headers), slices.Clone(c.Args), slices.Clone(c.URLs)
	take := func(m map[string]string, what string) {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			value := m[key]
			head := ""
			if what == "header" {
				head = scheme.FindString(value)
			}
			rest := value[len(head):]
			if rest == "" || strings.Contains(rest, "${") || len(rest) < 4 || !secretKey.MatchString(key) && !secretValue.MatchString(rest) {
				continue
			}
			name := secretFor(c.Name, key)
			m[key] = head + "${{secrets." + name + "}}"
			out = append(out, moved{name, c.Name, what + " " + key, rest})
		}
	}
	take(c.Env, "env")
	take(c.Headers, "header")
	input := func(where, s string) string {
		return inputRef.ReplaceAllStringFunc(s, func(ref string) string {
			id := inputRef.FindStringSubmatch(ref)[1]
			for _, in := range inputs {
				if in.ID == id && !in.Password && in.Default != "" {
					return in.Default
				}
			}
			name := secretFor("", id)
			if !slices.ContainsFunc(out, func(m moved) bool { return m.Secret == name && m.value == "" }) {
				out = append(out, moved{name, c.Name, where, ""})
			}
			return "${{secrets." + name + "}}"
		})
	}
	for key, v := range c.Env {
		c.Env[key] = input("env "+key, v)
	}
	for key, v := range c.Headers {
		c.Headers[key] = input("header "+key, v)
	}
	for i, v := range c.Args {
		c.Args[i] = input("args", v)
	}
	for i, v := range c.URLs {
		c.URLs[i] = input("url", v)
	}
	return out
}

// openTokens reports whether arguments or URLs, which do not move, hold what
// looks like a token.
func openTokens(c *upstream.Config) bool {
	for i, arg := range c.Args {
		key, value, ok := strings.Cut(arg, "=")
		if secretValue.MatchString(arg) || ok && strings.HasPrefix(key, "-") && secretKey.MatchString(strings.TrimLeft(key, "-")) && !strings.Contains(value, "${") {
			return true
		}
		if i > 0 && strings.HasPrefix(c.Args[i-1], "-") && !ok && !strings.HasPrefix(arg, "-") && !strings.Contains(arg, "${") && secretKey.MatchString(strings.TrimLeft(c.Args[i-1], "-")) {
			return true
		}
	}
	return slices.ContainsFunc(c.URLs, func(u string) bool {
		p, err := url.Parse(u)
		return err == nil && (p.User != nil || slices.ContainsFunc(slices.Collect(maps.Keys(p.Query())), secretKey.MatchString)) && !strings.Contains(u, "${")
	})
}

// secretFor is the name of the secret for a key of a server.
func secretFor(server, key string) string {
	upper := func(s string) string {
		return strings.Trim(strings.ToUpper(notInName.ReplaceAllString(s, "_")), "_")
	}
	s, k := upper(server), upper(key)
	name := k
	if s != "" && !strings.HasPrefix(k, s) {
		name = strings.Trim(s+"_"+k, "_")
	}
	name = name[:min(len(name), 100)]
	if policy.CheckSecretName(name) != nil {
		name = "SECRET_" + name
	}
	return name
}

// wantsLogin reports whether a server is remote and brings nothing to prove who
// asks, so that it may want a login, which stays with the client.
func wantsLogin(c *upstream.Config) bool {
	return len(c.URLs) > 0 && !slices.ContainsFunc(slices.Collect(maps.Keys(c.Headers)), secretKey.MatchString) &&
		!slices.ContainsFunc(c.URLs, func(u string) bool {
			return strings.Contains(u, "@") || strings.Contains(u, "${") || strings.HasPrefix(u, "http://127.") || strings.HasPrefix(u, "http://localhost")
		})
}
