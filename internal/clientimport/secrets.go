package clientimport

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
	"github.com/loadout-dev/loadout/internal/secretname"
	"github.com/loadout-dev/loadout/internal/upstream"
)

// MovedSecret describes a value that an import moves to a secret. The value is
// not exported, so that it cannot appear in output.
type MovedSecret struct {
	Secret string `json:"secret"`
	Server string `json:"server"`
	Where  string `json:"where"` // position such as "env GITHUB_TOKEN"
	value  string // "" if the user must set it
}

// tokenText matches tokens with a known prefix. It omits AKIA, because a string
// with this prefix is a key ID, not the key itself.
const tokenText = `(?:gh[pousr]_|github_pat_|glpat-|sk-|sk_|xox[abeoprs]-|xapp-|AIza|hf_|npm_|eyJ|ntn_|lin_api_|dop_v1_)[A-Za-z0-9._=/+-]{8,}`

var (
	// secretKey matches names of variables and headers that usually contain
	// secrets.
	secretKey = lazyregexp.New(`(?i)token|secret|passw|passphrase|passcode|webhook|credential|api[-_]?key|apikey|access[-_]?key|private[-_]?key|(^|[-_])(key|pat|auth|pwd|cookie)([-_]|$)|authorization|cookie`)
	// secretFlag matches names of flags and parameters that usually contain
	// secrets. It is narrower than secretKey, because flags have names like
	// --max-tokens and --key-file.
	secretFlag = lazyregexp.New(`(?i)^key$|(^|[-_.])(api|access|secret|private|auth|account|service)[-_]?key$|apikey$|` +
		`(^|[-_.])(auth|access|api|bot|refresh)?(token|secret|password|passwd|passphrase|pwd|pat|credentials?|authorization|bearer)$|(?-i:[a-z](Token|Secret|Password)$)`)
	// userPassword matches user:password@host outside a URL, as in a DSN.
	// notUsers matches other strings that contain ":" and "@".
	userPassword = lazyregexp.New(`^([A-Za-z0-9_.%+-]+):([^@\s/]{4,})@[A-Za-z0-9(\[]`)
	notUsers     = lazyregexp.New(`(?i)^(mailto|npm|jsr|sip|acct|xmpp):|@sha256:`)
	// inPairs matches a password in a list such as Server=x;Password=y.
	inPairs = lazyregexp.New(`(?i)((?:^|[;&?\s])(?:password|passwd|pwd|accountkey|sharedaccesskey|sharedsecret)\s?=\s?)([^;&\s'"]+)`)
	// hook matches webhook URLs, because anyone who knows such a URL can post
	// to it.
	hook       = lazyregexp.New(`(?i)^https://(hooks\.slack\.com/|(\w+\.)?discord(app)?\.com/api/webhooks/|[^/]+\.webhook\.office\.com/|chat\.googleapis\.com/v1/spaces/)[^/]*\w`)
	knownToken = lazyregexp.New(`(^|[^A-Za-z0-9_$-])(` + tokenText + `)`)
	keyID      = lazyregexp.New(`^A[KS]IA[A-Z0-9]{12,}$`)
	pathLike   = lazyregexp.New(`^([./~]|[A-Za-z]:[\\/])|(?i)\.(pem|key|crt|json|ya?ml|txt|env)$`)
	plainWord  = lazyregexp.New(`(?i)^(true|false|yes|no|none|null|auto|default|[0-9]{1,6})$`)
	aURL       = lazyregexp.New(`^[A-Za-z][A-Za-z0-9+.-]*://`)
	aVariable  = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)
	jsonPair   = lazyregexp.New(`"([A-Za-z0-9_-]{1,64})"\s*:\s*"([^"\\]*)"`)
	scheme     = lazyregexp.New(`(?i)^(bearer|basic|token) +`)
	inputRef   = lazyregexp.New(`\$\{input:([^}]+)\}`)
	notInName  = lazyregexp.New(`[^A-Za-z0-9]+`)
)

// secretMover replaces the likely secrets of one server with references. It
// recognizes secrets by key or by prefix.
type secretMover struct {
	server     string
	chooseName func(name, value string) (string, error) // returns the name of the secret for a value
	out        []MovedSecret
	err        error
}

