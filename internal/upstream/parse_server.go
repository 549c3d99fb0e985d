package upstream

import (
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/internal/configfile"
	"github.com/loadout-dev/loadout/skill"
)

const (
	maxName = 128 // characters of a server's name
	maxURL  = 8 << 10
	// maxInstances limits the URLs of one server.
	maxInstances = 100
	maxTimeout   = 24 * time.Hour
)

// canon normalizes a key: httpUrl, http_url and http-url are the same.
func canon(key string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(key))
}

// text returns a scalar as text, or "" for other nodes.
func text(n *configfile.Node) string {
	if n.Scalar() {
		return n.Text
	}
	return ""
}

// quote quotes a part of a file for a message.
func quote(s string) string {
	if len(s) > 80 {
		s = strings.ToValidUTF8(s[:80], "") + "…"
	}
	return `"` + s + `"`
}

// badName says why a name is invalid, or "".
func badName(name string) string {
	switch {
	case strings.TrimSpace(name) == "":
		return "is empty"
	case utf8.RuneCountInString(name) > maxName:
		return fmt.Sprintf("is longer than %d characters", maxName)
	case strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return "contains an invisible character"
	}
	return ""
}

// entry is the server being parsed.
type entry struct {
	*parser
	c       *Config
	bad     bool
	command *configfile.Node
	urls    []*configfile.Node
	kind    *configfile.Node  // its type
	headers map[string]string // written names by sent names
}

// server parses one server and adds it if it is usable.
func (p *parser) server(name string, place *configfile.Node, n *configfile.Node) {
	e := &entry{parser: p, c: &Config{Name: name, File: p.o.Name}}
	if !p.placeless {
		e.c.Line = place.Line
	}
	if why := badName(name); why != "" {
		e.fault("server-name", place, fmt.Sprintf("the name %s %s", quote(name), why), "choose another name")
	}
	fields, passed := n.Unique()
	for _, f := range passed {
		e.warn("server-key-twice", at(f), fmt.Sprintf("key %s comes twice; the last one counts", quote(f.Key)), "remove one of them")
	}
	for _, f := range fields {
		if f.Value.Kind != configfile.Null {
			e.field(f)
		}
	}
	e.transport(place)
	if !e.bad {
		p.addServer(e.c, place)
	}
}

func (e *entry) fault(code string, n *configfile.Node, msg, fix string) {
	e.bad = true
	e.add(skill.Error, code, n, e.about(msg), fix)
}

func (e *entry) warn(code string, n *configfile.Node, msg, fix string) {
	e.add(skill.Warning, code, n, e.about(msg), fix)
}

func (e *entry) about(msg string) string { return "server " + quote(e.c.Name) + ": " + msg }

// field parses one key of a server.
func (e *entry) field(f configfile.Field) {
	c, v := e.c, f.Value
	switch key := canon(f.Key); key {
	case "name", "description", "title", "displayname", "version", "icon", "metadata", "$schema", "gallery", "note", "comment", "tags", "author":
		// only for display
	case "type", "transport", "transporttype":
		if e.kind == nil || key == "type" {
			e.kind = v
		}
	case "command", "cmd":
		e.command = v
	case "args", "arguments":
		c.Args = append(c.Args, e.argv(f)...)
	case "env", "environment":
		e.merge(&c.Env, f, e.variable)
	case "envvars": // Codex: names of variables to pass on
		for _, name := range e.texts(f) {
			e.put(&c.Env, name, "${env:"+name+":-}")
		}
	case "envfile":
		c.EnvFile = e.value(f)
	case "cwd", "workdir", "workingdir", "workingdirectory", "dir":
		c.Dir = e.value(f)
	case "url", "urls", "httpurl", "serverurl":
		e.url(f, key)
	case "headers", "httpheaders", "requestheaders":
		e.merge(&c.Headers, f, e.header)
	case "envhttpheaders": // Codex: names of variables
		e.merge(&c.Headers, f, func(name, value string, n *configfile.Node) (string, bool) {
			return e.header(name, "${env:"+value+"}", n)
		})
	case "bearertokenenvvar":
		if name := e.value(f); !envName().MatchString(name) {
			e.fault("server-token", v, fmt.Sprintf("%s is not the name of a variable", f.Key), "write the name of the variable, not the token")
		} else {
			e.put(&c.Headers, "Authorization", "Bearer ${env:"+name+"}")
		}
	case "oauth", "auth":
		e.oauth(f)
	case "bearertoken":
		e.put(&c.Headers, "Authorization", "Bearer "+e.value(f))
	case "includetools", "allowedtools", "enabledtools", "include":
		if c.Include = append(c.Include, e.patterns(f)...); len(c.Include) == 0 && v.Kind == configfile.List {
			c.Exclude = append(c.Exclude, "*") // an empty list means none, not all
		}
	case "excludetools", "excludedtools", "disabledtools", "exclude":
		c.Exclude = append(c.Exclude, e.patterns(f)...)
	case "tools":
		c.Tools = e.tools(f)
	case "disabled":
		c.Disabled = c.Disabled || e.truth(f, false)
	case "enabled":
		c.Disabled = c.Disabled || !e.truth(f, true)
	case "concurrency", "maxconcurrency":
		c.Concurrency = e.count(f)
	case "safety", "safetylevel":
		c.Safety = e.safety(f)
	case "ask":
		c.RequireApproval = e.truth(f, true)
	case "stateful":
		c.Stateful = e.truth(f, false)
	case "pin":
		c.Strict = e.strict(f)
	case "connect":
		c.AtStart = e.atStart(f)
	case "trust", "autoapprove", "alwaysallow":
		if v.Text != "false" && (v.Kind != configfile.List || len(v.Items) > 0) {
			e.add(skill.Info, "server-trust", at(f), e.about(f.Key+" is not taken over: rules of policy say what is asked for"), "")
		}
	default:
		if wait, ok := e.timeout(f, key); !ok {
			e.add(skill.Info, "server-key", at(f), e.about("key "+quote(f.Key)+" is not known and is ignored"), "")
		} else if strings.HasPrefix(key, "connect") || strings.HasPrefix(key, "startup") || strings.HasPrefix(key, "init") {
			c.ConnectTimeout = wait
		} else {
			c.CallTimeout = wait
		}
	}
}

