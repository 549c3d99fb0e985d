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
	"github.com/loadout-dev/loadout/internal/printable"
	"github.com/loadout-dev/loadout/internal/skillname"
	"github.com/loadout-dev/loadout/skill"
)

const (
	maxName = 128 // maximum length of a server name in characters
	maxURL  = 8 << 10
	// maxInstances is the maximum number of URLs of a server.
	maxInstances = 100
	maxTimeout   = 24 * time.Hour
)

// canonicalKey returns a normalized key, so that httpUrl, http_url and http-url
// are equal.
func canonicalKey(key string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(key))
}

// scalarText returns the text of a scalar node, or "" for any other node.
func scalarText(n *configfile.Node) string {
	if n.IsScalar() {
		return n.Text
	}
	return ""
}

// quoteText quotes text from a file for a message. It truncates long text.
func quoteText(s string) string {
	if len(s) > 80 {
		s = strings.ToValidUTF8(s[:80], "") + "…"
	}
	return `"` + s + `"`
}

// nameFault returns the reason why a server name is invalid, or "" if it is
// valid.
func nameFault(name string) string {
	switch {
	case strings.TrimSpace(name) == "":
		return "is empty"
	case utf8.RuneCountInString(name) > maxName:
		return fmt.Sprintf("is longer than %d characters", maxName)
	case !printable.IsLabel(name):
		return "contains an invisible character"
	}
	return ""
}

// serverEntry accumulates the configuration of a server while it is parsed.
type serverEntry struct {
	*parser
	c       *Config
	bad     bool
	command *configfile.Node
	urls    []*configfile.Node
	kind    *configfile.Node  // value of the type key
	headers map[string]string // header names as written, by canonical name
}

// parseServer parses a server and adds it if it is valid.
func (p *parser) parseServer(name string, pos *configfile.Node, n *configfile.Node) {
	e := &serverEntry{parser: p, c: &Config{Name: name, File: p.o.Name}}
	if !p.placeless {
		e.c.Line = pos.Line
	}
	if why := nameFault(name); why != "" {
		e.reject("server-name", pos, fmt.Sprintf("the name %s %s", quoteText(name), why), "choose another name")
	}
	fields, passed := n.UniqueFields()
	for _, f := range passed {
		e.warn("server-key-twice", keyNode(f), fmt.Sprintf("duplicate key %s; the last value counts", quoteText(f.Key)), "remove one of them")
	}
	for _, f := range fields {
		if f.Value.Kind != configfile.Null {
			e.parseField(f)
		}
	}
	e.selectTransport(pos)
	if !e.bad {
		p.addServer(e.c, pos)
	}
}

func (e *serverEntry) reject(code string, n *configfile.Node, msg, fix string) {
	e.bad = true
	e.add(skill.Error, code, n, e.serverMessage(msg), fix)
}

func (e *serverEntry) warn(code string, n *configfile.Node, msg, fix string) {
	e.add(skill.Warning, code, n, e.serverMessage(msg), fix)
}

func (e *serverEntry) serverMessage(msg string) string {
	return "server " + quoteText(e.c.Name) + ": " + msg
}

