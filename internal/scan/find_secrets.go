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
	// keyBlock matches a private key: header lines, then lines of base64. Only the
	// last line may be short.
	keyBlock = lazyregexp.New(`-----BEGIN [A-Z ]*PRIVATE KEY[A-Z ]*-----((?:(?:[\s>|]|\\[nr])+(?:[A-Za-z-]+: [^\n\\]*|[A-Za-z0-9+/=]{16,}))*)(?:(?:[\s>|]|\\[nr])+[A-Za-z0-9+/=]{1,15})?(?:(?:[\s>|]|\\[nr])*-----END [A-Z ]*PRIVATE KEY[A-Z ]*-----)?`)

	// Formats of services' keys: those of group 1 have a digit, those of group 2 also a
	// part of random characters.
	keyFormats = lazyregexp.New(`^(?:((?:AKIA|ASIA)[A-Z2-7]{16}\b|eyJ[A-Za-z0-9_-]{8,1000}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*|lo_[A-Za-z0-9_-]{40,}|(?:gh[pousr]_|[sr]k_(?:live|test)_|npm_|hf_|dop_v1_|shpat_|lin_api_|ntn_)[A-Za-z0-9]{16,}|(?:github_pat_|glpat-|xox[abprs]-|xapp-|pypi-|AIza)[A-Za-z0-9_-]{16,}|SG\.[A-Za-z0-9_.-]{16,}|hooks\.slack\.com/[a-z]+/[A-Za-z0-9/_-]{20,})|(sk-[A-Za-z0-9_-]{16,}))`)

	authorization = lazyregexp.New(`(?i)^(?:bearer|basic|authorization:|x-api-key:)\s+["']?([A-Za-z0-9._~+/=-]{16,})`)
	namedValue    = lazyregexp.New(`(?i)^(?:(` + passwordName + `)|token|key|令牌)["'\x60\\*_]*[ \t]*(:=|=>|={1,2}|[:：])[*_]*(\s*)` + quotedValue)
	statement     = lazyregexp.New(`(?i)^(?:(?:password|passwd|passphrase|secret|token|(?:api|access)[ _-]?key)[ \t]+(?:is[ \t]*:?[ \t]*)?|(?:密码|口令|密钥|令牌)(?:[是为]|[ \t])[ \t]*)` + quotedValue)
	option        = lazyregexp.New(`(?i)^(?:password|passwd|pass|secret|token|(?:api|access|secret)-key)[ \t]+` + quotedValue)
	userOption    = lazyregexp.New(`^(?:-u|--user|--proxy-user)[ \t=]*["']?[^\s:"']{0,64}:` + quotedValue)
	queryValue    = lazyregexp.New(`(?i)^[?&][a-z0-9_.-]{0,40}(?:token|key|sig|signature|secret|password|pwd)=([^&\s#"'<>)\x60]{6,})`)
	cookies       = lazyregexp.New(`(?i)^cookie["']?[ \t]*[:=][ \t]*([^\r\n"'\x60]+)`)

	port      = lazyregexp.New(`^[0-9]{1,5}(?:[/?#,)\]]|$)`)
	nextPair  = lazyregexp.New(`[&;,][A-Za-z_.-]+[=:]`)
	reference = lazyregexp.New(`^(?:\$[A-Z_]+$|\$[{(]|\{\{|(?:~|\.{1,2})?/[a-z.]+/|[A-Za-z_][A-Za-z0-9_.]*[(\[]|process\.env|os\.environ)`)
	plainWord = lazyregexp.New(`(?i)^(?:.*(?:password|passwd|secret|token|密码)|strings?|number|boolean|required|optional|undefined|incorrect|stdin|(?:any|some|no)thing)$`)
)

