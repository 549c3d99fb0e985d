package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/internal/toolname"
)

// maxArguments is the maximum size, in bytes, of arguments that are compared
// with patterns. For larger arguments, every denying pattern matches and no
// allowing pattern does.
const maxArguments = 1 << 20

// glob is a pattern in which * matches any text and \* matches an asterisk. For
// each part of the pattern, matching takes linear time.
type glob struct {
	parts []string // text between the asterisks
}

func parseGlob(s string) glob {
	var parts []string
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s) && (s[i+1] == '*' || s[i+1] == '\\'):
			i++
			b.WriteByte(s[i])
		case s[i] == '*':
			parts = append(parts, b.String())
			b.Reset()
			for i+1 < len(s) && s[i+1] == '*' {
				i++
			}
		default:
			b.WriteByte(s[i])
		}
	}
	return glob{append(parts, b.String())}
}

// isLiteral reports whether the pattern matches only a single text.
func (g glob) isLiteral() bool { return len(g.parts) == 1 }

func (g glob) match(s string) bool {
	if g.isLiteral() {
		return s == g.parts[0]
	}
	last := len(g.parts) - 1
	rest, ok := strings.CutPrefix(s, g.parts[0])
	if !ok {
		return false
	}
	for _, p := range g.parts[1:last] {
		i := strings.Index(rest, p)
		if i < 0 {
			return false
		}
		rest = rest[i+len(p):]
	}
	return strings.HasSuffix(rest, g.parts[last])
}

func (g glob) lower() glob {
	out := make([]string, len(g.parts))
	for i, p := range g.parts {
		out[i] = strings.ToLower(p)
	}
	return glob{out}
}

// matches reports whether the pattern matches s. If loose is set, case is
// ignored.
func (g glob) matches(s string, loose bool) bool {
	return g.match(s) || loose && g.lower().match(strings.ToLower(s))
}

// toolTarget is one interpretation of the tool name in a rule.
type toolTarget struct {
	server glob
	tool   glob
	own    bool // whether it is a tool of the agent itself and not of a server
	loose  bool // whether rules that allow must ignore it
}

// parseTargets returns all interpretations of the tool name in a rule:
// mcp.server.tool, mcp.tool, server__tool, mcp__server__tool, mcp__server, or a
// tool of the agent itself.
func parseTargets(name string) []toolTarget {
	any := parseGlob("*")
	if name == "*" {
		return []toolTarget{{server: any, tool: any}, {tool: any, own: true}}
	}
	if rest, ok := strings.CutPrefix(name, "mcp."); ok {
		out := []toolTarget{{server: any, tool: parseGlob(rest)}}
		if strings.Contains(rest, ".") {
			out[0].loose = true // a server may give its tool the name of another server's tool
		} else {
			out = append(out, toolTarget{server: parseGlob(rest), tool: any, loose: true})
		}
		for i, at := 0, 0; at < len(rest); at++ {
			if rest[at] == '.' && at > 0 && at+1 < len(rest) {
				out = append(out, toolTarget{server: parseGlob(rest[:at]), tool: parseGlob(rest[at+1:]), loose: i > 0})
				i++
			}
		}
		return out
	}
	var out []toolTarget
	rest, prefixed := strings.CutPrefix(name, "mcp__")
	if prefixed {
		out = append(out, toolTarget{server: parseGlob(rest), tool: any, loose: strings.Contains(rest, "__")})
	}
	for i, at := 0, 0; at+2 < len(rest); at++ {
		if at > 0 && strings.HasPrefix(rest[at:], "__") {
			out = append(out, toolTarget{server: parseGlob(rest[:at]), tool: parseGlob(rest[at+2:]), loose: i > 0})
			i++
		}
	}
	if !prefixed {
		own := toolTarget{tool: parseGlob(name), own: true}
		out = append(out, own, toolTarget{server: any, tool: own.tool, loose: true})
	}
	return out
}

