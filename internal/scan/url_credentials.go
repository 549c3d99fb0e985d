package scan

import (
	"strings"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
)

// Patterns of credentials in addresses. Like those of [FindSecrets], they prefer a
// false alarm to a miss.
var (
	// addressRun matches an address, or the destination of a link of Markdown or HTML,
	// with whatever follows up to a space or a quote.
	addressRun = lazyregexp.New("(?i)(?:\\b[a-z][a-z0-9+.-]{1,15}://|\\]\\(\\s*<?|\\b(?:href|src)=[\"']?|/)[^\\s\"'<>`]*")

	parameter      = lazyregexp.New(`(?i)(?:[?&;#]|&amp;)([a-z0-9_.\[\]%-]{1,64})=([^&;#\s"'<>)\]\x60\\|]+)`)
	credentialName = lazyregexp.New(`(?i)token|secret|passw|passphrase|^pwd$|^pass$|^pw$|credential|signature|^sig$|hmac|api[_-]?key|access[_-]?key|private[_-]?key|authorization|^auth$|^jwt$|^otp$|^sid$|session[_-]?id`)
	ambiguousName  = lazyregexp.New(`(?i)(?:^|[_.-])(?:key|code|sign|session|ticket|auth|hash)$`) // of values that may be credentials
	hexDigits      = lazyregexp.New(`^[0-9a-fA-F]{32,}$`)
	tokenText      = lazyregexp.New(`^[A-Za-z0-9_-]{24,}$`)

	// webScheme matches schemes in which the user of an address is usually a token. In
	// others, such as ssh://git@host, it is a public name.
	webScheme = lazyregexp.New(`(?i)^(?:https?|wss?|ftps?)$`)
)

// textSpan is a part of a text, in bytes.
type textSpan struct{ from, to int }

// URLCredentials returns the credentials in the addresses of a text: user names,
// passwords, and parameters whose names or values look like credentials.
func URLCredentials(text string) []string {
	var out []string
	for _, s := range urlCredentials(text) {
		out = append(out, text[s.from:s.to])
	}
	return out
}

// RedactURLs replaces the credentials that [URLCredentials] returns. It returns the
// number of replacements.
func RedactURLs(text, marker string) (string, int) {
	var b strings.Builder
	from, n := 0, 0
	for _, s := range urlCredentials(text) {
		if v := text[s.from:s.to]; v == marker || strings.HasSuffix(v, ":"+marker) {
			continue // replaced already
		}
		b.WriteString(text[from:s.from] + marker)
		from, n = s.to, n+1
	}
	if n == 0 {
		return text, 0
	}
	return b.String() + text[from:], n
}

// urlCredentials returns the credentials in addresses, in order.
func urlCredentials(text string) []textSpan {
	if !strings.ContainsAny(text, "/=") {
		return nil
	}
	var out []textSpan
	for _, at := range addressRun.FindAllStringSubmatchIndex(text, -1) {
		run := text[at[0]:at[1]]
		if user, ok := userInfo(run); ok {
			out = append(out, textSpan{at[0] + user.from, at[0] + user.to})
		}
		start := strings.IndexAny(run, "?#")
		if start < 0 {
			continue
		}
		for _, m := range parameter.FindAllStringSubmatchIndex(run[start:], -1) {
			if name, value := run[start+m[2]:start+m[3]], run[start+m[4]:start+m[5]]; isCredential(name, value) {
				out = append(out, textSpan{at[0] + start + m[4], at[0] + start + m[5]})
			}
		}
	}
	return out
}

// userInfo returns the span of the user name and password in the first URL of run,
// and whether there is one.
func userInfo(run string) (textSpan, bool) {
	i := strings.Index(run, "://")
	if i < 0 {
		return textSpan{}, false
	}
	from := i + len("://")
	host := run[from:]
	if n := strings.IndexAny(host, "/?#)]\\|"); n >= 0 {
		host = host[:n]
	}
	n := strings.LastIndexByte(host, '@')
	if n <= 0 {
		return textSpan{}, false
	}
	scheme := run[strings.LastIndexAny(run[:i], "(<= ")+1 : i]
	if !strings.Contains(host[:n], ":") && !webScheme.MatchString(scheme) {
		return textSpan{}, false
	}
	return textSpan{from, from + n}, true
}

// isCredential reports whether a parameter of an address is a credential.
func isCredential(name, value string) bool {
	switch {
	case credentialName.MatchString(name):
		return true
	case ambiguousName.MatchString(name):
		return len(value) >= 8 && hasDigit(value)
	}
	return hexDigits.MatchString(value) || tokenText.MatchString(value) && isMixed(value)
}
