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

// Variables are the values for variables in a configuration. A nil func or
// empty path makes variables of that kind an [UnsetVariable]. Configurations of
// skills, projects and hubs never see the environment of this process.
//
// The funcs return false if there is no value. They are called for each use, on
// the goroutine that calls [Config.Resolve].
type Variables struct {
	Env    func(name string) (string, bool) // ${NAME}, ${env:NAME}, ${env://NAME}
	Input  func(id string) (string, bool)   // ${input:ID}
	User   func(name string) (string, bool) // ${{user.NAME}}
	Secret func(name string) (string, bool) // ${{secrets.NAME}}
	// Hint returns how the user sets ${{user.NAME}} or ${{secrets.NAME}}, for
	// programs with their own way. kind is [FromUser] or [FromSecret].
	Hint func(kind, name string) string
	// File reads a [Config.EnvFile] of at most [MaxEnvFile] bytes. It is never
	// called for a configuration with an owner. An [*EnvFileError] replaces the
	// usual message.
	File func(path string) ([]byte, error)

	// Dir is the working directory of a command whose configuration names
	// neither a directory nor the workspace. "" means the current directory.
	Dir       string
	Workspace string // ${workspaceFolder}, ${workspaceFolderBasename}
	Home      string // ${userHome}
	// Skill is the directory of the skill that provides the configuration:
	// ${SKILL_DIR} and its aliases.
	Skill string
}

// skillNames are the variables for the directory of a skill.
var skillNames = []string{"SKILL_DIR", "CLAUDE_SKILL_DIR", "CLAUDE_PLUGIN_ROOT", "LOADOUT_SKILL"}

// UnsetVariable reports a variable without a value. It never contains values.
type UnsetVariable struct {
	Kind  string // [FromEnv] and the others
	Name  string // of the variable; "" for kind [Invalid]
	Where string // such as: header Authorization of server "x"
	Hint  string // what to do
}

// String returns a message of one line.
func (u UnsetVariable) String() string {
	if u.Kind == Invalid {
		return u.Where + " is invalid: " + u.Hint
	}
	return fmt.Sprintf("%s has no value for %s: %s", u.Where, u.ref(), u.Hint)
}

func (u UnsetVariable) ref() string {
	switch u.Kind {
	case FromInput:
		return "${input:" + u.Name + "}"
	case FromUser:
		return "${{user." + u.Name + "}}"
	case FromSecret:
		return "${{secrets." + u.Name + "}}"
	case Unknown:
		return quote(u.Name)
	}
	return "${" + u.Name + "}"
}