// parseField parses a field of a server's configuration.
func (e *serverEntry) parseField(f configfile.Field) {
	c, v := e.c, f.Value
	switch key := canonicalKey(f.Key); key {
	case "description":
		c.Description = cutText(scalarText(v), MaxAbout)
	case "name", "title", "displayname", "version", "icon", "metadata", "$schema", "gallery", "note", "comment", "tags", "author":
		// The key is only for display.
	case "type", "transport", "transporttype":
		if e.kind == nil || key == "type" {
			e.kind = v
		}
	case "command", "cmd":
		e.command = v
	case "args", "arguments":
		c.Args = append(c.Args, e.parseArguments(f)...)
	case "env", "environment":
		e.mergeMap(&c.Env, f, e.checkVariable)
	case "envvars": // Codex: names of variables to pass on
		for _, name := range e.parseStrings(f) {
			e.setValue(&c.Env, name, "${env:"+name+":-}")
		}
	case "envfile":
		c.EnvFile = e.parseString(f)
	case "cwd", "workdir", "workingdir", "workingdirectory", "dir":
		c.Dir = e.parseString(f)
	case "url", "urls", "httpurl", "serverurl":
		e.parseURLs(f, key)
	case "headers", "httpheaders", "requestheaders":
		e.mergeMap(&c.Headers, f, e.checkHeader)
	case "envhttpheaders": // Codex: names of variables
		e.mergeMap(&c.Headers, f, func(name, value string, n *configfile.Node) (string, bool) {
			return e.checkHeader(name, "${env:"+value+"}", n)
		})
	case "bearertokenenvvar":
		if name := e.parseString(f); !envName.MatchString(name) {
			e.reject("server-token", v, fmt.Sprintf("%s is not a variable name", f.Key), "write the name of the variable, not the token")
		} else {
			e.setValue(&c.Headers, "Authorization", "Bearer ${env:"+name+"}")
		}
	case "oauth", "auth":
		e.parseOAuth(f)
	case "bearertoken":
		e.setValue(&c.Headers, "Authorization", "Bearer "+e.parseString(f))
	case "includetools", "allowedtools", "enabledtools", "include":
		if c.Include = append(c.Include, e.parsePatterns(f)...); len(c.Include) == 0 && v.Kind == configfile.List {
			c.Exclude = append(c.Exclude, "*") // an empty list means none, not all
		}
	case "excludetools", "excludedtools", "disabledtools", "exclude":
		c.Exclude = append(c.Exclude, e.parsePatterns(f)...)
	case "tools":
		c.Tools = e.parseTools(f)
	case "disabled":
		c.Disabled = c.Disabled || e.parseBool(f, false)
	case "enabled":
		c.Disabled = c.Disabled || !e.parseBool(f, true)
	case "concurrency", "maxconcurrency":
		c.Concurrency = e.parseCount(f)
	case "safety", "safetylevel":
		c.Safety = e.parseSafety(f)
	case "ask":
		c.RequireApproval = e.parseBool(f, true)
	case "stateful":
		c.Stateful = e.parseBool(f, false)
	case "pin":
		c.Strict = e.parsePin(f)
	case "connect":
		c.AtStart = e.parseConnect(f)
	case "skills":
		c.Skills = e.parseSkills(f)
	case "skilllimits":
		c.SkillLimits = e.parseSkillLimits(f)
	case "label":
		if c.Label = e.parseString(f); !skillname.IsPortable(c.Label) {
			e.reject("server-label", v, fmt.Sprintf("the label %s is not 1 to 64 lower-case letters, digits and single hyphens", quoteText(c.Label)), "write a label such as "+skillname.Slug(c.Label))
		}
	case "trust", "autoapprove", "alwaysallow":
		if v.Text != "false" && (v.Kind != configfile.List || len(v.Items) > 0) {
			e.add(skill.Info, "server-trust", keyNode(f), e.serverMessage(f.Key+" is ignored: policy rules decide which calls need approval"), "")
		}
	default:
		if wait, ok := e.parseTimeout(f, key); !ok {
			e.add(skill.Info, "server-key", keyNode(f), e.serverMessage("key "+quoteText(f.Key)+" is unknown and ignored"), "")
		} else if strings.HasPrefix(key, "connect") || strings.HasPrefix(key, "startup") || strings.HasPrefix(key, "init") {
			c.ConnectTimeout = wait
		} else {
			c.CallTimeout = wait
		}
	}
}

