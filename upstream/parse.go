package upstream

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/tree"
	"github.com/loadout-dev/loadout/skill"
)

// maxServers bounds the servers of one file; more are left out.
const maxServers = 1000

// ParseOptions say what is read.
type ParseOptions struct {
	// Name is the name of the file. Its extension tells JSON, YAML and TOML
	// apart; it becomes [Config.File].
	Name string
	// Default names a server that is alone in its file and has no name; "" is
	// the name of the file without its extension.
	Default string
}

// File is what a file says of servers.
type File struct {
	Servers []*Config // in the order of the file
	Names   []string  // of a list that only names servers, defined elsewhere
	Inputs  []Input   // of VS Code: values that a person is asked for
}

// Input is a value that a configuration wants from a person, for ${input:ID}.
type Input struct {
	ID          string   `json:"id"`
	Description string   `json:"description,omitempty"`
	Default     string   `json:"default,omitempty"`
	Options     []string `json:"options,omitempty"` // one of these; empty is any
	Password    bool     `json:"password,omitempty"`
}

// Parse reads the servers of a file, whatever program it was written for: a map
// of servers under mcpServers, mcp_servers, servers or nothing, nested twice or
// once; a list of connections, or a single one; a list of names. The file is
// JSON with comments, YAML or TOML, of at most 1 MiB and 1000 servers.
//
// It never fails: what is wrong is said in the diagnostics, with places. An
// [skill.Error] is about a server that is left out, or the whole file; a server
// with an error never hides the others. A key that is not known is an
// [skill.Info]. No diagnostic quotes a value of env, headers, args or URLs.
//
// Numbers as timeouts are seconds where the key says so or the number is below
// 1000, else milliseconds.
func Parse(data []byte, o ParseOptions) (*File, []skill.Diagnostic) {
	p := newParser(o)
	docs, err := tree.Parse(data, tree.FormatOf(o.Name, data))
	for _, doc := range docs {
		p.file(doc)
	}
	if err != nil {
		p.add(skill.Error, "servers-unreadable", &tree.Node{Line: err.Line, Column: err.Column},
			"the servers cannot be read: "+err.Message, "mend the file at this place")
	} else if len(docs) == 0 {
		p.ds = append(p.ds, skill.Diagnostic{Severity: skill.Info, Code: "servers-empty", Message: "no server is configured here"})
	}
	return p.result()
}

// ParseMap reads servers that were decoded to JSON already, as a skill's
// frontmatter has them: the value of its mcpServers, a map of servers or a list
// of names. name becomes [Config.File]. Diagnostics have no places.
func ParseMap(raw json.RawMessage, name string) (*File, []skill.Diagnostic) {
	p := newParser(ParseOptions{Name: name})
	p.placeless = true
	docs, err := tree.Parse(raw, tree.JSON)
	for _, doc := range docs {
		p.servers(doc, 0)
	}
	if err != nil {
		p.add(skill.Error, "servers-unreadable", &tree.Node{}, "the servers cannot be read: "+err.Message, "write a map of servers by name")
	}
	return p.result()
}

// ParseNode is [ParseMap] for a value with places, as another package of this
// module has read it; nil is no server.
func ParseNode(n *tree.Node, o ParseOptions) (*File, []skill.Diagnostic) {
	p := newParser(o)
	if n != nil && n.Kind != tree.Null {
		p.servers(n, 0)
	}
	return p.result()
}

// parser collects the servers of one file.
type parser struct {
	o         ParseOptions
	ds        skill.Diagnostics
	found     File
	index     map[string]int // of a server by its name
	gemini    bool           // $VAR is a variable, timeouts are milliseconds
	millis    bool           // timeouts are milliseconds
	placeless bool
	full      bool
}

func newParser(o ParseOptions) *parser {
	return &parser{o: o, index: map[string]int{}}
}

func (p *parser) result() (*File, []skill.Diagnostic) { return &p.found, p.ds }

// add appends a diagnostic at n. What it says of a file is one short line.
func (p *parser) add(s skill.Severity, code string, n *tree.Node, msg, fix string) {
	d := skill.Diagnostic{Severity: s, Code: code, Message: skill.OneLine(msg), Fix: skill.OneLine(fix)}
	if n != nil && !p.placeless {
		d.Line, d.Column = n.Line, n.Column
	}
	const most = 1000
	if len(p.ds) < most {
		p.ds = append(p.ds, d)
	}
}