// builtins maps each tool that works on the agent's working folder to the name
// that skills use for it, and to the arguments that its patterns are compared
// with.
var builtins = map[string]struct {
	name string
	args []string
}{
	toolname.RunCommand: {"Bash", []string{"command"}},
	"Bash":              {"Bash", []string{"command"}},
	toolname.ReadFile:   {"Read", []string{"path", "file_path"}},
	"Read":              {"Read", []string{"path", "file_path"}},
	toolname.WriteFile:  {"Write", []string{"path", "file_path"}},
	"Write":             {"Write", []string{"path", "file_path"}},
	toolname.EditFile:   {"Edit", []string{"path", "file_path"}},
	"Edit":              {"Edit", []string{"path", "file_path"}},
	toolname.ListFiles:  {"LS", []string{"path"}},
	"LS":                {"LS", []string{"path"}},
	"WebFetch":          {"WebFetch", []string{"url"}},
}

// argumentText holds the parts of a call's arguments that are compared with
// patterns.
type argumentText struct {
	values  []string // an allowing rule must match all of them
	all     []string // other rules must match at least one of them
	command bool     // whether values are shell commands
	broken  bool     // whether the arguments are unreadable, so that no rule with a pattern allows the call
}

// argumentTexts returns the parts of the call's arguments to compare with
// patterns.
func (c *ToolCall) argumentTexts() argumentText {
	args := bytes.TrimSpace(c.Arguments)
	if len(args) == 0 || bytes.Equal(args, []byte("null")) {
		return argumentText{values: []string{""}, all: []string{""}}
	}
	if len(args) > maxArguments || !utf8.Valid(args) {
		return argumentText{broken: true}
	}
	strs, others, top, err := jsonScalars(args)
	if err != nil {
		return argumentText{broken: true}
	}
	t := argumentText{values: strs}
	if len(strs) == 0 {
		t.values = others
	}
	t.all = append(slices.Concat(strs, others), string(args))
	if len(t.values) == 0 {
		t.values = []string{""}
	}
	if b, ok := builtins[c.Tool]; ok && c.builtin() {
		var found []string
		for _, name := range b.args {
			found = append(found, top[name]...)
		}
		if len(found) > 0 {
			t.values = found
		}
		t.command = b.name == "Bash"
	}
	return t
}

// jsonScalars returns the strings and the other scalars at any depth of a JSON
// document, and the strings in its top-level members by name. For duplicate
// members, it returns both values.
func jsonScalars(doc []byte) (strs, others []string, top map[string][]string, err error) {
	if !json.Valid(doc) {
		return nil, nil, nil, errors.New("invalid JSON")
	}
	top = map[string][]string{}
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.UseNumber()
	var open []bool // for each level, whether it is an object
	key, isKey := "", false
	for {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return strs, others, top, nil
		}
		if err != nil {
			return nil, nil, nil, err
		}
		inObject := len(open) > 0 && open[len(open)-1]
		if d, ok := tok.(json.Delim); ok {
			switch d {
			case '{', '[':
				open = append(open, d == '{')
				isKey = d == '{'
			default:
				open = open[:len(open)-1]
				isKey = len(open) > 0 && open[len(open)-1]
			}
			continue
		}
		if inObject && isKey {
			key, isKey = tok.(string), false
			continue
		}
		switch v := tok.(type) {
		case string:
			strs = append(strs, v)
			if len(open) == 1 && inObject {
				top[key] = append(top[key], v)
			}
		case json.Number:
			others = append(others, v.String())
		case bool:
			others = append(others, map[bool]string{true: "true", false: "false"}[v])
		}
		isKey = inObject
	}
}

// argumentPattern is the pattern in parentheses in a rule.
type argumentPattern struct {
	whole glob
	parts []argumentPattern // alternatives, such as git add:* and git commit:*
	start string            // prefix, such as git in git:*
	site  string            // domain, such as example.com in domain:example.com
}

func parseArgument(s string) argumentPattern {
	s = strings.TrimSpace(s)
	a := argumentPattern{whole: parseGlob(s)}
	if start, ok := strings.CutSuffix(s, ":*"); ok && !strings.Contains(start, ",") {
		a.start = strings.TrimSpace(start)
	}
	if site, ok := strings.CutPrefix(s, "domain:"); ok {
		a.site = strings.ToLower(strings.TrimPrefix(site, "*."))
	}
	if parts := strings.Split(s, ","); len(parts) > 1 {
		for _, p := range parts {
			if !strings.HasSuffix(p, ":*") {
				return a // the comma is part of the text
			}
		}
		for _, p := range parts {
			a.parts = append(a.parts, parseArgument(p))
		}
	}
	return a
}

