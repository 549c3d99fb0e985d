package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/pattern"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/upstream"
)

// moved is a value that goes to the secrets.
type moved struct {
	Secret string `json:"secret"`
	Server string `json:"server"`
	Where  string `json:"where"` // as env GITHUB_TOKEN
	value  string // "" where the person has to set it
}

// tokenText is the beginning of tokens that are known by it, and what follows.
// AKIA is not among them: it begins the name of a key, not the key.
const tokenText = `(?:gh[pousr]_|github_pat_|glpat-|sk-|sk_|xox[abeoprs]-|xapp-|AIza|hf_|npm_|eyJ|ntn_|lin_api_|dop_v1_)[A-Za-z0-9._=/+-]{8,}`

var (
	// secretKey is a variable or a header with a secret.
	secretKey = pattern.New(`(?i)token|secret|passw|passphrase|passcode|webhook|credential|api[-_]?key|apikey|access[-_]?key|private[-_]?key|(^|[-_])(key|pat|auth|pwd|cookie)([-_]|$)|authorization|cookie`)
	// secretFlag is a flag or a parameter with a secret. It is narrower: flags
	// have all kinds of names, as --max-tokens and --key-file.
	secretFlag = pattern.New(`(?i)^key$|(^|[-_.])(api|access|secret|private|auth|account|service)[-_]?key$|apikey$|` +
		`(^|[-_.])(auth|access|api|bot|refresh)?(token|secret|password|passwd|passphrase|pwd|pat|credentials?|authorization|bearer)$|(?-i:[a-z](Token|Secret|Password)$)`)
	// userPassword is user:password@host where that is no URL, as in a DSN, and
	// notUsers are what else has a : and a @.
	userPassword = pattern.New(`^([A-Za-z0-9_.%+-]+):([^@\s/]{4,})@[A-Za-z0-9(\[]`)
	notUsers     = pattern.New(`(?i)^(mailto|npm|jsr|sip|acct|xmpp):|@sha256:`)
	// inPairs is the password in a list, as Server=x;Password=y.
	inPairs = pattern.New(`(?i)((?:^|[;&?\s])(?:password|passwd|pwd|accountkey|sharedaccesskey|sharedsecret)\s?=\s?)([^;&\s'"]+)`)
	// hook is the address of a webhook, which who has it may post to.
	hook       = pattern.New(`(?i)^https://(hooks\.slack\.com/|(\w+\.)?discord(app)?\.com/api/webhooks/|[^/]+\.webhook\.office\.com/|chat\.googleapis\.com/v1/spaces/)[^/]*\w`)
	knownToken = pattern.New(`(^|[^A-Za-z0-9_$-])(` + tokenText + `)`)
	keyID      = pattern.New(`^A[KS]IA[A-Z0-9]{12,}$`)
	pathLike   = pattern.New(`^([./~]|[A-Za-z]:[\\/])|(?i)\.(pem|key|crt|json|ya?ml|txt|env)$`)
	plainWord  = pattern.New(`(?i)^(true|false|yes|no|none|null|auto|default|[0-9]{1,6})$`)
	aURL       = pattern.New(`^[A-Za-z][A-Za-z0-9+.-]*://`)
	aVariable  = pattern.New(`^[A-Za-z_][A-Za-z0-9_]*$`)
	jsonPair   = pattern.New(`"([A-Za-z0-9_-]{1,64})"\s*:\s*"([^"\\]*)"`)
	scheme     = pattern.New(`(?i)^(bearer|basic|token) +`)
	inputRef   = pattern.New(`\$\{input:([^}]+)\}`)
	notInName  = pattern.New(`[^A-Za-z0-9]+`)
)

// mover takes what looks like a secret out of one server, by the name it has or
// by how it begins, and puts references in its place.
type mover struct {
	server string
	pick   func(name, value string) (string, error) // the name under which a value can be kept
	out    []moved
	err    error
}

