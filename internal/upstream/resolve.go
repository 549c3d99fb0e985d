package upstream

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/loadout-dev/loadout/internal/printable"
)

// Variables provides the values of variables in a configuration. If a function
// is nil or a path is empty, each variable of that kind is reported as an
// [UnsetVariable]. Configurations from skills, projects and hubs must not get
// access to the environment of this process.
//
// The functions return false if there is no value. They are called once per use
// of a variable, on the goroutine that calls [Config.Resolve].
type Variables struct {
	Env    func(name string) (string, bool) // ${NAME}, ${env:NAME}, ${env://NAME}
	Input  func(id string) (string, bool)   // ${input:ID}
	User   func(name string) (string, bool) // ${{user.NAME}}
	Secret func(name string) (string, bool) // ${{secrets.NAME}}
	// Platform returns a platform value, for ${{NAME}}.
	Platform func(name string) (string, bool)
	// CheckPlatform returns nil if the server may receive a platform value, or an
	// error such as: may not be sent to example.com: approve the skill again. The
	// target is that of [Config.TargetWith]. If CheckPlatform is nil, the server may
	// receive all values.
	CheckPlatform func(name, target string) error
	// Names returns the names that have a value, for messages. kind is
	// [FromUser], [FromSecret] or [FromPlatform]. If Names is nil, messages list
	// no names.
	Names func(kind string) []string
	// HowToSet returns instructions for setting a variable for servers of the
	// given owner. kind is [FromInput], [FromUser], [FromSecret] or
	// [FromPlatform]. If HowToSet is nil, messages do not name a command.
	HowToSet func(owner Owner, kind, name string) string
	// File reads a [Config.EnvFile] of at most [MaxEnvFile] bytes. It is never
	// called for a configuration with an owner. If it returns an
	// [*EnvFileError], the text of that error replaces the default message.
	File func(path string) ([]byte, error)

	// Dir is the working directory of a command whose configuration mentions
	// neither a directory nor the workspace. "" means the current directory.
	Dir       string
	Workspace string // ${workspaceFolder}, ${workspaceFolderBasename}
	Home      string // ${userHome}
	// Skill is the directory of the skill that provides the configuration, for
	// ${SKILL_DIR} and its aliases.
	Skill string
}

// skillNames are the variables for the skill directory.
var skillNames = []string{"SKILL_DIR", "CLAUDE_SKILL_DIR", "CLAUDE_PLUGIN_ROOT", "LOADOUT_SKILL"}

// UnsetVariable describes a variable that has no value, an invalid one, or one
// that the server may not receive. It never contains values.
type UnsetVariable struct {
	Kind  string // such as [FromEnv]
	Name  string // name of the variable; "" for kind [Invalid]
	Where string // position in the configuration, such as: header Authorization
	Hint  string // what the user can do
}

// String returns the problem and its solution on one line.
func (u UnsetVariable) String() string {
	switch u.Kind {
	case Invalid:
		return u.Where + " is invalid: " + u.Hint
	case NotPermitted:
		return u.Where + ": " + u.reference() + " " + u.Hint
	}
	return fmt.Sprintf("%s has no value for %s: %s", u.Where, u.reference(), u.Hint)
}

// JoinUnset returns the problems of variables and their solutions on one line.
func JoinUnset(unset []UnsetVariable) string {
	texts := make([]string, len(unset))
	for i, u := range unset {
		texts[i] = u.String()
	}
	return strings.Join(texts, "; ")
}

func (u UnsetVariable) reference() string {
	switch u.Kind {
	case FromInput:
		return "${input:" + u.Name + "}"
	case FromUser:
		return "${{user." + u.Name + "}}"
	case FromSecret:
		return "${{secrets." + u.Name + "}}"
	case FromPlatform, NotPermitted:
		return "${{" + u.Name + "}}"
	case Unknown:
		return quoteText(u.Name)
	}
	return "${" + u.Name + "}"
}