// selectTransport determines the transport from the type, the command and the
// URLs. It reports settings that contradict each other.
func (e *serverEntry) selectTransport(pos *configfile.Node) {
	e.parseCommand()
	typ, known := "", true
	if e.kind != nil {
		if typ, known = parseTransport(scalarText(e.kind)); !known {
			e.reject("server-type", e.kind, fmt.Sprintf("unknown type %s", quoteText(scalarText(e.kind))), "write stdio, http, sse or websocket, or remove it")
			return
		}
	}
	command, urls := e.c.Command != "", len(e.c.URLs) > 0
	switch {
	case !command && !urls:
		if !e.bad {
			e.reject("server-target", pos, "has neither command nor url", "add a command or a url")
		}
		return
	case command && urls && typ == "":
		e.reject("server-target", pos, "has both command and url", "remove one of them, or add a type")
		return
	case command && urls && typ == Stdio:
		e.warn("server-target", pos, "type stdio uses the command; the url is ignored", "remove the url")
		e.c.URLs, e.c.Headers, urls = nil, nil, false
	case command && urls:
		e.warn("server-target", pos, "the type uses the url; the command is ignored", "remove the command")
		e.c.Command, e.c.Args, e.c.Env, e.c.Dir, command = "", nil, nil, "", false
	}
	switch {
	case command && typ != "" && typ != Stdio && typ != anyRemote:
		e.reject("server-type", e.kind, fmt.Sprintf("type %s requires a url, not a command", quoteText(scalarText(e.kind))), "write type: stdio, or a url")
	case command:
		typ = Stdio
	case typ == Stdio:
		e.reject("server-type", e.kind, fmt.Sprintf("type %s requires a command, not a url", quoteText(scalarText(e.kind))), "write type: http, or a command")
	default:
		typ = e.remoteTransport(typ)
	}
	e.c.Type = typ
	if typ != Stdio && e.c.EnvFile != "" {
		e.warn("server-env-file", pos, "envFile is ignored without a command", "write headers")
		e.c.EnvFile = ""
	}
	if typ == Stdio && len(e.c.Headers) > 0 {
		e.warn("server-headers", pos, "headers are ignored without a url", "write env")
		e.c.Headers = nil
	}
}

// remoteTransport determines the transport of a server with URLs. typ is the
// configured type, or "".
func (e *serverEntry) remoteTransport(typ string) string {
	sockets := 0
	for _, u := range e.c.URLs {
		if isWebSocketURL(u) {
			sockets++
		}
	}
	if typ == "" {
		for _, n := range e.urls {
			if n.Text == "httpUrl" { // the key; see parseURLs
				typ = HTTP
			}
		}
	}
	switch {
	case sockets == 0:
	case sockets < len(e.c.URLs):
		e.reject("server-url", e.urls[0], "urls need different transports", "split it into two servers")
	case typ == HTTP || typ == SSE:
		e.warn("server-type", e.kind, "WebSocket url does not match the type", "write type: websocket")
		typ = WebSocket
	default:
		typ = WebSocket
	}
	if typ == anyRemote {
		return ""
	}
	return typ
}

func isWebSocketURL(u string) bool {
	u = strings.ToLower(u)
	return strings.HasPrefix(u, "ws://") || strings.HasPrefix(u, "wss://")
}

// anyRemote is the transport type that mcphost uses for every server with a
// URL.
const anyRemote = "remote"