// moveSecrets moves secrets from the environment, headers, arguments and URLs
// of c into the returned list, and replaces them with references. It copies the
// maps and slices of c before modifying them. After an error of pick, it does
// not call pick again.
func moveSecrets(c *upstream.Config, pick func(name, value string) (string, error)) ([]MovedSecret, error) {
	m := &secretMover{server: c.Name, chooseName: pick}
	c.Env, c.Headers, c.Args, c.URLs = maps.Clone(c.Env), maps.Clone(c.Headers), slices.Clone(c.Args), slices.Clone(c.URLs)
	for _, key := range slices.Sorted(maps.Keys(c.Env)) {
		c.Env[key] = m.moveFromVariable("env "+key, key, c.Env[key])
	}
	for _, key := range slices.Sorted(maps.Keys(c.Headers)) {
		c.Headers[key] = m.moveFromHeader("header "+key, key, c.Headers[key])
	}
	m.moveFromArgs(c.Args)
	for i, u := range c.URLs {
		c.URLs[i] = m.moveFromURL("url", u)
	}
	if c.OAuth != nil {
		client := *c.OAuth
		if c.OAuth = &client; looksLikeSecret(client.Secret) {
			client.Secret = m.moveValue("oauth client secret", "client secret", client.Secret)
		}
	}
	return m.out, m.err
}

// PlainSecrets returns the positions in c of values that look like secrets, such
// as "argument --api-key".
func PlainSecrets(c *upstream.Config) []string {
	changed := *c
	moved, _ := moveSecrets(&changed, func(name, _ string) (string, error) { return name, nil })
	var where []string
	for _, m := range moved {
		where = append(where, m.Where)
	}
	return where
}

// moveValue records a value as a secret and returns a reference to it.
func (m *secretMover) moveValue(where, key, value string) string {
	if m.err != nil {
		return value
	}
	name, err := m.chooseName(deriveSecretName(m.server, key), value)
	if err != nil {
		m.err = err
		return value
	}
	m.out = append(m.out, MovedSecret{name, m.server, where, value})
	return "${{secrets." + name + "}}"
}

// looksLikeSecret reports whether a value may be a secret if the name of its field
// suggests one.
func looksLikeSecret(value string) bool {
	return len(value) >= 4 && !strings.Contains(value, "${") && !keyID.MatchString(value)
}

// likelySecret is like looksLikeSecret but rejects paths and plain words, which are
// common in flags and parameters.
func likelySecret(value string) bool {
	return looksLikeSecret(value) && !pathLike.MatchString(value) && !plainWord.MatchString(value)
}

// moveFromVariable moves the secrets in an environment variable.
func (m *secretMover) moveFromVariable(where, key, value string) string {
	isURL := aURL.MatchString(value)
	switch {
	case secretKey.MatchString(key) && looksLikeSecret(value) && (!isURL || strings.Contains(strings.ToLower(key), "webhook")):
		return m.moveValue(where, key, value)
	case isURL:
		return m.moveFromURL(where, value)
	}
	if p := userPassword.FindStringSubmatchIndex(value); p != nil && looksLikeSecret(value[p[4]:p[5]]) && !notUsers.MatchString(value) {
		return value[:p[4]] + m.moveValue(where, "password", value[p[4]:p[5]]) + value[p[5]:]
	}
	return m.moveTokens(where, key, value)
}

// moveFromHeader moves the secret in a header, but not its authentication
// scheme.
func (m *secretMover) moveFromHeader(where, key, value string) string {
	head := scheme.FindString(value)
	if rest := value[len(head):]; secretKey.MatchString(key) && looksLikeSecret(rest) {
		return head + m.moveValue(where, key, rest)
	}
	return m.moveTokens(where, key, value)
}

// moveFromArgs moves the secrets in arguments. A flag's value may be in the
// next argument.
func (m *secretMover) moveFromArgs(args []string) {
	for i := 0; i < len(args); i++ {
		flag, value, set := strings.Cut(args[i], "=")
		switch {
		case !strings.HasPrefix(flag, "-"):
			args[i] = m.moveFromArg(fmt.Sprintf("argument %d", i+1), args[i])
		case set:
			args[i] = flag + "=" + m.moveFromFlag(flag, value)
		case strings.HasPrefix(flag, "-e") && !strings.HasPrefix(flag, "--") && len(flag) > 2: // -eNAME without a value copies a variable, so there is no value to move
		case i+1 < len(args) && !strings.HasPrefix(args[i+1], "-"):
			i++
			args[i] = m.moveFromFlag(flag, args[i])
		}
	}
}

func (m *secretMover) moveFromFlag(flag, value string) string {
	where, name := "argument "+flag, strings.TrimLeft(flag, "-")
	switch {
	case flag == "-H" || name == "header" || name == "headers":
		key, rest, ok := strings.Cut(value, ":")
		if !ok {
			return value
		}
		text := strings.TrimLeft(rest, " ")
		key = strings.TrimSpace(key)
		return value[:len(value)-len(text)] + m.moveFromHeader(where+" "+key, key, text)
	case flag == "-e" || name == "env":
		key, rest, ok := strings.Cut(value, "=")
		if !ok {
			return value
		}
		return key + "=" + m.moveFromVariable(where+" "+key, key, rest)
	case len(flag) > 2 && flag[:2] == "-e" && aVariable.MatchString(flag[2:]): // -eNAME=VALUE
		return m.moveFromVariable("argument -e "+flag[2:], flag[2:], value)
	case secretFlag.MatchString(name) && likelySecret(value) && !aURL.MatchString(value):
		return m.moveValue(where, name, value)
	}
	return m.moveFromArg(where, value)
}