// transport decides how the server is reached, from its type, command and URLs.
func (e *entry) transport(place *configfile.Node) {
	e.start()
	typ, known := "", true
	if e.kind != nil {
		if typ, known = transportOf(text(e.kind)); !known {
			e.fault("server-type", e.kind, fmt.Sprintf("the type %s is not known", quote(text(e.kind))), "write stdio, http, sse or websocket, or leave it out")
			return
		}
	}
	command, urls := e.c.Command != "", len(e.c.URLs) > 0
	switch {
	case !command && !urls:
		if !e.bad {
			e.fault("server-target", place, "it has neither a command nor a url", "give it one of them")
		}
		return
	case command && urls && typ == "":
		e.fault("server-target", place, "it has both a command and a url", "keep the one that is meant, or give it a type")
		return
	case command && urls && typ == Stdio:
		e.warn("server-target", place, "it is started by its command; the url is ignored", "remove the url")
		e.c.URLs, e.c.Headers, urls = nil, nil, false
	case command && urls:
		e.warn("server-target", place, "it is reached by its url; the command is ignored", "remove the command")
		e.c.Command, e.c.Args, e.c.Env, e.c.Dir, command = "", nil, nil, "", false
	}
	switch {
	case command && typ != "" && typ != Stdio && typ != anyRemote:
		e.fault("server-type", e.kind, fmt.Sprintf("the type %s goes with a url, and it has a command", quote(text(e.kind))), "write type: stdio, or a url")
	case command:
		typ = Stdio
	case typ == Stdio:
		e.fault("server-type", e.kind, fmt.Sprintf("the type %s goes with a command, and it has a url", quote(text(e.kind))), "write type: http, or a command")
	default:
		typ = e.remote(typ)
	}
	e.c.Type = typ
	if typ != Stdio && e.c.EnvFile != "" {
		e.warn("server-env-file", place, "envFile is for a command and is ignored", "write headers")
		e.c.EnvFile = ""
	}
	if typ == Stdio && len(e.c.Headers) > 0 {
		e.warn("server-headers", place, "headers of a command are ignored", "write env")
		e.c.Headers = nil
	}
}

// remote is the transport by URL.
func (e *entry) remote(typ string) string {
	sockets := 0
	for _, u := range e.c.URLs {
		if socket(u) {
			sockets++
		}
	}
	if typ == "" {
		for _, n := range e.urls {
			if n.Text == "httpUrl" { // the key, see url
				typ = HTTP
			}
		}
	}
	switch {
	case sockets == 0:
	case sockets < len(e.c.URLs):
		e.fault("server-url", e.urls[0], "its urls are of different kinds", "make two servers of it")
	case typ == HTTP || typ == SSE:
		e.warn("server-type", e.kind, "its url is a WebSocket's, whatever its type says", "write type: websocket")
		typ = WebSocket
	default:
		typ = WebSocket
	}
	if typ == anyRemote {
		return ""
	}
	return typ
}

func socket(u string) bool {
	u = strings.ToLower(u)
	return strings.HasPrefix(u, "ws://") || strings.HasPrefix(u, "wss://")
}

