package scan

import (
	"strings"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
)

// secretRules returns the rules about keys and passwords in files. The rules
// match the services' key formats; randomness alone is never sufficient.
func secretRules() []Rule {
	return []Rule{
		{ID: "secret-key-block", Severity: High, Target: Text, words: []string{"private key-----"},
			pattern: caseSensitive(`-----BEGIN ([A-Z]+ )?(OPENSSH |RSA |EC |DSA |PGP |ENCRYPTED )?PRIVATE KEY( BLOCK)?-----\s*([A-Za-z0-9+/=\s\\n:,-]{100,})`),
			accept:  func(m []string) bool { return isRandom(m[4], 40) },
			Message: "contains a private key", Advice: "replace the key and remove it"},
		{ID: "secret-aws", Severity: High, Target: Text, words: []string{"akia", "asia"},
			pattern: caseSensitive(`\b((?:AKIA|ASIA)[A-Z2-7]{16})\b`), accept: func(m []string) bool { return isRandom(m[1], 8) },
			Message: "contains a key of Amazon Web Services", Advice: "replace the key and remove it"},
		{ID: "secret-token", Severity: High, Target: Text, words: []string{"ghp_", "gho_", "ghs_", "ghu_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "xoxa-", "xapp-", "sk-ant-", "sk-proj-", "sk_live_", "rk_live_", "npm_", "pypi-ageichlwas", "aiza", "sg.", "hf_", "dop_v1_", "shpat_", "sk-or-v1-", "sk-lf-", "lin_api_", "ntn_", "eyj"},
			pattern: caseSensitive(`\b(gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{60,}|glpat-[A-Za-z0-9_-]{20,}|xox[abprs]-[0-9]{8,}-[A-Za-z0-9-]{16,}|xapp-\d-[A-Z0-9]+-\d+-[a-f0-9]{40,}|sk-ant-[a-z0-9]+-[A-Za-z0-9_-]{60,}|sk-proj-[A-Za-z0-9_-]{40,}|sk-[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}|[sr]k_live_[A-Za-z0-9]{24,}|npm_[A-Za-z0-9]{36}|pypi-AgEIcHlwaS5vcmc[A-Za-z0-9_-]{50,}|AIza[A-Za-z0-9_-]{35}|SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}|hf_[A-Za-z0-9]{34}|dop_v1_[a-f0-9]{64}|shpat_[a-f0-9]{32}|sk-or-v1-[a-f0-9]{64}|lin_api_[A-Za-z0-9]{40})`),
			accept:  func(m []string) bool { return isRandom(m[1], 14) },
			Message: "contains a key or token of a service", Advice: "replace it at the service and remove it"},
		{ID: "secret-password", Severity: Medium, Target: Text, words: combine([]string{"password", "passwd", "secret", "secret_key", "secretkey", "api_key", "apikey", "access_token", "auth_token"}, []string{"=", " =", ":", " :", `"`, "'"}),
			pattern: ignoreCase(`(?:password|passwd|secret(?:_?key)?|api_?key|access_token|auth_token)["']?\s*[:=]\s*["']([A-Za-z0-9+/_!@#$%^&*.=-]{16,})["']`),
			accept:  func(m []string) bool { return isMixed(m[1]) && isRandom(m[1], 12) },
			Message: "contains text that looks like a password or key", Advice: "if it is one, replace and remove it"},
		{ID: "secret-in-url", Severity: Medium, Target: Text, words: []string{"://"},
			pattern: caseSensitive(`\b(?:https?|postgres(?:ql)?|mysql|mongodb(?:\+srv)?|redis|amqp|ftp)://[A-Za-z0-9._-]+:([^\s:/@"'<>{}$\[\]()]{8,})@[A-Za-z0-9.-]+\.[a-z]{2,}`),
			accept:  func(m []string) bool { return isMixed(m[1]) && isRandom(m[1], 7) },
			Message: "contains an address with a password", Advice: "replace the password and remove it"},
	}
}

var placeholder = lazyregexp.New(`(?i)example|your|xxxx|placeholder|changeme|dummy|sample|redact|replace|insert|fake|test|demo|abcdef|a1b2c3|123456|000000|\.\.\.|<|todo|secret_?here|key_?here|my[_-]?(secret|key|pass|token)|process\.env|os\.environ`)

// isRandom reports whether s has at least the given number of different
// characters and is not a placeholder.
func isRandom(s string, different int) bool {
	if placeholder.MatchString(s) {
		return false
	}
	seen := map[byte]bool{}
	for i := range len(s) {
		seen[s[i]] = true
	}
	return len(seen) >= different
}

// isMixed reports whether s has digits and letters of both cases, unlike
// ordinary words.
func isMixed(s string) bool {
	return strings.ContainsAny(s, "0123456789") && strings.ToLower(s) != s && strings.ToUpper(s) != s
}

// secretFormats matches secrets that must be removed from excerpts.
var secretFormats = lazyregexp.New(`-----BEGIN [A-Z ]*PRIVATE KEY[\s\S]*|\b(?:AKIA|ASIA)[A-Z2-7]{16}\b|\b(?:gh[pousr]_|github_pat_|glpat-|xox[abprs]-|xapp-|sk-|[sr]k_live_|npm_|pypi-|AIza|SG\.|hf_|dop_v1_|shpat_|lin_api_)[A-Za-z0-9_.-]{16,}`)

var assignedSecret = lazyregexp.New(`(?i)((?:password|passwd|secret(?:_?key)?|api_?key|access_token|auth_token|token)["']?\s*[:=]\s*["']|://[A-Za-z0-9._-]+:)([^\s"'@$<{}]{8,})`)

// redactSecrets shortens the secrets in s so that they are unusable.
func redactSecrets(s string) string {
	s = secretFormats.ReplaceAllStringFunc(s, shorten)
	return assignedSecret.ReplaceAllStringFunc(s, func(m string) string {
		parts := assignedSecret.FindStringSubmatch(m)
		return parts[1] + shorten(parts[2])
	})
}

func shorten(s string) string { return s[:min(4, len(s)/4)] + "…" }