// moveFromArg moves the secrets in an argument that is not the value of a known
// flag.
func (m *secretMover) moveFromArg(where, value string) string {
	if aURL.MatchString(value) {
		return m.moveFromURL(where, value)
	}
	if key, rest, ok := strings.Cut(value, "="); ok && aVariable.MatchString(key) {
		return key + "=" + m.moveFromVariable(where+" "+key, key, rest)
	}
	value = jsonPair.ReplaceAllStringFunc(value, func(pair string) string {
		p := jsonPair.FindStringSubmatchIndex(pair)
		key, text := pair[p[2]:p[3]], pair[p[4]:p[5]]
		if !secretFlag.MatchString(key) || !likelySecret(text) {
			return pair
		}
		return pair[:p[4]] + m.moveValue(where+" "+key, key, text) + pair[p[5]:]
	})
	return m.moveTokens(where, "token", value)
}

// moveTokens moves the tokens with a known prefix in text.
func (m *secretMover) moveTokens(where, key, text string) string {
	text = inPairs.ReplaceAllStringFunc(text, func(s string) string {
		p := inPairs.FindStringSubmatch(s)
		if !likelySecret(p[2]) {
			return s
		}
		return p[1] + m.moveValue(where, "password", p[2])
	})
	const shortest = 16 // a token must also contain a digit, because sk- starts other words too
	return knownToken.ReplaceAllStringFunc(text, func(s string) string {
		token := knownToken.FindStringSubmatch(s)[2]
		if len(token) < shortest || !strings.ContainsAny(token, "0123456789") {
			return s
		}
		return strings.TrimSuffix(s, token) + m.moveValue(where, key, token)
	})
}

// moveFromURL moves the password, secret parameters and tokens in a URL. It
// edits the text in order to preserve the rest of the URL.
func (m *secretMover) moveFromURL(where, u string) string {
	if hook.MatchString(u) && looksLikeSecret(u) {
		return m.moveValue(where, "webhook", u)
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
			password = m.moveValue(where+" password", "password", password)
		}
		if user = m.moveTokens(where+" user", "token", user); ok {
			user += ":" + password
		}
		authority = user + authority[i:]
	}
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		segments[i] = m.moveTokens(where, "token", segment)
	}
	u = head + authority + strings.Join(segments, "/")
	if asked {
		u += "?" + m.moveFromQuery(where, query)
	}
	return u + fragment
}

func (m *secretMover) moveFromQuery(where, query string) string {
	pairs := strings.Split(query, "&")
	for i, pair := range pairs {
		key, value, _ := strings.Cut(pair, "=")
		switch {
		case secretFlag.MatchString(key) && likelySecret(value):
			pairs[i] = key + "=" + m.moveValue(where+" parameter "+key, key, value)
		case value != "":
			pairs[i] = key + "=" + m.moveTokens(where+" parameter "+key, key, value)
		}
	}
	return strings.Join(pairs, "&")
}

// replaceInputs inserts references to the returned secrets in place of values for
// which the client prompts the user. It modifies the maps and slices of c.
func replaceInputs(c *upstream.Config, inputs []upstream.Input) (out []MovedSecret) {
	input := func(where, s string) string {
		return inputRef.ReplaceAllStringFunc(s, func(ref string) string {
			id := inputRef.FindStringSubmatch(ref)[1]
			for _, in := range inputs {
				if in.ID == id && !in.Password && in.Default != "" {
					return in.Default
				}
			}
			name := deriveSecretName("", id)
			if !slices.ContainsFunc(out, func(o MovedSecret) bool { return o.Secret == name }) {
				out = append(out, MovedSecret{name, c.Name, where, ""})
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
	return out
}

// deriveSecretName derives a secret's name from the server and the key.
func deriveSecretName(server, key string) string {
	upper := func(s string) string {
		return strings.Trim(strings.ToUpper(notInName.ReplaceAllString(s, "_")), "_")
	}
	s, k := upper(server), upper(key)
	name := k
	if s != "" && !strings.HasPrefix(k, s) {
		name = strings.Trim(s+"_"+k, "_")
	}
	name = name[:min(len(name), 100)]
	if secretname.Check(name) != nil {
		name = "SECRET_" + name
	}
	return name
}
