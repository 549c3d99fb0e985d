package scan

import (
	"strings"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
)

// Patterns of secrets in text that people and programs write. Unlike the rules for
// skills, they prefer a false alarm to a miss.
const (
	passwordName = `password|passwd|passphrase|pwd|secret|secret_key_base|[_-]pass|(?:api|access|account|secret|private|auth|signing|encryption|master)[_ -]?key|密码|口令|密钥`
	secretValue  = `[^\s"'\x60\\<>，。；、）」”|\p{Han}]{6,}`
	quotedValue  = `(\\?["'\x60])?(` + secretValue + `)(\\?["'\x60])?`
)

var (
	// A key block consists of header lines and lines of base64, of which only the
	// last may be short.
	keyBlock = lazyregexp.New(`-----BEGIN [A-Z ]*PRIVATE KEY[A-Z ]*-----((?:(?:[\s>|]|\\[nr])+(?:[A-Za-z-]+: [^\n\\]*|[A-Za-z0-9+/=]{16,}))*)(?:(?:[\s>|]|\\[nr])+[A-Za-z0-9+/=]{1,15})?(?:(?:[\s>|]|\\[nr])*-----END [A-Z ]*PRIVATE KEY[A-Z ]*-----)?`)

	// Formats of services' keys: those of group 1 have a digit, those of group 2 also a
	// part of random characters.
	keyFormats = lazyregexp.New(`\b(?:((?:AKIA|ASIA)[A-Z2-7]{16}\b|eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*|lo_[A-Za-z0-9_-]{40,}|(?:gh[pousr]_|[sr]k_(?:live|test)_|npm_|hf_|dop_v1_|shpat_|lin_api_|ntn_)[A-Za-z0-9]{16,}|(?:github_pat_|glpat-|xox[abprs]-|xapp-|pypi-|AIza)[A-Za-z0-9_-]{16,}|SG\.[A-Za-z0-9_.-]{16,}|hooks\.slack\.com/[a-z]+/[A-Za-z0-9/_-]{20,})|(sk-[A-Za-z0-9_-]{16,}))`)

	authorization = lazyregexp.New(`(?i)\b(?:bearer|basic|authorization:|x-api-key:)\s+["']?([A-Za-z0-9._~+/=-]{16,})`)
	namedValue    = lazyregexp.New(`(?i)(?:(` + passwordName + `)|token|key|令牌)["'\x60\\*_]*[ \t]*(:=|=>|={1,2}|[:：])[*_]*(\s*)` + quotedValue)
	statement     = lazyregexp.New(`(?i)(?:\b(?:password|passwd|passphrase|secret|token|(?:api|access)[ _-]?key)[ \t]+(?:is[ \t]*:?[ \t]*)?|(?:密码|口令|密钥|令牌)(?:[是为]|[ \t])[ \t]*)` + quotedValue)
	option        = lazyregexp.New(`(?i)--?(?:[a-z-]*-)?(?:password|passwd|pass|secret|token|(?:api|access|secret)-key)[ \t]+` + quotedValue)
	userOption    = lazyregexp.New(`(?:^|\s)(?:-u|--user|--proxy-user)[ \t=]*["']?[^\s:"']*:` + quotedValue)
	queryValue    = lazyregexp.New(`(?i)[?&][a-z0-9_.-]*(?:token|key|sig|signature|secret|password|pwd)=([^&\s#"'<>)\x60]{6,})`)
	cookies       = lazyregexp.New(`(?i)\bcookie["']?[ \t]*[:=][ \t]*([^\r\n"'\x60]+)`)
	urlPassword   = lazyregexp.New(`://[^\s/?#:@"'<>]*:([^\s"'<>\x60]+)@`)

	port      = lazyregexp.New(`^[0-9]{1,5}(?:[/?#,)\]]|$)`)
	nextPair  = lazyregexp.New(`[&;,][A-Za-z_.-]+[=:]`)
	reference = lazyregexp.New(`^(?:\$[A-Z_]+$|\$[{(]|\{\{|(?:~|\.{1,2})?/[a-z.]+/|[A-Za-z_][A-Za-z0-9_.]*[(\[]|process\.env|os\.environ)`)
	plainWord = lazyregexp.New(`(?i)^(?:.*(?:password|passwd|secret|token|密码)|strings?|number|boolean|required|optional|undefined|incorrect|stdin|(?:any|some|no)thing)$`)
)