// allows reports whether the pattern matches every value completely.
func (a argumentPattern) allows(t argumentText) bool {
	return !t.broken && !slices.ContainsFunc(t.values, func(v string) bool { return !a.covers(v, t.command) })
}

func (a argumentPattern) covers(v string, command bool) bool {
	if slices.ContainsFunc(a.parts, func(p argumentPattern) bool { return p.covers(v, command) }) {
		return true
	}
	switch {
	case a.whole.isLiteral() && a.whole.match(v):
		return true
	case a.site != "":
		h := hostOfURL(v)
		return h == a.site || strings.HasSuffix(h, "."+a.site)
	case command && strings.ContainsAny(v, ";&|<>`$(){}\n\r"):
		return len(a.whole.parts) == 2 && a.whole.parts[0] == "" && a.whole.parts[1] == "" // only * matches a line with several commands
	case hasParentDir(v) && !slices.ContainsFunc(a.whole.parts, hasParentDir) && !a.matchesAll():
		return false // /home/me/* does not match /home/me/../you
	case a.start != "":
		return v == a.start || strings.HasPrefix(v, a.start+" ")
	}
	return a.whole.match(v)
}

func (a argumentPattern) matchesAll() bool {
	return len(a.whole.parts) == 2 && a.whole.parts[0] == "" && a.whole.parts[1] == ""
}

// matchesAny reports whether the pattern may match any of the values.
func (a argumentPattern) matchesAny(t argumentText) bool {
	if t.broken || a.matchesAll() {
		return true
	}
	return slices.ContainsFunc(slices.Concat(t.values, t.all), func(v string) bool { return a.matchesLoosely(v) })
}

func (a argumentPattern) matchesLoosely(v string) bool {
	if slices.ContainsFunc(a.parts, func(p argumentPattern) bool { return p.matchesLoosely(v) }) || a.whole.matches(v, true) {
		return true
	}
	if a.site != "" {
		h := hostOfURL(v)
		return h == a.site || strings.HasSuffix(h, "."+a.site)
	}
	low, start := strings.ToLower(v), strings.ToLower(a.start)
	for _, s := range append(splitCommands(low), low) {
		if start != "" && (s == start || strings.HasPrefix(s, start+" ") || strings.HasPrefix(s, start+"\t")) || a.whole.lower().match(s) {
			return true
		}
	}
	return false
}

// splitCommands returns the individual commands of a shell command line, on a
// best-effort basis.
func splitCommands(line string) []string {
	var out []string
	for _, c := range strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(";&|<>`$(){}\n\r\"'", r) }) {
		words := strings.Fields(c)
		for len(words) > 0 && (strings.Contains(words[0], "=") || slices.Contains([]string{"sudo", "command", "exec", "env", "nohup", "time", "xargs"}, words[0])) {
			words = words[1:]
		}
		if len(words) == 0 {
			continue
		}
		text := strings.Join(words, " ")
		out = append(out, text)
		if i := strings.LastIndexByte(words[0], '/'); i >= 0 { // for example /bin/rm
			out = append(out, text[i+1:])
		}
	}
	return out
}

func hasParentDir(s string) bool {
	return slices.Contains(strings.FieldsFunc(s, func(r rune) bool { return r == '/' || r == '\\' || unicode.IsSpace(r) }), "..")
}

// hostOfURL returns the host of a URL, in lower case and without the port.
func hostOfURL(s string) string {
	_, rest, ok := strings.Cut(s, "://")
	if !ok || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == '\\' }) {
		return ""
	}
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		rest = rest[:i]
	}
	rest = rest[strings.LastIndexByte(rest, '@')+1:]
	host, _, _ := strings.Cut(rest, ":")
	return strings.ToLower(strings.TrimSuffix(host, "."))
}
