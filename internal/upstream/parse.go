package upstream

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/configfile"
	"github.com/loadout-dev/loadout/internal/printable"
	"github.com/loadout-dev/loadout/skill"
)

// maxServers is the maximum number of servers in a file.
const maxServers = 1000

// ParseOptions configures [Parse] and [ParseNode].
type ParseOptions struct {
	// Name is the file name. Its extension selects JSON, YAML or TOML. It is
	// also stored in [Config.File].
	Name string
	// Default is the server name for a file that contains a single unnamed
	// server. "" means the file name without its extension.
	Default string
}

// File is the parsed content of a configuration file.
type File struct {
	Servers []*Config // servers in file order
	Names   []string  // names of servers that are defined elsewhere
	Inputs  []Input   // values to ask the user for, from VS Code files
}

// Input describes a value that the user enters for ${input:ID}.
type Input struct {
	ID          string   `json:"id"`
	Description string   `json:"description,omitempty"`
	Default     string   `json:"default,omitempty"`
	Options     []string `json:"options,omitempty"` // allowed values; empty means any
	Password    bool     `json:"password,omitempty"`
}

// Parse parses the configuration file of any MCP client. The file contains a
// map of servers under mcpServers, mcp_servers or servers, possibly nested, or
// at the top level; or a list of servers, a single server, or a list of names.
// Its format is JSON with comments, YAML or TOML. The limits are 1 MiB and 1000
// servers.
//
// Parse never fails: diagnostics report problems with their positions. A
// [skill.Error] means that one server or the whole file was omitted; other
// servers are not affected. An unknown key is a [skill.Info]. Diagnostics never
// contain values of env, headers, args or URLs.
//
// Timeouts are in seconds if the key says so or the number is below 1000,
// otherwise in milliseconds.
func Parse(data []byte, o ParseOptions) (*File, []skill.Diagnostic) {
	p := newParser(o)
	docs, err := configfile.Parse(data, configfile.FormatOf(o.Name, data))
	for _, doc := range docs {
		p.parseFile(doc)
	}
	if err != nil {
		p.add(skill.Error, "servers-unreadable", &configfile.Node{Line: err.Line, Column: err.Column},
			"cannot read the servers: "+err.Message, "correct the file at this position")
	} else if len(docs) == 0 {
		p.ds = append(p.ds, skill.Diagnostic{Severity: skill.Info, Code: "servers-empty", Message: "no servers configured"})
	}
	return p.result()
}

// ParseMap parses servers in JSON, such as mcpServers in a skill's frontmatter.
// raw is a map of servers by name or a list of names. name is stored in
// [Config.File]. Diagnostics have no positions.
func ParseMap(raw json.RawMessage, name string) (*File, []skill.Diagnostic) {
	p := newParser(ParseOptions{Name: name})
	p.placeless = true
	docs, err := configfile.Parse(raw, configfile.JSON)
	for _, doc := range docs {
		p.parseServers(doc, 0)
	}
	if err != nil {
		p.add(skill.Error, "servers-unreadable", &configfile.Node{}, "cannot read the servers: "+err.Message, "write a map of servers by name")
	}
	return p.result()
}

// ParseNode is like [ParseMap], but parses a configuration node, and
// diagnostics have its positions. If n is nil, there are no servers.
func ParseNode(n *configfile.Node, o ParseOptions) (*File, []skill.Diagnostic) {
	p := newParser(o)
	if n != nil && n.Kind != configfile.Null {
		p.parseServers(n, 0)
	}
	return p.result()
}

// parser collects the servers and diagnostics of a file.
type parser struct {
	o         ParseOptions
	ds        skill.Diagnostics
	found     File
	index     map[string]int // index in found.Servers by server name
	gemini    bool           // $VAR is a variable, timeouts are in milliseconds
	millis    bool           // timeouts are in milliseconds
	placeless bool
	full      bool
}

func newParser(o ParseOptions) *parser {
	return &parser{o: o, index: map[string]int{}}
}

func (p *parser) result() (*File, []skill.Diagnostic) { return &p.found, p.ds }

// add adds a diagnostic at n. It converts quoted text to a single line of about
// 2,000 bytes.
func (p *parser) add(s skill.Severity, code string, n *configfile.Node, msg, fix string) {
	const long = 2000
	d := skill.Diagnostic{Severity: s, Code: code, Message: printable.OneLine(truncate(msg, long)), Fix: printable.OneLine(truncate(fix, long))}
	if n != nil && !p.placeless {
		d.Line, d.Column = n.Line, n.Column
	}
	const most = 1000
	if len(p.ds) < most {
		p.ds = append(p.ds, d)
	}
}

func keyNode(f configfile.Field) *configfile.Node {
	return &configfile.Node{Line: f.Line, Column: f.Column}
}