// moveSecrets takes secrets out of env, headers, arguments and URLs, and values
// that the client asks a person for. The maps and lists of c are new ones then.
func moveSecrets(c *upstream.Config, inputs []upstream.Input, pick func(name, value string) (string, error)) ([]moved, error) {
	m := &mover{server: c.Name, pick: pick}
	c.Env, c.Headers, c.Args, c.URLs = maps.Clone(c.Env), maps.Clone(c.Headers), slices.Clone(c.Args), slices.Clone(c.URLs)
	for _, key := range slices.Sorted(maps.Keys(c.Env)) {
		c.Env[key] = m.variable("env "+key, key, c.Env[key])
	}
	for _, key := range slices.Sorted(maps.Keys(c.Headers)) {
		c.Headers[key] = m.header("header "+key, key, c.Headers[key])
	}
	m.args(c.Args)
	for i, u := range c.URLs {
		c.URLs[i] = m.url("url", u)
	}
	if c.OAuth != nil {
		client := *c.OAuth
		if c.OAuth = &client; secretive(client.Secret) {
			client.Secret = m.take("oauth client secret", "client secret", client.Secret)
		}
	}
	m.inputs(c, inputs)
	return m.out, m.err
}

// take keeps a value, and returns what stands in its place.
func (m *mover) take(where, key, value string) string {
	name, err := m.pick(secretFor(m.server, key), value)
	if err != nil {
		m.err = err
		return value
	}
	m.out = append(m.out, moved{name, m.server, where, value})
	return "${{secrets." + name + "}}"
}

// secretive reports whether a value of something with a secret's name can be one.
func secretive(value string) bool {
	return len(value) >= 4 && !strings.Contains(value, "${") && !keyID().MatchString(value)
}

// likely is secretive for flags and parameters, which have paths and plain words too.
func likely(value string) bool {
	return secretive(value) && !pathLike().MatchString(value) && !plainWord().MatchString(value)
}

// variable is a variable of the environment.
func (m *mover) variable(where, key, value string) string {
	isURL := aURL().MatchString(value)
	switch {
	case secretKey().MatchString(key) && secretive(value) && (!isURL || strings.Contains(strings.ToLower(key), "webhook")):
		return m.take(where, key, value)
	case isURL:
		return m.url(where, value)
	}
	if p := userPassword().FindStringSubmatchIndex(value); p != nil && secretive(value[p[4]:p[5]]) && !notUsers().MatchString(value) {
		return value[:p[4]] + m.take(where, "password", value[p[4]:p[5]]) + value[p[5]:]
	}
	return m.tokens(where, key, value)
}

// header is one header, whose scheme stays.
func (m *mover) header(where, key, value string) string {
	head := scheme().FindString(value)
	if rest := value[len(head):]; secretKey().MatchString(key) && secretive(rest) {
		return head + m.take(where, key, rest)
	}
	return m.tokens(where, key, value)
}

// args looks at arguments with those that are values of the one before.
func (m *mover) args(args []string) {
	for i := 0; i < len(args); i++ {
		flag, value, set := strings.Cut(args[i], "=")
		switch {
		case !strings.HasPrefix(flag, "-"):
			args[i] = m.word(fmt.Sprintf("argument %d", i+1), args[i])
		case set:
			args[i] = flag + "=" + m.flag(flag, value)
		case strings.HasPrefix(flag, "-e") && !strings.HasPrefix(flag, "--") && len(flag) > 2: // never with a value: that has a =
		case i+1 < len(args) && !strings.HasPrefix(args[i+1], "-"):
			i++
			args[i] = m.flag(flag, args[i])
		}
	}
}

// flag is the value of a flag.
func (m *mover) flag(flag, value string) string {
	where, name := "argument "+flag, strings.TrimLeft(flag, "-")
	switch {
	case flag == "-H" || name == "header" || name == "headers":
		key, rest, ok := strings.Cut(value, ":")
		if !ok {
			return value
		}
		text := strings.TrimLeft(rest, " ")
		key = strings.TrimSpace(key)
		return value[:len(value)-len(text)] + m.header(where+" "+key, key, text)
	case flag == "-e" || name == "env":
		key, rest, ok := strings.Cut(value, "=")
		if !ok {
			return value
		}
		return key + "=" + m.variable(where+" "+key, key, rest)
	case len(flag) > 2 && flag[:2] == "-e" && aVariable().MatchString(flag[2:]): // -eNAME=VALUE
		return m.variable("argument -e "+flag[2:], flag[2:], value)
	case secretFlag().MatchString(name) && likely(value) && !aURL().MatchString(value):
		return m.take(where, name, value)
	}
	return m.word(where, value)
}

