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

	"github.com/loadout-dev/loadout/skill"
)

// Variables are the values that a configuration may use. A nil func, and an
// empty path, is a kind that this configuration does not get, so that using it
// is an [Unset]: Env of a configuration that a skill, a project or a hub brought
// is never the environment of the process.
//
// The funcs for values report false for one that there is none of. They are called
// again for each use, by the goroutine that calls [Config.Resolve].
type Variables struct {
	Env    func(name string) (string, bool) // ${NAME}, ${env:NAME}, ${env://NAME}
	Input  func(id string) (string, bool)   // ${input:ID}
	User   func(name string) (string, bool) // ${{user.NAME}}
	Secret func(name string) (string, bool) // ${{secrets.NAME}}
	// Hint says how the person gives a value to ${{user.NAME}} and ${{secrets.NAME}},
	// where the program that resolves them has ways of its own. The kind is [FromUser]
	// or [FromSecret].
	Hint func(kind, name string) string
	// File reads a file of [Config.EnvFile], of at most [MaxEnvFile] bytes. It is
	// never called for a configuration that has an owner. Where it is an
	// [*EnvFileError], that says all that is said.
	File func(path string) ([]byte, error)

	// Dir is where a command begins whose configuration names neither a directory
	// nor the workspace; "" is wherever we are.
	Dir       string
	Workspace string // ${workspaceFolder}, ${workspaceFolderBasename}
	Home      string // ${userHome}
	// Skill is where the files of the skill are that brings the configuration:
	// ${SKILL_DIR} and its other names.
	Skill string
}

// skillNames are the names of the folder of a skill.
var skillNames = []string{"SKILL_DIR", "CLAUDE_SKILL_DIR", "CLAUDE_PLUGIN_ROOT", "LOADOUT_SKILL"}

// Unset is a variable without a value. It never says a value.
type Unset struct {
	Kind  string // [FromEnv] and the others
	Name  string // of the variable; "" where the kind is [Invalid]
	Where string // as in: header Authorization of server "x"
	Hint  string // what to do
}

// String says it in one line.
func (u Unset) String() string {
	if u.Kind == Invalid {
		return u.Where + " cannot be used: " + u.Hint
	}
	return fmt.Sprintf("%s has no value for %s: %s", u.Where, u.ref(), u.Hint)
}

func (u Unset) ref() string {
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

// Resolve returns a copy with its variables replaced, in command, args, env,
// directory, URLs, headers and envFile, not in names of variables or headers. What
// the file of envFile says is in its env then. Where a
// variable without a default has no value, or a value cannot stand where it
// should, it returns nil and what is missing, at most 100 of them in a fixed order:
// the server is not configured.
//
// A default is what follows :- and counts for a value that is unset or empty;
// it may have variables itself. Values are never looked at for variables. $${
// stands for the text ${. The copy has the [Config.Digest] of c.
func (c *Config) Resolve(v Variables) (*Config, []Unset) {
	r := &resolver{c: c, v: v}
	if c.Owner != "" { // somebody else's word is no reason to read the person's files
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
		r.envFile(&out)
	}
	if len(r.unset) > 0 {
		return nil, r.unset
	}
	if out.Dir == "" && out.Command != "" {
		out.Dir = c.begins(v)
	}
	out.hidden, out.tokens = r.hidden, &sentTokens{}
	if out.Type == "" && len(out.URLs) > 0 && !slices.ContainsFunc(out.URLs, func(u string) bool { return !socket(u) }) {
		out.Type = WebSocket
	}
	return &out, nil
}

// texts calls f for all that may have variables, in a fixed order, with a func
// that sets the same text of a copy.
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
	unset []Unset
	total int

	hidden []string
}

func (r *resolver) miss(kind, name, where, hint string) {
	u := Unset{Kind: kind, Name: skill.OneLine(name), Where: place(where) + " of server " + printable(quote(r.c.Name)), Hint: hint}
	const most = 100 // the server is not usable for the first one already
	if len(r.unset) < most && !slices.Contains(r.unset, u) {
		r.unset = append(r.unset, u)
	}
}

// expand replaces the variables of one text, and looks at what comes out.
func (r *resolver) expand(where, s string) string {
	if !strings.Contains(s, "${") {
		return s
	}
	var b strings.Builder
	r.parts(&b, where, template(s, 0))
	if len(r.unset) > 0 {
		return ""
	}
	out := b.String()
	if why := unfit(where, out); why != "" {
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
			r.miss(Invalid, "", where, fmt.Sprintf("with the values of its variables it is longer than %d bytes", maxExpanded))
			return
		}
		b.WriteString(text)
	}
}

// minHidden is the length in bytes from which a value is hidden: a shorter one is
// in many words.
const minHidden = 4

// hide notes a value that comes from the person or the environment.
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

// lookup finds a value, or says how to give it one.
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
		return from(r.v.Env, r.unseen("the environment", v.name), "set the variable "+v.name+", or write ${"+v.name+":-DEFAULT}")
	case FromInput:
		return from(r.v.Input, r.unseen("what you are asked for", v.name), "loadout secret set "+v.name)
	case FromUser:
		return from(r.v.User, r.unseen("who you are", v.name), r.hint(v, "write it in your configuration, under user: as "+v.name))
	case FromSecret:
		return from(r.v.Secret, r.unseen("your secrets", v.name), r.hint(v, r.giveSecret(v.name)))
	case FromPath:
		return r.path(v.name)
	}
	return "", false, "write ${NAME}, ${{secrets.NAME}} or ${{user.NAME}}, or $${ for the text itself"
}