// Resolve returns a copy of c in which variables are replaced in command, args,
// env, directory, URLs, headers and envFile, but not in the names of variables
// or headers. It adds the variables of the envFile to env. If a variable
// without a default has no value, or a value is invalid where it is used,
// Resolve returns nil and up to 100 problems in a fixed order.
//
// A default follows :- and replaces an unset or empty value. It may contain
// variables. Inserted values are not expanded. $${ is an escaped ${. The copy
// has the same [Config.Digest] as c.
func (c *Config) Resolve(v Variables) (*Config, []UnsetVariable) {
	r := &resolver{c: c, v: v}
	if c.Owner != "" { // only the user's own configuration may read files
		r.v.File = nil
	}
	out := *c
	out.Source = c.Digest()
	out.Args, out.URLs = slices.Clone(c.Args), slices.Clone(c.URLs)
	out.Env, out.Headers = maps.Clone(c.Env), maps.Clone(c.Headers)
	if c.OAuth != nil {
		client := *c.OAuth
		out.OAuth = &client
	}
	c.eachText(func(where string, s string, set func(*Config, string)) {
		set(&out, r.expand(where, s))
	})
	if len(r.unset) == 0 {
		r.loadEnvFile(&out)
	}
	if len(r.unset) > 0 {
		return nil, r.unset
	}
	if r.checkTarget(&out); len(r.unset) > 0 {
		return nil, r.unset
	}
	if out.Dir == "" && out.Command != "" {
		out.Dir = c.workDir(v)
	}
	out.hidden, out.tokens = r.hidden, &sentTokens{}
	if out.Type == "" && len(out.URLs) > 0 && !slices.ContainsFunc(out.URLs, func(u string) bool { return !isWebSocketURL(u) }) {
		out.Type = WebSocket
	}
	return &out, nil
}

// eachText calls f for each string that may contain variables, in a fixed
// order. set replaces that string in a copy of c.
func (c *Config) eachText(f func(where string, s string, set func(*Config, string))) {
	f("command", c.Command, func(c *Config, s string) { c.Command = s })
	for i, s := range c.Args {
		f(fmt.Sprintf("argument %d", i+1), s, func(c *Config, s string) { c.Args[i] = s })
	}
	for _, k := range slices.Sorted(maps.Keys(c.Env)) {
		f("env "+k, c.Env[k], func(c *Config, s string) { c.Env[k] = s })
	}
	f("envFile", c.EnvFile, func(c *Config, s string) { c.EnvFile = s })
	f("directory", c.Dir, func(c *Config, s string) { c.Dir = s })
	for i, s := range c.URLs {
		f("url", s, func(c *Config, s string) { c.URLs[i] = s })
	}
	for _, k := range slices.Sorted(maps.Keys(c.Headers)) {
		f("header "+k, c.Headers[k], func(c *Config, s string) { c.Headers[k] = s })
	}
	if c.OAuth != nil {
		f("oauth clientId", c.OAuth.ID, func(c *Config, s string) { c.OAuth.ID = s })
		f("oauth clientSecret", c.OAuth.Secret, func(c *Config, s string) { c.OAuth.Secret = s })
	}
}

type resolver struct {
	c     *Config
	v     Variables
	unset []UnsetVariable
	total int

	hidden   []string
	platform []VariableUse // used platform values, without targets
}

// checkTarget adds a problem for each platform value that the resolved
// configuration must not send to its target.
func (r *resolver) checkTarget(resolved *Config) {
	if r.v.CheckPlatform == nil {
		return
	}
	target := r.c.Target()
	if len(resolved.URLs) > 0 {
		target = resolved.origins()
	}
	for _, u := range r.platform {
		if err := r.v.CheckPlatform(u.Name, target); err != nil {
			r.addProblem(NotPermitted, u.Name, u.Where, err.Error())
		}
	}
}

func (r *resolver) addProblem(kind, name, where, hint string) {
	u := UnsetVariable{Kind: kind, Name: printable.OneLine(name), Where: displayPosition(where), Hint: hint}
	const most = 100 // enough, because a single problem makes the server unusable
	if len(r.unset) < most && !slices.Contains(r.unset, u) {
		r.unset = append(r.unset, u)
	}
}

// expand returns s with its variables replaced. It adds a problem if the result
// is invalid.
func (r *resolver) expand(where, s string) string {
	if !strings.Contains(s, "${") {
		return s
	}
	parts := parseTemplate(s, 0)
	if why := r.misplacedValue(where, parts); why != "" {
		r.addProblem(Invalid, "", where, why)
		return ""
	}
	var b strings.Builder
	r.expandParts(&b, where, parts)
	if len(r.unset) > 0 {
		return ""
	}
	out := b.String()
	if why := invalidReason(where, out); why != "" {
		r.addProblem(Invalid, "", where, why)
	}
	return out
}