// Resolve returns a copy with variables replaced in command, args, env,
// directory, URLs, headers and envFile, but not in names of variables or
// headers. The variables of the envFile are added to env. If a variable without
// a default has no value, or a value is invalid in its position, it returns nil
// and up to 100 problems in a fixed order: the server is not configured.
//
// A default follows :- and is used for an unset or empty value. It may contain
// variables. Values are not expanded again. $${ stands for the text ${. The
// copy has the [Config.Digest] of c.
func (c *Config) Resolve(v Variables) (*Config, []UnsetVariable) {
	r := &resolver{c: c, v: v}
	if c.Owner != "" { // other owners must not read the user's files
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
	c.texts(func(where string, s string, set func(*Config, string)) {
		set(&out, r.expand(where, s))
	})
	if len(r.unset) == 0 {
		r.loadEnvFile(&out)
	}
	if len(r.unset) > 0 {
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

// texts calls f, in a fixed order, for all texts that may contain variables,
// with a func that sets the text of a copy.
func (c *Config) texts(f func(where string, s string, set func(*Config, string))) {
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

	hidden []string
}

func (r *resolver) miss(kind, name, where, hint string) {
	u := UnsetVariable{Kind: kind, Name: printable.OneLine(name), Where: displayPosition(where) + " of server " + printableText(quote(r.c.Name)), Hint: hint}
	const most = 100 // one problem already makes the server unusable
	if len(r.unset) < most && !slices.Contains(r.unset, u) {
		r.unset = append(r.unset, u)
	}
}

// expand replaces the variables of a text and validates the result.
func (r *resolver) expand(where, s string) string {
	if !strings.Contains(s, "${") {
		return s
	}
	var b strings.Builder
	r.parts(&b, where, parseTemplate(s, 0))
	if len(r.unset) > 0 {
		return ""
	}
	out := b.String()
	if why := invalidReason(where, out); why != "" {
		r.miss(Invalid, "", where, why)
	}
	return out
}

func (r *resolver) parts(b *strings.Builder, where string, parts []part) {
	for _, p := range parts {
		text := p.literal
		if p.v != nil {
			value, ok, hint := r.lookup(p.v)
			switch {
			case p.v.optional && (!ok || value == ""):
				r.parts(b, where, p.v.fallback)
				continue
			case !ok:
				r.miss(p.v.kind, p.v.name, where, hint)
				continue
			}
			text = value
			r.hide(p.v, value)
		}
		if r.total += len(text); r.total > maxExpanded {
			r.miss(Invalid, "", where, fmt.Sprintf("too long with the values of its variables (limit %d bytes)", maxExpanded))
			return
		}
		b.WriteString(text)
	}
}

// minHidden is the minimal length of redacted values in bytes. Shorter ones
// occur in many words.
const minHidden = 4

// hide marks a value of the user or the environment for redaction.
func (r *resolver) hide(v *variable, value string) {
	switch v.kind {
	case FromEnv:
		if r.v.Skill != "" && slices.Contains(skillNames, v.name) {
			return
		}
	case FromInput, FromUser, FromSecret:
	default:
		return
	}
	r.conceal(value)
}

func (r *resolver) conceal(value string) {
	if value = strings.TrimSpace(value); len(value) >= minHidden && !slices.Contains(r.hidden, value) {
		r.hidden = append(slices.Clip(r.hidden), value)
	}
}

// lookup returns a value, or how to set it.
func (r *resolver) lookup(v *variable) (value string, ok bool, hint string) {
	from := func(f func(string) (string, bool), none, missing string) (string, bool, string) {
		if f == nil {
			return "", false, none
		}
		value, ok := f(v.name)
		return value, ok, missing
	}
	switch v.kind {
	case FromEnv:
		if r.v.Skill != "" && slices.Contains(skillNames, v.name) {
			return r.v.Skill, true, ""
		}
		return from(r.v.Env, r.notVisible("the environment", v.name), "set the variable "+v.name+", or write ${"+v.name+":-DEFAULT}")
	case FromInput:
		return from(r.v.Input, r.notVisible("inputs", v.name), "loadout secret set "+v.name)
	case FromUser:
		return from(r.v.User, r.notVisible("user values", v.name), r.hint(v, "add it to your configuration, under user: as "+v.name))
	case FromSecret:
		return from(r.v.Secret, r.notVisible("your secrets", v.name), r.hint(v, r.secretHint(v.name)))
	case FromPath:
		return r.path(v.name)
	}
	return "", false, "write ${NAME}, ${{secrets.NAME}} or ${{user.NAME}}, or $${ for the text itself"
}

// notVisible says what to do if a configuration may not see a kind of values.
// It only suggests kinds that the configuration may see. name is "" if no other
// variable helps.
func (r *resolver) notVisible(kind, name string) string {
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

// hint returns how to set a variable, as the program says or else the usual
// way.
func (r *resolver) hint(v *variable, usual string) string {
	if r.v.Hint == nil {
		return usual
	}
	return r.v.Hint(v.kind, v.name)
}

// secretHint returns how to set a secret that this configuration can see.
func (r *resolver) secretHint(name string) string {
	next := "loadout secret set " + name
	if skill, _, ok := r.c.Owner.Skill(); ok {
		next += ", and let the skill have it: loadout secret grant " + name + " --skill " + printableText(skill)
	}
	return next
}

func (r *resolver) path(name string) (string, bool, string) {
	switch name {
	case "userHome":
		return r.v.Home, r.v.Home != "", r.notVisible("the home directory", "")
	case "pathSeparator", "/":
		return string(filepath.Separator), true, ""
	case "workspaceFolderBasename":
		return path.Base(strings.ReplaceAll(r.v.Workspace, `\`, "/")), r.v.Workspace != "", "there is no workspace"
	}
	return r.v.Workspace, r.v.Workspace != "", "there is no workspace"
}

// invalidReason says why a text with resolved variables cannot be used, or "".
// It does not quote the text.
func invalidReason(where, s string) string {
	kind, _, _ := strings.Cut(where, " ")
	switch {
	case kind == "command" && strings.TrimSpace(s) == "":
		return "empty with the values of its variables"
	case kind == "header" && strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) && r != '\t' }):
		return "a value contains a line break or another control character"
	case kind == "command" && strings.ContainsFunc(s, unicode.IsControl), strings.ContainsRune(s, 0):
		return "a value contains a control character"
	case kind == "url":
		if why := urlFault(strings.ReplaceAll(s, "$", "%24")); why != "" {
			return "with the values of its variables the url " + why
		}
	}
	return ""
}

// VariableUse is one use of a variable in a configuration.
type VariableUse struct {
	Kind  string `json:"kind" doc:"For example user or secret"` // [FromEnv] and the others
	Name  string `json:"name"`
	Where string `json:"where" doc:"For example header Authorization"`
	// Target may contain unresolved variables.
	Target string `json:"target" doc:"Host or command that receives the value"`
}

// Variables lists the variables of an unresolved configuration, including those
// in defaults, in a fixed order without duplicates. Show them before the user
// approves the configuration.
func (c *Config) Variables() []VariableUse {
	var out []VariableUse
	target, seen := c.Target(), map[[3]string]bool{}
	c.texts(func(where, s string, _ func(*Config, string)) {
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

// Target returns the hosts or the command of a server, for display. It contains
// no user names, paths or arguments, which may have tokens.
func (c *Config) Target() string {
	if len(c.URLs) == 0 {
		return printableText(c.Command)
	}
	var hosts []string
	for _, u := range c.URLs {
		if h := host(u); !slices.Contains(hosts, h) {
			hosts = append(hosts, h)
		}
	}
	return printableText(strings.Join(hosts, ", "))
}

// host returns the host of a URL that may contain variables.
func host(u string) string {
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

// displayPosition returns the position of a variable, for display.
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

// Digest returns "sha256:" and the hex SHA-256 of the configuration as JSON. It
// is computed before variables are resolved, so it does not depend on their
// values. File and line do not count.
func (c *Config) Digest() string {
	if c.Source != "" {
		return c.Source
	}
	js, err := json.Marshal(c)
	if err != nil { // cannot fail: it has only strings, numbers and maps
		panic(err)
	}
	sum := sha256.Sum256(js)
	return "sha256:" + hex.EncodeToString(sum[:])
}