// ownerProject is the [Config.Owner] of what a project brings.
const ownerProject = "project"

// unseen says what to do where a configuration does not get a kind of values: that
// depends on whose it is. It names no kind of variable that this one does not get
// either; name is "" where another variable is no help.
func (r *resolver) unseen(kind, name string) string {
	var next []string
	whose := "servers of this configuration do"
	switch skill, _ := r.c.bySkill(); {
	case r.c.Owner == ownerProject:
		whose = "servers of a project do"
		next = append(next, "move the server into your own servers.yaml")
	case skill != "":
		whose = "servers of a skill do"
	case r.c.Owner != "":
		whose = "what comes from " + printable(r.c.Owner) + " does"
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
	return whose + " not see " + kind + ": " + strings.Join(next, ", or ")
}

// hint is how a variable gets a value, by the program itself unless that says nothing.
func (r *resolver) hint(v *variable, usual string) string {
	if r.v.Hint == nil {
		return usual
	}
	return r.v.Hint(v.kind, v.name)
}

// giveSecret says how a secret gets a value that this configuration sees.
func (r *resolver) giveSecret(name string) string {
	next := "loadout secret set " + name
	if skill, ok := r.c.bySkill(); ok {
		next += ", and let the skill have it: loadout secret grant " + name + " --skill " + printable(skill)
	}
	return next
}

// bySkill is the key of the skill that brings the server.
func (c *Config) bySkill() (key string, ok bool) {
	if i := strings.LastIndex(c.Owner, "@sha256:"); i > 0 {
		return c.Owner[:i], true
	}
	return "", false
}

func (r *resolver) path(name string) (string, bool, string) {
	switch name {
	case "userHome":
		return r.v.Home, r.v.Home != "", r.unseen("the home directory", "")
	case "pathSeparator", "/":
		return string(filepath.Separator), true, ""
	case "workspaceFolderBasename":
		return path.Base(strings.ReplaceAll(r.v.Workspace, `\`, "/")), r.v.Workspace != "", "there is no workspace"
	}
	return r.v.Workspace, r.v.Workspace != "", "there is no workspace"
}

// unfit says why a text with its variables resolved cannot be used, "" where it
// can. It does not quote it.
func unfit(where, s string) string {
	kind, _, _ := strings.Cut(where, " ")
	switch {
	case kind == "command" && strings.TrimSpace(s) == "":
		return "with the values of its variables it is empty"
	case kind == "header" && strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) && r != '\t' }):
		return "a value has a line break or another control character"
	case kind == "command" && strings.ContainsFunc(s, unicode.IsControl), strings.ContainsRune(s, 0):
		return "a value has a control character"
	case kind == "url":
		if why := badURL(strings.ReplaceAll(s, "$", "%24")); why != "" {
			return "with the values of its variables the url " + why
		}
	}
	return ""
}

// Use is one variable of a configuration, and who gets its value.
type Use struct {
	Kind string `json:"kind"` // [FromEnv] and the others
	Name string `json:"name"`
	// Where it stands, as in: header Authorization.
	Where string `json:"where"`
	// Target is the host, or hosts, that its value goes to, or the command. It
	// has variables where the configuration says so.
	Target string `json:"target"`
}

// Uses lists the variables of a configuration that is not resolved yet, those
// in defaults too, in a fixed order and each place once: what a person should
// know before saying yes to it.
func (c *Config) Uses() []Use {
	var out []Use
	target, seen := c.Target(), map[[3]string]bool{}
	c.texts(func(where, s string, _ func(*Config, string)) {
		each(template(s, 0), func(v *variable) {
			u := Use{Kind: v.kind, Name: printable(v.name), Where: place(where), Target: target}
			if k := [3]string{u.Kind, u.Name, u.Where}; !seen[k] {
				seen[k] = true
				out = append(out, u)
			}
		})
	})
	return out
}

// Target is where the server is, for people: the hosts of its URLs, or its
// command. It has no user names, paths and arguments, in which there may be
// tokens.
func (c *Config) Target() string {
	if len(c.URLs) == 0 {
		return printable(c.Command)
	}
	var hosts []string
	for _, u := range c.URLs {
		if h := host(u); !slices.Contains(hosts, h) {
			hosts = append(hosts, h)
		}
	}
	return printable(strings.Join(hosts, ", "))
}

// host is that of a URL with variables in it, which are left as they are.
func host(u string) string {
	if !strings.Contains(u, "${") {
		if parsed, err := url.Parse(u); err == nil {
			return parsed.Host
		}
	}
	var b strings.Builder
	authority := false
	for _, p := range template(u, 0) {
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

// place is where a variable stands, for people.
func place(where string) string {
	if len(where) > 100 {
		where = strings.ToValidUTF8(where[:100], "") + "…"
	}
	return printable(where)
}

func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '\ufffd'
		}
		return r
	}, s)
}

// Digest names a configuration by what it says: "sha256:" and the hex of the
// SHA-256 of its normal form as JSON, before variables were resolved, so that no
// value is in it. Where it was declared does not count.
func (c *Config) Digest() string {
	if c.Source != "" {
		return c.Source
	}
	js, err := json.Marshal(c)
	if err != nil { // texts, numbers and maps of texts only
		panic(err)
	}
	sum := sha256.Sum256(js)
	return "sha256:" + hex.EncodeToString(sum[:])
}