// misplacedValue returns the reason why a platform value is not allowed at its
// place in a configuration text, or "" if it is allowed. A value must not
// change part of the command or host that receives the values. A command may
// contain no platform value. A URL may begin with a value that is a complete
// address, or contain values after the host.
func (r *resolver) misplacedValue(where string, parts []part) string {
	uses := func(p part) (yes bool) {
		eachVariable([]part{p}, func(v *variable) { yes = yes || v.kind == FromPlatform })
		return yes
	}
	switch {
	case where == "command" || strings.HasPrefix(where, "oauth ") && r.c.Owner != "":
		if slices.ContainsFunc(parts, uses) {
			return "no platform value is allowed here: write it into an argument, a header or env"
		}
	case where == "url":
		inHost := false
		for i, p := range parts {
			text := p.literal
			if _, rest, ok := strings.Cut(text, "://"); ok && !inHost {
				inHost, text = true, rest
			}
			switch {
			case inHost && strings.ContainsAny(text, "/?#"):
				return "" // the host is complete
			case p.v == nil:
			case i == 0 && p.v.kind == FromPlatform && (len(parts) == 1 || strings.HasPrefix(parts[1].literal, "/") || strings.HasPrefix(parts[1].literal, "?")):
				return r.checkWholeAddress(p.v)
			case uses(p):
				return "a platform value must be the whole address with its host, or come after the host"
			}
		}
	}
	return ""
}

// checkWholeAddress returns an error message unless the value of v is a URL with a
// host and without user information. It returns "" if the value is such a URL,
// or if v has no value.
func (r *resolver) checkWholeAddress(v *variable) string {
	if r.v.Platform == nil {
		return ""
	}
	value, ok := r.v.Platform(v.name)
	if u, err := url.Parse(value); ok && (err != nil || u.Host == "" || u.User != nil) {
		return "the platform value " + v.name + " is not an address such as https://example.com"
	}
	return ""
}

func (r *resolver) expandParts(b *strings.Builder, where string, parts []part) {
	for _, p := range parts {
		text := p.literal
		if p.v != nil {
			value, ok, hint := r.lookup(p.v)
			switch {
			case p.v.optional && (!ok || value == ""):
				r.expandParts(b, where, p.v.fallback)
				continue
			case !ok:
				r.addProblem(p.v.kind, p.v.name, where, hint)
				continue
			}
			text = value
			r.markSecret(p.v, value)
			if u := (VariableUse{Name: p.v.name, Where: where}); p.v.kind == FromPlatform && !slices.Contains(r.platform, u) {
				r.platform = append(r.platform, u)
			}
		}
		if r.total += len(text); r.total > maxExpanded {
			r.addProblem(Invalid, "", where, fmt.Sprintf("too long after variables are replaced (limit %d bytes)", maxExpanded))
			return
		}
		b.WriteString(text)
	}
}

// minHidden is the minimum length in bytes of a value to redact. Shorter values
// occur in many words.
const minHidden = 4

// markSecret marks the value of v for redaction if it may be secret.
func (r *resolver) markSecret(v *variable, value string) {
	switch v.kind {
	case FromEnv:
		if r.v.Skill != "" && slices.Contains(skillNames, v.name) {
			return
		}
	case FromPlatform:
		if u, err := url.Parse(value); err == nil && u.Host != "" && value == u.Scheme+"://"+u.Host {
			return // a server's address is not secret, and answers contain links
		}
	case FromInput, FromUser, FromSecret:
	default:
		return
	}
	r.addSecret(value)
}

func (r *resolver) addSecret(value string) {
	if value = strings.TrimSpace(value); len(value) >= minHidden && !slices.Contains(r.hidden, value) {
		r.hidden = append(slices.Clip(r.hidden), value)
	}
}

// lookup returns the value of v. If ok is false, hint says how to set the
// variable.
func (r *resolver) lookup(v *variable) (value string, ok bool, hint string) {
	from := func(f func(string) (string, bool), none, missing string) (string, bool, string) {
		if f == nil {
			return "", false, none
		}
		value, ok := f(v.name)
		if ok {
			return value, true, ""
		}
		return "", false, missing + r.allowedNames()
	}
	switch v.kind {
	case FromEnv:
		if r.v.Skill != "" && slices.Contains(skillNames, v.name) {
			return r.v.Skill, true, ""
		}
		return from(r.v.Env, r.notVisibleHint("the environment", v.name), "set the variable "+v.name+", or write ${"+v.name+":-DEFAULT}")
	case FromInput:
		return from(r.v.Input, r.notVisibleHint("inputs", v.name), r.howToSet(v))
	case FromUser:
		return from(r.v.User, r.notVisibleHint("user values", v.name), r.howToSet(v))
	case FromSecret:
		return from(r.v.Secret, r.notVisibleHint("your secrets", v.name), r.howToSet(v))
	case FromPath:
		return r.lookupPath(v.name)
	case FromPlatform:
		return from(r.v.Platform, r.notVisibleHint("platform values", "")+r.allowedNames(), r.howToSet(v))
	}
	return "", false, "write ${NAME}, ${{secrets.NAME}} or ${{user.NAME}}, or $${ for the text itself" + r.allowedNames()
}