// parseFile parses a document with inputs and servers.
func (p *parser) parseFile(doc *configfile.Node) {
	slash := strings.ReplaceAll(p.o.Name, `\`, "/")
	base := path.Base(slash)
	p.gemini = p.gemini || strings.HasSuffix(slash, ".gemini/settings.json") || base == "gemini-extension.json" || isGemini(doc, 0)
	p.millis = p.gemini || base == ".mcp.json" || base == "claude_desktop_config.json" || base == ".claude.json"
	p.parseInputs(doc.Get("inputs"))
	p.parseServers(doc, 0)
}

// wrappers lists groups of keys whose values contain a map or list of servers.
// The first group with a key in the file is used.
var wrappers = [][]string{
	{"mcpServers", "mcp_servers", "mcp-servers", "mcpservers"},
	{"mcp", "spec"}, // VS Code settings and similar; Ghost documents
	{"servers"},
	{"connections"},
}

// parseServers parses servers in any of the accepted forms.
func (p *parser) parseServers(n *configfile.Node, depth int) {
	const most = 4 // nested wrappers
	switch {
	case n.Kind == configfile.List:
		p.parseList(n)
	case n.IsScalar() && depth == 0 && n.Kind == configfile.String:
		p.parseNames(n)
	case n.Kind == configfile.Null && depth > 0:
	case n.Kind != configfile.Map:
		p.add(skill.Error, "servers-shape", n, fmt.Sprintf("the servers are a %s", n.Kind), "write a map of servers by name")
	case isServer(n) && !slices.ContainsFunc(n.Fields, func(f configfile.Field) bool {
		return slices.Contains(wrappers[0], f.Key) && isWrapper(f.Key, f.Value)
	}):
		p.parseSingle(n)
	case depth < most && p.parseWrapped(n, depth):
	default:
		p.parseMapping(n, depth)
	}
}

// parseWrapped parses the servers under wrapper keys. It returns false if there
// are no such keys.
func (p *parser) parseWrapped(n *configfile.Node, depth int) bool {
	for _, group := range wrappers {
		found := false
		for _, f := range n.Fields {
			if slices.Contains(group, f.Key) && isWrapper(f.Key, f.Value) {
				found = true
				if f.Key == "mcp" || f.Key == "spec" {
					p.parseInputs(f.Value.Get("inputs"))
				}
				p.parseServers(f.Value, depth+1)
			}
		}
		if found {
			return true
		}
	}
	return false
}

// isWrapper reports whether key is a wrapper rather than the name of a server.
func isWrapper(key string, v *configfile.Node) bool {
	if key == "mcp" || key == "spec" {
		for _, group := range wrappers {
			for _, k := range group {
				if k != "mcp" && k != "spec" && v.Get(k) != nil {
					return true
				}
			}
		}
		return false
	}
	return v.Kind == configfile.List || v.Kind == configfile.Null || v.Kind == configfile.Map && !isServer(v)
}

// isServer reports whether a map describes a single server rather than a map of
// servers by name.
func isServer(n *configfile.Node) bool {
	for _, f := range n.Fields {
		switch canonicalKey(f.Key) {
		case "command", "cmd", "url", "httpurl", "serverurl", "urls":
			if f.Value.IsScalar() || f.Value.Kind == configfile.List {
				return true
			}
		}
	}
	return false
}

// parseMapping parses a map of servers by name.
func (p *parser) parseMapping(n *configfile.Node, depth int) {
	maps := 0
	for _, f := range n.Fields {
		if f.Value.Kind == configfile.Map {
			maps++
		}
	}
	if depth == 0 && maps == 0 && len(n.Fields) > 0 {
		p.add(skill.Error, "servers-shape", n, "no servers found", `write {"mcpServers": {"NAME": {…}}}`)
		return
	}
	for _, f := range n.Fields {
		switch {
		case depth == 0 && (f.Key == "inputs" || strings.HasPrefix(f.Key, "$") || strings.HasPrefix(f.Key, "x-")) && (f.Value.Kind != configfile.Map || !isServer(f.Value)):
		case f.Value.Kind == configfile.Map:
			p.parseServer(f.Key, keyNode(f), f.Value)
		case f.Value.Kind == configfile.Null:
			p.add(skill.Error, "server-shape", keyNode(f), fmt.Sprintf("server %s has no configuration", quoteText(f.Key)), "give it a command or a url")
		default:
			p.add(skill.Error, "server-shape", f.Value, fmt.Sprintf("server %s is a %s", quoteText(f.Key), f.Value.Kind), "write a map with a command or a url")
		}
	}
}

// parseList parses a list whose items are servers or names.
func (p *parser) parseList(n *configfile.Node) {
	for i, item := range n.Items {
		switch {
		case item.Kind == configfile.String:
			p.parseName(item.Text, item)
		case item.Kind != configfile.Map:
			p.add(skill.Error, "server-shape", item, fmt.Sprintf("item %d of the servers is a %s", i+1, item.Kind), "write a name, or a map with name and command or url")
		case !isServer(item) && len(item.Fields) == 1 && item.Fields[0].Value.Kind == configfile.Map:
			p.parseServer(item.Fields[0].Key, keyNode(item.Fields[0]), item.Fields[0].Value) // - NAME: {…}
		default:
			name := scalarText(item.Get("name"))
			if name == "" {
				p.add(skill.Error, "server-name", item, fmt.Sprintf("item %d of the servers has no name", i+1), "give it a name")
				continue
			}
			p.parseServer(name, item.Get("name"), item)
		}
	}
}

// parseSingle parses a file that describes a single server.
func (p *parser) parseSingle(n *configfile.Node) {
	name, place := p.o.Default, n
	if name == "" && p.o.Name != "" {
		base := path.Base(strings.ReplaceAll(p.o.Name, `\`, "/"))
		name = strings.TrimSuffix(base, path.Ext(base))
	}
	if own := n.Get("name"); scalarText(own) != "" {
		name, place = own.Text, own
	}
	if name == "" {
		p.add(skill.Error, "server-name", n, "server has no name", "give it a name")
		return
	}
	p.parseServer(name, place, n)
}

// parseNames parses a comma-separated list of names.
func (p *parser) parseNames(n *configfile.Node) {
	for name := range strings.SplitSeq(n.Text, ",") {
		p.parseName(strings.TrimSpace(name), n)
	}
}

func (p *parser) parseName(name string, n *configfile.Node) {
	switch why := nameFault(name); {
	case name == "":
	case why != "":
		p.add(skill.Error, "server-name", n, fmt.Sprintf("the name %s of a server %s", quoteText(name), why), "choose another name")
	case slices.Contains(p.found.Names, name):
		p.add(skill.Info, "server-duplicate", n, fmt.Sprintf("duplicate server name %s", quoteText(name)), "")
	case p.canAddServer(n):
		p.found.Names = append(p.found.Names, name)
	}
}

// canAddServer reports whether the file may contain another server. The first time
// that the limit is exceeded, it adds a diagnostic.
func (p *parser) canAddServer(n *configfile.Node) bool {
	if len(p.found.Servers)+len(p.found.Names) < maxServers {
		return true
	}
	if !p.full {
		p.full = true
		p.add(skill.Error, "servers-many", n, fmt.Sprintf("too many servers (limit %d); others are omitted", maxServers), "split the file")
	}
	return false
}

// addServer adds a server. It replaces an earlier server with the same name.
func (p *parser) addServer(c *Config, n *configfile.Node) {
	if i, twice := p.index[c.Name]; twice {
		first := p.found.Servers[i]
		p.add(skill.Warning, "server-duplicate", n, fmt.Sprintf("server %s is defined twice; the first definition%s is ignored", quoteText(c.Name), lineSuffix(first.Line)), "rename one of them")
		p.found.Servers[i] = c
		return
	}
	if p.canAddServer(n) {
		p.index[c.Name] = len(p.found.Servers)
		p.found.Servers = append(p.found.Servers, c)
	}
}

func lineSuffix(line int) string {
	if line == 0 {
		return ""
	}
	return fmt.Sprintf(", on line %d,", line)
}

// parseInputs parses the inputs in a VS Code file.
func (p *parser) parseInputs(n *configfile.Node) {
	if n == nil || n.Kind != configfile.List {
		return
	}
	for _, item := range n.Items {
		in := Input{ID: scalarText(item.Get("id")), Description: scalarText(item.Get("description")), Default: scalarText(item.Get("default"))}
		if in.ID == "" || len(p.found.Inputs) >= maxServers {
			p.add(skill.Warning, "input", item, "input without an id is ignored", "give it an id")
			continue
		}
		in.Password = scalarText(item.Get("password")) == "true"
		if o := item.Get("options"); o != nil {
			for _, v := range o.Items {
				in.Options = append(in.Options, scalarText(v))
			}
		}
		switch kind := scalarText(item.Get("type")); kind {
		case "", "promptString", "pickString":
		default:
			p.add(skill.Warning, "input", item, fmt.Sprintf("input %s has the unsupported type %s and is read as text", quoteText(in.ID), quoteText(kind)), "give the value in the configuration")
		}
		p.found.Inputs = append(p.found.Inputs, in)
	}
}

// isGemini reports whether a server has a key that only Gemini CLI uses.
func isGemini(n *configfile.Node, depth int) bool {
	own := isServer(n)
	for _, f := range n.Fields {
		if own && (f.Key == "httpUrl" || f.Key == "trust") || !own && depth < 4 && isGemini(f.Value, depth+1) {
			return true
		}
	}
	return false
}