// parseTransport returns the transport for a type name in any known spelling, or
// false if the name is unknown.
func parseTransport(s string) (string, bool) {
	switch canonicalKey(strings.TrimSpace(s)) {
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

// parseCommand parses the command, which may be a list that includes the arguments.
func (e *serverEntry) parseCommand() {
	switch n := e.command; {
	case n == nil:
		return
	case n.Kind == configfile.List && len(n.Items) > 0:
		argv := e.parseArguments(configfile.Field{Key: "command", Line: n.Line, Column: n.Column, Value: n})
		if len(argv) > 0 {
			e.c.Command, e.c.Args = argv[0], append(argv[1:], e.c.Args...)
		}
	case n.IsScalar():
		e.c.Command = n.Text
	default:
		e.reject("server-command", n, fmt.Sprintf("the command is a %s", n.Kind), "write the name of a program, and args")
		return
	}
	if len(e.c.Args) == 0 {
		e.c.Args = nil
	}
	switch cmd := e.c.Command; {
	case strings.TrimSpace(cmd) == "":
		e.reject("server-command", e.command, "command is empty", "write the name of a program")
	case strings.ContainsFunc(cmd, unicode.IsControl):
		e.reject("server-command", e.command, "command contains a control character", "write the name of a program, and args")
	case len(e.c.Args) == 0 && strings.Contains(strings.TrimSpace(cmd), " ") && !strings.ContainsAny(cmd, `/\$`):
		e.warn("server-command", e.command, "the command contains spaces and is not split by a shell", "write the first word as command and the others as args")
	}
}

// parseURLs parses one or more URLs. For each URL, it stores a node with the
// URL's position. The node's text is "httpUrl" if the key is httpUrl, which
// determines the transport, and empty otherwise.
func (e *serverEntry) parseURLs(f configfile.Field, key string) {
	list := []*configfile.Node{f.Value}
	if f.Value.Kind == configfile.List {
		list = f.Value.Items
	}
	for _, n := range list {
		u := strings.TrimSpace(scalarText(n))
		if why := describeURLProblem(u); why != "" {
			e.reject("server-url", n, "the url "+why, "write https://HOST/PATH")
			continue
		}
		if len(e.c.URLs) >= maxInstances {
			e.warn("server-url", n, fmt.Sprintf("too many urls (limit %d); others are ignored", maxInstances), "split it into two servers")
			return
		}
		if slices.Contains(e.c.URLs, u) {
			continue
		}
		pos := &configfile.Node{Line: n.Line, Column: n.Column}
		if key == "httpurl" {
			pos.Text = "httpUrl"
		}
		e.c.URLs = append(e.c.URLs, e.expandShell(u))
		e.urls = append(e.urls, pos)
	}
}

// describeURLProblem returns why a URL is invalid, or "" if it is valid. It does
// not quote the URL, which may contain a token.
func describeURLProblem(u string) string {
	switch {
	case u == "":
		return "is empty"
	case len(u) > maxURL:
		return fmt.Sprintf("is longer than %d bytes", maxURL)
	case strings.ContainsFunc(u, func(r rune) bool { return unicode.IsControl(r) }):
		return "contains a control character"
	case strings.Contains(u, "$"):
		return "" // depends on its variables
	}
	parsed, err := url.Parse(u)
	switch {
	case err != nil:
		return "is invalid"
	case parsed.Host == "" || !slices.Contains([]string{"http", "https", "ws", "wss"}, strings.ToLower(parsed.Scheme)):
		return "does not start with https://, http://, wss:// or ws:// and a host"
	}
	return ""
}

// parsePatterns parses tool name patterns, which may contain *.
func (e *serverEntry) parsePatterns(f configfile.Field) []string {
	list := e.parseStrings(f)
	for _, p := range list {
		if _, err := path.Match(p, ""); err != nil {
			e.warn("server-pattern", keyNode(f), fmt.Sprintf("%s: invalid pattern %s", f.Key, quoteText(p)), "write a name, with * for any text")
		}
	}
	return list
}

// parseTools parses the names of the tools that the server is expected to have.
func (e *serverEntry) parseTools(f configfile.Field) []string {
	var out []string
	switch f.Value.Kind {
	case configfile.Map: // settings by tool
		for _, t := range f.Value.Fields {
			out = append(out, t.Key)
		}
	case configfile.List:
		for _, t := range f.Value.Items {
			name := scalarText(t)
			if t.Kind == configfile.Map {
				name = scalarText(t.Get("name"))
			}
			out = append(out, name)
		}
		out = unique(out)
	default:
		out = e.parseStrings(f)
	}
	return slices.DeleteFunc(out, func(s string) bool { return s == "*" })
}