// allowedNames returns the end of a hint, which lists the variables that have a
// value in this configuration. It returns "" if it does not know the names.
func (r *resolver) allowedNames() string {
	const most = 20 // names in a message
	if r.v.Names == nil {
		return ""
	}
	var all []string
	for _, source := range []struct {
		kind string
		used bool
	}{{FromPlatform, r.v.Platform != nil}, {FromUser, r.v.User != nil}, {FromSecret, r.v.Secret != nil}} {
		if !source.used {
			continue
		}
		for _, name := range slices.Sorted(slices.Values(r.v.Names(source.kind))) {
			u := UnsetVariable{Kind: source.kind, Name: printable.OneLine(name)}
			all = append(all, u.reference())
		}
	}
	if len(all) == 0 {
		return "; no names have a value here"
	}
	more := ""
	if len(all) > most {
		more, all = fmt.Sprintf(" and %d more", len(all)-most), all[:most]
	}
	return "; names with a value here: " + strings.Join(all, ", ") + more
}

// notVisibleHint returns the hint for a variable of a kind that the
// configuration is not allowed to use. It suggests a secret or a user variable
// with the given name, if the configuration is allowed to use these kinds. If
// name is "", it suggests no variable.
func (r *resolver) notVisibleHint(kind, name string) string {
	var next []string
	owner := "servers of this configuration do"
	switch _, _, ofSkill := r.c.Owner.Skill(); {
	case r.c.Owner == ProjectOwner:
		owner = "servers of a project do"
		next = append(next, "move the server into your own servers.yaml")
	case ofSkill:
		owner = "servers of a skill do"
	case r.c.Owner != "":
		owner = "servers of " + printableText(string(r.c.Owner)) + " do"
	}
	if name != "" && r.v.Secret != nil {
		next = append(next, "write ${{secrets."+name+"}}")
	}
	if name != "" && r.v.User != nil {
		next = append(next, "write ${{user."+name+"}}")
	}
	if len(next) == 0 {
		next = append(next, "write the value itself, or copy the server into your own servers.yaml if you trust it")
	}
	return owner + " not see " + kind + ": " + strings.Join(next, ", or ")
}

// howToSet returns instructions for setting a variable.
func (r *resolver) howToSet(v *variable) string {
	if r.v.HowToSet != nil {
		return r.v.HowToSet(r.c.Owner, v.kind, v.name)
	}
	switch v.kind {
	case FromUser:
		return "set the user value " + v.name
	case FromInput:
		return "set the input " + v.name
	case FromPlatform:
		return "set the variable " + v.name
	}
	return "set the secret " + v.name
}