// word is an argument that is not known by the name of a flag.
func (m *mover) word(where, value string) string {
	if aURL().MatchString(value) {
		return m.url(where, value)
	}
	if key, rest, ok := strings.Cut(value, "="); ok && aVariable().MatchString(key) {
		return key + "=" + m.variable(where+" "+key, key, rest)
	}
	value = jsonPair().ReplaceAllStringFunc(value, func(pair string) string {
		p := jsonPair().FindStringSubmatchIndex(pair)
		key, text := pair[p[2]:p[3]], pair[p[4]:p[5]]
		if !secretFlag().MatchString(key) || !likely(text) {
			return pair
		}
		return pair[:p[4]] + m.take(where+" "+key, key, text) + pair[p[5]:]
	})
	return m.tokens(where, "token", value)
}

// tokens takes those out of a text that are known by how they begin.
func (m *mover) tokens(where, key, text string) string {
	text = inPairs().ReplaceAllStringFunc(text, func(s string) string {
		p := inPairs().FindStringSubmatch(s)
		if !likely(p[2]) {
			return s
		}
		return p[1] + m.take(where, "password", p[2])
	})
	const shortest = 16 // and with a digit: sk- begins other words too
	return knownToken().ReplaceAllStringFunc(text, func(s string) string {
		token := knownToken().FindStringSubmatch(s)[2]
		if len(token) < shortest || !strings.ContainsAny(token, "0123456789") {
			return s
		}
		return strings.TrimSuffix(s, token) + m.take(where, key, token)
	})
}

// url takes the password, the parameters and the tokens out of a URL. It edits the
// text, so that all else stays as it is written: what is taken is as the URL has it.
func (m *mover) url(where, u string) string {
	if hook().MatchString(u) && secretive(u) {
		return m.take(where, "webhook", u)
	}
	begin := strings.Index(u, "://") + len("://")
	if begin < len("://") {
		return u
	}
	head, rest := u[:begin], u[begin:]
	fragment := ""
	if i := strings.IndexByte(rest, '#'); i >= 0 {
		rest, fragment = rest[:i], rest[i:]
	}
	rest, query, asked := strings.Cut(rest, "?")
	end := strings.IndexByte(rest, '/')
	if end < 0 {
		end = len(rest)
	}
	authority, path := rest[:end], rest[end:]
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		user, password, ok := strings.Cut(authority[:i], ":")
		if ok && password != "" && !strings.Contains(password, "${") {
			password = m.take(where+" password", "password", password)
		}
		if user = m.tokens(where+" user", "token", user); ok {
			user += ":" + password
		}
		authority = user + authority[i:]
	}
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		segments[i] = m.tokens(where, "token", segment)
	}
	u = head + authority + strings.Join(segments, "/")
	if asked {
		u += "?" + m.query(where, query)
	}
	return u + fragment
}

func (m *mover) query(where, query string) string {
	pairs := strings.Split(query, "&")
	for i, pair := range pairs {
		key, value, _ := strings.Cut(pair, "=")
		switch {
		case secretFlag().MatchString(key) && likely(value):
			pairs[i] = key + "=" + m.take(where+" parameter "+key, key, value)
		case value != "":
			pairs[i] = key + "=" + m.tokens(where+" parameter "+key, key, value)
		}
	}
	return strings.Join(pairs, "&")
}

// inputs puts references where the client asks a person for a value.
func (m *mover) inputs(c *upstream.Config, inputs []upstream.Input) {
	input := func(where, s string) string {
		return inputRef().ReplaceAllStringFunc(s, func(ref string) string {
			id := inputRef().FindStringSubmatch(ref)[1]
			for _, in := range inputs {
				if in.ID == id && !in.Password && in.Default != "" {
					return in.Default
				}
			}
			name := secretFor("", id)
			if !slices.ContainsFunc(m.out, func(o moved) bool { return o.Secret == name && o.value == "" }) {
				m.out = append(m.out, moved{name, c.Name, where, ""})
			}
			return "${{secrets." + name + "}}"
		})
	}
	for _, key := range slices.Sorted(maps.Keys(c.Env)) {
		c.Env[key] = input("env "+key, c.Env[key])
	}
	for _, key := range slices.Sorted(maps.Keys(c.Headers)) {
		c.Headers[key] = input("header "+key, c.Headers[key])
	}
	for i, v := range c.Args {
		c.Args[i] = input("args", v)
	}
	for i, v := range c.URLs {
		c.URLs[i] = input("url", v)
	}
}

// secretFor is the name of the secret for a key of a server.
func secretFor(server, key string) string {
	upper := func(s string) string {
		return strings.Trim(strings.ToUpper(notInName().ReplaceAllString(s, "_")), "_")
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