func at(f tree.Field) *tree.Node { return &tree.Node{Line: f.Line, Column: f.Column} }

// file reads a whole document.
func (p *parser) file(doc *tree.Node) {
	slash := strings.ReplaceAll(p.o.Name, `\`, "/")
	base := path.Base(slash)
	p.gemini = p.gemini || strings.HasSuffix(slash, ".gemini/settings.json") || base == "gemini-extension.json" || isGemini(doc, 0)
	p.millis = p.gemini || base == ".mcp.json" || base == "claude_desktop_config.json" || base == ".claude.json"
	p.inputs(doc.Get("inputs"))
	p.servers(doc, 0)
}

// wrappers are keys around a map or list of servers, the first group that is
// there counts.
var wrappers = [][]string{
	{"mcpServers", "mcp_servers", "mcp-servers", "mcpservers"},
	{"mcp", "spec"}, // settings of VS Code and others; a Ghost
	{"servers"},
	{"connections"},
}

// servers reads a value that holds servers, in any of the shapes.
func (p *parser) servers(n *tree.Node, depth int) {
	const most = 4 // wrappers around wrappers
	switch {
	case n.Kind == tree.List:
		p.list(n)
	case n.Scalar() && depth == 0 && n.Kind == tree.String:
		p.names(n)
	case n.Kind == tree.Null && depth > 0:
	case n.Kind != tree.Map:
		p.add(skill.Error, "servers-shape", n, fmt.Sprintf("the servers are a %s", n.Kind), "write a map of servers by name")
	case isServer(n) && !slices.ContainsFunc(n.Fields, func(f tree.Field) bool {
		return slices.Contains(wrappers[0], f.Key) && isWrapper(f.Key, f.Value)
	}):
		p.single(n)
	case depth < most && p.unwrap(n, depth):
	default:
		p.mapping(n, depth)
	}
}

// unwrap reads what is under the keys of wrappers, if there is one.
func (p *parser) unwrap(n *tree.Node, depth int) bool {
	for _, group := range wrappers {
		found := false
		for _, f := range n.Fields {
			if slices.Contains(group, f.Key) && isWrapper(f.Key, f.Value) {
				found = true
				if f.Key == "mcp" || f.Key == "spec" {
					p.inputs(f.Value.Get("inputs"))
				}
				p.servers(f.Value, depth+1)
			}
		}
		if found {
			return true
		}
	}
	return false
}

// isWrapper tells the wrapper of a name from a server that has this name.
func isWrapper(key string, v *tree.Node) bool {
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
	return v.Kind == tree.List || v.Kind == tree.Null || v.Kind == tree.Map && !isServer(v)
}

// isServer reports whether a map is one server, and not servers by name.
func isServer(n *tree.Node) bool {
	for _, f := range n.Fields {
		switch canon(f.Key) {
		case "command", "cmd", "url", "httpurl", "serverurl", "urls":
			if f.Value.Scalar() || f.Value.Kind == tree.List {
				return true
			}
		}
	}
	return false
}

// mapping reads servers by name.
func (p *parser) mapping(n *tree.Node, depth int) {
	maps := 0
	for _, f := range n.Fields {
		if f.Value.Kind == tree.Map {
			maps++
		}
	}
	if depth == 0 && maps == 0 && len(n.Fields) > 0 {
		p.add(skill.Error, "servers-shape", n, "no server is found here", `write {"mcpServers": {"NAME": {…}}}`)
		return
	}
	for _, f := range n.Fields {
		switch {
		case depth == 0 && (f.Key == "inputs" || strings.HasPrefix(f.Key, "$") || strings.HasPrefix(f.Key, "x-")) && (f.Value.Kind != tree.Map || !isServer(f.Value)):
		case f.Value.Kind == tree.Map:
			p.server(f.Key, at(f), f.Value)
		case f.Value.Kind == tree.Null:
			p.add(skill.Error, "server-shape", at(f), fmt.Sprintf("server %s has no configuration", quote(f.Key)), "give it a command or a url")
		default:
			p.add(skill.Error, "server-shape", f.Value, fmt.Sprintf("server %s is a %s", quote(f.Key), f.Value.Kind), "write a map with a command or a url")
		}
	}
}

// list reads connections, names, or both.
func (p *parser) list(n *tree.Node) {
	for i, item := range n.Items {
		switch {
		case item.Kind == tree.String:
			p.name(item.Text, item)
		case item.Kind != tree.Map:
			p.add(skill.Error, "server-shape", item, fmt.Sprintf("item %d of the servers is a %s", i+1, item.Kind), "write a name, or a map with name and command or url")
		case !isServer(item) && len(item.Fields) == 1 && item.Fields[0].Value.Kind == tree.Map:
			p.server(item.Fields[0].Key, at(item.Fields[0]), item.Fields[0].Value) // - NAME: {…}
		default:
			name := text(item.Get("name"))
			if name == "" {
				p.add(skill.Error, "server-name", item, fmt.Sprintf("item %d of the servers has no name", i+1), "give it a name")
				continue
			}
			p.server(name, item.Get("name"), item)
		}
	}
}

// single reads a file that is one connection.
func (p *parser) single(n *tree.Node) {
	name, place := p.o.Default, n
	if name == "" && p.o.Name != "" {
		base := path.Base(strings.ReplaceAll(p.o.Name, `\`, "/"))
		name = strings.TrimSuffix(base, path.Ext(base))
	}
	if own := n.Get("name"); text(own) != "" {
		name, place = own.Text, own
	}
	if name == "" {
		p.add(skill.Error, "server-name", n, "the server has no name", "give it a name")
		return
	}
	p.server(name, place, n)
}

// names reads names in one text, separated by commas.
func (p *parser) names(n *tree.Node) {
	for name := range strings.SplitSeq(n.Text, ",") {
		p.name(strings.TrimSpace(name), n)
	}
}

func (p *parser) name(name string, n *tree.Node) {
	switch why := badName(name); {
	case name == "":
	case why != "":
		p.add(skill.Error, "server-name", n, fmt.Sprintf("the name %s of a server %s", quote(name), why), "choose another name")
	case slices.Contains(p.found.Names, name):
		p.add(skill.Info, "server-duplicate", n, fmt.Sprintf("server %s is named twice", quote(name)), "")
	case p.room(n):
		p.found.Names = append(p.found.Names, name)
	}
}

// room reports whether there is room for one more, and says once that there is
// none.
func (p *parser) room(n *tree.Node) bool {
	if len(p.found.Servers)+len(p.found.Names) < maxServers {
		return true
	}
	if !p.full {
		p.full = true
		p.add(skill.Error, "servers-many", n, fmt.Sprintf("there are more than %d servers; the rest is left out", maxServers), "split the file")
	}
	return false
}

// keep adds a server. Of two with one name the last counts, as with any map.
func (p *parser) keep(c *Config, n *tree.Node) {
	if i, twice := p.index[c.Name]; twice {
		first := p.found.Servers[i]
		p.add(skill.Warning, "server-duplicate", n, fmt.Sprintf("server %s is defined twice; the first one%s does not count", quote(c.Name), onLine(first.Line)), "rename one of them")
		p.found.Servers[i] = c
		return
	}
	if p.room(n) {
		p.index[c.Name] = len(p.found.Servers)
		p.found.Servers = append(p.found.Servers, c)
	}
}

func onLine(line int) string {
	if line == 0 {
		return ""
	}
	return fmt.Sprintf(", on line %d,", line)
}

// inputs reads the values that VS Code asks for.
func (p *parser) inputs(n *tree.Node) {
	if n == nil || n.Kind != tree.List {
		return
	}
	for _, item := range n.Items {
		in := Input{ID: text(item.Get("id")), Description: text(item.Get("description")), Default: text(item.Get("default"))}
		if in.ID == "" || len(p.found.Inputs) >= maxServers {
			p.add(skill.Warning, "input", item, "an input without an id is ignored", "give it an id")
			continue
		}
		in.Password = text(item.Get("password")) == "true"
		if o := item.Get("options"); o != nil {
			for _, v := range o.Items {
				in.Options = append(in.Options, text(v))
			}
		}
		switch kind := text(item.Get("type")); kind {
		case "", "promptString", "pickString":
		default:
			p.add(skill.Warning, "input", item, fmt.Sprintf("input %s is of the type %s, which is not run here: it is a text", quote(in.ID), quote(kind)), "give the value in the configuration")
		}
		p.found.Inputs = append(p.found.Inputs, in)
	}
}

// isGemini reports whether a server has a key that only Gemini's form has.
func isGemini(n *tree.Node, depth int) bool {
	own := isServer(n)
	for _, f := range n.Fields {
		if own && (f.Key == "httpUrl" || f.Key == "trust") || !own && depth < 4 && isGemini(f.Value, depth+1) {
			return true
		}
	}
	return false
}