// FindSecrets returns the parts of a text that look like secrets: private keys,
// tokens with a known prefix, JSON Web Tokens, passwords in addresses, cookies and
// commands, and values that the text calls a password, a key or a token. Each has at
// least six characters and is returned once. FindSecrets cannot find a secret that
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
	var rest strings.Builder
	from := 0
	for _, at := range keyBlock.FindAllStringSubmatchIndex(text, -1) {
		if at[2] < at[3] || at[1] == len(text) || strings.Contains(text[at[0]:at[1]], "-----END") { // unlike its first line in a sentence
			add(text[at[0]:at[1]])
			rest.WriteString(text[from:at[0]] + " ")
			from = at[1]
		}
	}
	text = rest.String() + text[from:]
	lower := lowerASCII(text)
	each := func(re *lazyregexp.Regexp, words []string, f func(m []string, before byte)) {
		eachWordMatch(text, lower, re, words, f)
	}
	each(keyFormats, formatWords, func(m []string, before byte) {
		if v := strings.TrimRight(m[0], "."); !isWordByte(before) && hasDigit(v) && (m[2] == "" || hasRandomPart(v)) {
			add(v)
		}
	})
	each(authorization, []string{"bearer", "basic", "authorization:", "x-api-key:"}, func(m []string, _ byte) {
		if hasDigit(m[1]) { // unlike words
			add(m[1])
		}
	})
	each(namedValue, nameWords, func(m []string, _ byte) {
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
	})
	each(statement, nameWords, func(m []string, _ byte) {
		if v, quoted := valueOf(m[1:]); hasDigit(v) && (quoted || hasLetter(v)) {
			add(v)
		}
	})
	argument := func(m []string, before byte) {
		if v, quoted := valueOf(m[1:]); strings.IndexByte("- \t\n", before) >= 0 && !strings.HasPrefix(v, "-") && (quoted || !isWord(v) || len(v) >= 8) {
			add(v)
		}
	}
	each(option, nameWords, func(m []string, before byte) {
		if before == '-' {
			argument(m, before)
		}
	})
	each(userOption, []string{"-u", "--user", "--proxy-user"}, argument)
	each(queryValue, []string{"?", "&"}, func(m []string, _ byte) {
		if hasDigit(m[1]) || len(m[1]) >= 16 {
			add(m[1])
		}
	})
	each(cookies, []string{"cookie"}, func(m []string, _ byte) {
		for pair := range strings.SplitSeq(m[1], ";") {
			if _, v, _ := strings.Cut(strings.TrimSpace(pair), "="); !strings.ContainsAny(v, " ,") && hasDigit(v) && (hasLetter(v) || len(v) >= 16) {
				add(v)
			}
		}
	})
	for _, v := range urlPasswords(text) {
		add(v)
		if first, _, ok := strings.Cut(v, "@"); ok { // the password, or its start
			add(first)
		}
	}
	return found
}

// Words at which the patterns match.
var (
	formatWords = []string{"akia", "asia", "eyj", "lo_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "sk_", "rk_", "npm_", "hf_", "dop_v1_", "shpat_", "lin_api_", "ntn_", "github_pat_", "glpat-", "xox", "xapp-", "pypi-", "aiza", "sg.", "hooks.slack", "sk-"}
	nameWords   = []string{"pass", "pwd", "secret", "_pass", "-pass", "api", "access", "account", "private", "auth", "signing", "encryption", "master", "token", "key", "密码", "口令", "密钥", "令牌"}
)

// eachWordMatch calls f with each match of re that starts at the start of a word, and with
// the byte before the match, or a space. re must be anchored. Matching only at words
// is much faster than searching the whole text.
func eachWordMatch(text, lower string, re *lazyregexp.Regexp, words []string, f func(m []string, before byte)) {
	for _, word := range words {
		for from := 0; ; {
			i := strings.Index(lower[from:], word)
			if i < 0 {
				break
			}
			at := from + i
			from = at + len(word)
			if m := re.FindStringSubmatch(text[at:]); m != nil {
				before := byte(' ')
				if at > 0 {
					before = text[at-1]
				}
				f(m, before)
				from = at + len(m[0])
			}
		}
	}
}

// urlPasswords returns the passwords in URLs: the text between the colon after the
// user name, which may be empty, and the last @.
func urlPasswords(text string) []string {
	const ends = " \t\r\n\"'<>`"
	var out []string
	end, last := 0, 0 // of the text without spaces and quotes, and its last @
	for from := 0; ; {
		i := strings.Index(text[from:], "://")
		if i < 0 {
			return out
		}
		from += i + 3
		if from > end {
			end = len(text)
			if n := strings.IndexAny(text[from:], ends); n >= 0 {
				end = from + n
			}
			last = from + strings.LastIndexByte(text[from:end], '@')
		}
		if last <= from {
			continue
		}
		user := text[from:min(last, from+128)]
		colon := strings.IndexAny(user, ":/?#@")
		if colon < 0 || user[colon] != ':' {
			continue
		}
		if v := text[from+colon+1 : last]; !port.MatchString(v) {
			out = append(out, v)
			from = last
		}
	}
}

func lowerASCII(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

func isWordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
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