// FindSecrets returns the parts of a text that look like secrets: private keys,
// tokens with a known prefix, JSON Web Tokens, passwords in addresses, cookies and
// commands, and values that the text calls a password, a key or a token. It
// returns each once. They have at least six characters. It cannot find a secret that
// looks like other text.
func FindSecrets(text string) []string {
	var found []string
	seen := map[string]bool{}
	add := func(v string) {
		if len([]rune(v)) >= 6 && !seen[v] {
			seen[v] = true
			found = append(found, v)
		}
	}
	rest := text
	for _, at := range keyBlock.FindAllStringSubmatchIndex(text, -1) {
		if at[2] < at[3] || at[1] == len(text) || strings.Contains(text[at[0]:at[1]], "-----END") { // unlike its first line in a sentence
			add(text[at[0]:at[1]])
			rest = strings.Replace(rest, text[at[0]:at[1]], " ", 1)
		}
	}
	text = rest
	for _, m := range keyFormats.FindAllStringSubmatch(text, -1) {
		if v := strings.TrimRight(m[0], "."); hasDigit(v) && (m[2] == "" || hasRandomPart(v)) {
			add(v)
		}
	}
	for _, m := range authorization.FindAllStringSubmatch(text, -1) {
		if hasDigit(m[1]) { // unlike words
			add(m[1])
		}
	}
	for _, m := range namedValue.FindAllStringSubmatch(text, -1) {
		v, quoted := valueOf(m[4:])
		direct := m[2] != ":" && m[2] != "：" && m[3] == "" // as in NAME=value
		switch {
		case m[1] == "": // the names of many things end in key
			if hasDigit(v) && hasLetter(v) && len(v) >= 12 {
				add(v)
			}
		case hasDigit(v) || quoted || direct || !isWord(v):
			add(v)
		}
	}
	for _, m := range statement.FindAllStringSubmatch(text, -1) {
		if v, quoted := valueOf(m[1:]); hasDigit(v) && (quoted || hasLetter(v)) {
			add(v)
		}
	}
	for _, re := range []*lazyregexp.Regexp{option, userOption} {
		for _, m := range re.FindAllStringSubmatch(text, -1) {
			if v, quoted := valueOf(m[1:]); !strings.HasPrefix(v, "-") && (quoted || !isWord(v) || len(v) >= 8) {
				add(v)
			}
		}
	}
	for _, m := range queryValue.FindAllStringSubmatch(text, -1) {
		if hasDigit(m[1]) || len(m[1]) >= 16 {
			add(m[1])
		}
	}
	for _, m := range cookies.FindAllStringSubmatch(text, -1) {
		for pair := range strings.SplitSeq(m[1], ";") {
			if _, v, _ := strings.Cut(strings.TrimSpace(pair), "="); !strings.ContainsAny(v, " ,") && hasDigit(v) && (hasLetter(v) || len(v) >= 16) {
				add(v)
			}
		}
	}
	for _, m := range urlPassword.FindAllStringSubmatch(text, -1) {
		if port.MatchString(m[1]) {
			continue
		}
		add(m[1])
		if first, _, ok := strings.Cut(m[1], "@"); ok { // the password, or its start
			add(first)
		}
	}
	return found
}

// valueOf returns the value in groups that quotedValue matched, and whether it is in
// quotes, or "" if it is not a secret.
func valueOf(groups []string) (value string, quoted bool) {
	value, quoted = groups[1], groups[0] != "" && groups[0] == groups[2]
	if !quoted {
		if at := nextPair.FindStringSubmatchIndex(value); at != nil {
			value = value[:at[0]]
		}
		value = strings.TrimRight(value, ".,;:)]}>*")
	}
	if groups[0] != "" && !quoted && !hasDigit(value) || reference.MatchString(value) || plainWord.MatchString(value) || strings.Trim(value, "*•.xX") == "" {
		return "", false // such as the first of several words in quotes
	}
	return value, quoted
}

func hasDigit(s string) bool { return strings.ContainsAny(s, "0123456789") }

func hasLetter(s string) bool { return strings.ToLower(s) != strings.ToUpper(s) }

// isWord reports whether s looks like a word, or words joined as in names of code.
func isWord(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || strings.ContainsRune("_.-/,&*?", r))
	})
}

// hasRandomPart reports whether a part of s between punctuation has at least eight
// characters and both digits and letters.
func hasRandomPart(s string) bool {
	for part := range strings.FieldsFuncSeq(s, func(r rune) bool { return r == '-' || r == '_' }) {
		if len(part) >= 8 && hasDigit(part) && hasLetter(part) {
			return true
		}
	}
	return false
}