// anyRemote is the type of mcphost for anything with a URL.
const anyRemote = "remote"

// transportOf reads the name of a transport in any spelling.
func transportOf(s string) (string, bool) {
	switch canon(strings.TrimSpace(s)) {
	case "":
		return "", true
	case "stdio", "local":
		return Stdio, true
	case "http", "https", "streamablehttp", "streamable", "httpstream":
		return HTTP, true
	case "sse", "http+sse":
		return SSE, true
	case "ws", "wss", "websocket":
		return WebSocket, true
	case "remote":
		return anyRemote, true
	}
	return "", false
}

// start reads the command, which may be a list with the arguments.
func (e *entry) start() {
	switch n := e.command; {
	case n == nil:
		return
	case n.Kind == configfile.List && len(n.Items) > 0:
		argv := e.argv(configfile.Field{Key: "command", Line: n.Line, Column: n.Column, Value: n})
		if len(argv) > 0 {
			e.c.Command, e.c.Args = argv[0], append(argv[1:], e.c.Args...)
		}
	case n.Scalar():
		e.c.Command = n.Text
	default:
		e.fault("server-command", n, fmt.Sprintf("its command is a %s", n.Kind), "write the name of a program, and args")
		return
	}
	if len(e.c.Args) == 0 {
		e.c.Args = nil
	}
	switch cmd := e.c.Command; {
	case strings.TrimSpace(cmd) == "":
		e.fault("server-command", e.command, "its command is empty", "write the name of a program")
	case strings.ContainsFunc(cmd, unicode.IsControl):
		e.fault("server-command", e.command, "its command has a control character", "write the name of a program, and args")
	case len(e.c.Args) == 0 && strings.Contains(strings.TrimSpace(cmd), " ") && !strings.ContainsAny(cmd, `/\$`):
		e.warn("server-command", e.command, "its command has spaces, and no shell splits it", "write the first word as command, the others as args")
	}
}

// url reads one URL or several. The place of each is kept, with the key as text.
func (e *entry) url(f configfile.Field, key string) {
	list := []*configfile.Node{f.Value}
	if f.Value.Kind == configfile.List {
		list = f.Value.Items
	}
	for _, n := range list {
		u := strings.TrimSpace(text(n))
		if why := badURL(u); why != "" {
			e.fault("server-url", n, "its url "+why, "write https://HOST/PATH")
			continue
		}
		if len(e.c.URLs) >= maxInstances {
			e.warn("server-url", n, fmt.Sprintf("it has more than %d urls; the rest is left out", maxInstances), "make two servers of it")
			return
		}
		if slices.Contains(e.c.URLs, u) {
			continue
		}
		place := &configfile.Node{Line: n.Line, Column: n.Column}
		if key == "httpurl" {
			place.Text = "httpUrl"
		}
		e.c.URLs = append(e.c.URLs, e.shell(u))
		e.urls = append(e.urls, place)
	}
}

// badURL says what is wrong with a URL, and does not quote it: it may have a
// token in it.
func badURL(u string) string {
	switch {
	case u == "":
		return "is empty"
	case len(u) > maxURL:
		return fmt.Sprintf("is longer than %d bytes", maxURL)
	case strings.ContainsFunc(u, func(r rune) bool { return unicode.IsControl(r) }):
		return "has a control character"
	case strings.Contains(u, "$"):
		return "" // its variables decide
	}
	parsed, err := url.Parse(u)
	switch {
	case err != nil:
		return "is not valid"
	case parsed.Host == "" || !slices.Contains([]string{"http", "https", "ws", "wss"}, strings.ToLower(parsed.Scheme)):
		return "does not begin with https://, http://, wss:// or ws:// and a host"
	}
	return ""
}

// patterns reads names of tools with *.
func (e *entry) patterns(f configfile.Field) []string {
	list := e.texts(f)
	for _, p := range list {
		if _, err := path.Match(p, ""); err != nil {
			e.warn("server-pattern", at(f), fmt.Sprintf("%s: the pattern %s is not valid", f.Key, quote(p)), "write a name, with * for any text")
		}
	}
	return list
}

// tools reads the tools that the server is said to have.
func (e *entry) tools(f configfile.Field) []string {
	var out []string
	switch f.Value.Kind {
	case configfile.Map: // settings by tool
		for _, t := range f.Value.Fields {
			out = append(out, t.Key)
		}
	case configfile.List:
		for _, t := range f.Value.Items {
			name := text(t)
			if t.Kind == configfile.Map {
				name = text(t.Get("name"))
			}
			out = append(out, name)
		}
		out = unique(out)
	default:
		out = e.texts(f)
	}
	return slices.DeleteFunc(out, func(s string) bool { return s == "*" })
}