func (r *resolver) lookupPath(name string) (string, bool, string) {
	switch name {
	case "userHome":
		return r.v.Home, r.v.Home != "", r.notVisibleHint("the home directory", "")
	case "pathSeparator", "/":
		return string(filepath.Separator), true, ""
	case "workspaceFolderBasename":
		return path.Base(strings.ReplaceAll(r.v.Workspace, `\`, "/")), r.v.Workspace != "", "there is no workspace"
	}
	return r.v.Workspace, r.v.Workspace != "", "there is no workspace"
}

// invalidReason returns the reason why s, with its variables replaced, is
// invalid at the given position, or "" if it is valid. It does not quote s.
func invalidReason(where, s string) string {
	kind, _, _ := strings.Cut(where, " ")
	switch {
	case kind == "command" && strings.TrimSpace(s) == "":
		return "empty after variables are replaced"
	case kind == "header" && strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) && r != '\t' }):
		return "a value contains a line break or another control character"
	case kind == "command" && strings.ContainsFunc(s, unicode.IsControl), strings.ContainsRune(s, 0):
		return "a value contains a control character"
	case kind == "url":
		if why := describeURLProblem(strings.ReplaceAll(s, "$", "%24")); why != "" {
			return "after variables are replaced the url " + why
		}
	}
	return ""
}

// VariableUse describes where a configuration uses a variable.
type VariableUse struct {
	Kind  string `json:"kind" doc:"For example user or secret"` // such as [FromEnv]
	Name  string `json:"name"`
	Where string `json:"where" doc:"For example header Authorization"`
	// Target may contain unresolved variables.
	Target string `json:"target" doc:"Host or command that receives the value"`
}

// Variables returns the variables that an unresolved configuration uses,
// including those in defaults, in a fixed order and without duplicates. Callers
// show them to the user, who then approves the configuration.
func (c *Config) Variables() []VariableUse {
	var out []VariableUse
	target, seen := c.Target(), map[[3]string]bool{}
	c.eachText(func(where, s string, _ func(*Config, string)) {
		eachVariable(parseTemplate(s, 0), func(v *variable) {
			u := VariableUse{Kind: v.kind, Name: printableText(v.name), Where: displayPosition(where), Target: target}
			if k := [3]string{u.Kind, u.Name, u.Where}; !seen[k] {
				seen[k] = true
				out = append(out, u)
			}
		})
	})
	return out
}

// Target returns the server's hosts or command for display. It omits user
// names, paths and arguments, which may contain tokens.
func (c *Config) Target() string {
	if len(c.URLs) == 0 {
		return printableText(c.Command)
	}
	var hosts []string
	for _, u := range c.URLs {
		if h := urlHost(u); !slices.Contains(hosts, h) {
			hosts = append(hosts, h)
		}
	}
	return printableText(strings.Join(hosts, ", "))
}

// TargetWith is like [Config.Target], but replaces variables in the URLs of a
// configuration that uses platform values, so that it returns the actual
// recipients of these values. Hosts without TLS are returned with their scheme.
// TargetWith replaces nothing if a variable in the URLs has no value. It does
// not need secrets.
func (c *Config) TargetWith(v Variables) string {
	v.CheckPlatform = nil
	v.Secret = func(string) (string, bool) { return "secret", true } // it is not part of the host
	r := &resolver{c: c, v: v}
	resolved := &Config{}
	for _, u := range c.URLs {
		resolved.URLs = append(resolved.URLs, r.expand("url", u))
	}
	if v.Platform == nil || len(c.URLs) == 0 || len(r.unset) > 0 || !slices.ContainsFunc(c.Variables(), func(u VariableUse) bool { return u.Kind == FromPlatform }) {
		return c.Target()
	}
	return resolved.origins()
}

// origins returns the hosts of URLs without variables. It includes the scheme
// of a URL without TLS.
func (c *Config) origins() string {
	var all []string
	for _, u := range c.URLs {
		parsed, err := url.Parse(u)
		if err != nil {
			return "an invalid address"
		}
		host := parsed.Host
		if parsed.Scheme != "https" && parsed.Scheme != "wss" {
			host = parsed.Scheme + "://" + host
		}
		if !slices.Contains(all, host) {
			all = append(all, host)
		}
	}
	return printableText(strings.Join(all, ", "))
}

// urlHost returns the host of a URL that may contain variables.
func urlHost(u string) string {
	if !strings.Contains(u, "${") {
		if parsed, err := url.Parse(u); err == nil {
			return parsed.Host
		}
	}
	var b strings.Builder
	authority := false
	for _, p := range parseTemplate(u, 0) {
		if p.v != nil {
			b.WriteString(p.v.source)
			continue
		}
		s := p.literal
		if !authority {
			if _, rest, ok := strings.Cut(s, "://"); ok {
				authority, s = true, rest
				b.Reset()
			}
		}
		end := strings.IndexAny(s, `/?#\`)
		if end >= 0 && authority {
			s = s[:end]
		}
		if i := strings.LastIndexByte(s, '@'); i >= 0 {
			b.Reset()
			s = s[i+1:]
		}
		b.WriteString(s)
		if end >= 0 && authority {
			break
		}
	}
	return b.String()
}

// displayPosition returns the position of a variable for display.
func displayPosition(where string) string {
	if len(where) > 100 {
		where = strings.ToValidUTF8(where[:100], "") + "…"
	}
	return printableText(where)
}

func printableText(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '\ufffd'
		}
		return r
	}, s)
}

// Digest returns "sha256:" followed by the hex-encoded SHA-256 hash of the
// configuration as JSON. It covers the unresolved configuration, so it does not
// depend on the values of variables. It does not cover File and Line.
func (c *Config) Digest() string {
	if c.Source != "" {
		return c.Source
	}
	js, err := json.Marshal(c)
	if err != nil { // cannot fail: c has only strings, numbers, booleans and maps
		panic(err)
	}
	sum := sha256.Sum256(js)
	return "sha256:" + hex.EncodeToString(sum[:])
}
