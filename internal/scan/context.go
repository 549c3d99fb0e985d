package scan

import (
	"bytes"
	"path"
	"strings"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
)

// teachingWords matches descriptions of skills about attacks, whose texts quote
// them.
var teachingWords = lazyregexp.New(`(?i)\b(?:auditor|vetting|exfiltration|suspects?|suspicious|malicious|douteux|verdächtige\w*|sospechos\w*|obfuscat\w*|deobfuscat\w*|malware|phishing|incidents?|forensics?|exercises?|workshops?|training|lessons?|detect(?:s|ion|ions|or|ing)?|indicators?|playbooks?|attacks?|attackers?|exploit\w*|ctf|red[- ]team\w*|pentest\w*|penetration test\w*|threat\w*|awareness|lures?|stealers?|vulnerab\w*|injections?|semgrep|yara|sigma|linter|audit(?:s|ing)? (?:of )?(?:skills|plugins|scripts))\b|恶意|攻击|钓鱼|取证|漏洞|演练|Schadsoftware|Angriff|hameçonnage|malveillant|вредонос|фишинг`)

// isTeaching reports whether the skill's description says that it is about
// attacks.
func (s *scanner) isTeaching() bool {
	return s.skill != nil && (teachingWords.MatchString(s.skill.Description) || teachingWords.MatchString(strings.ReplaceAll(s.skill.Name, "-", " ")))
}

func (s *scanner) skillName() string {
	if s.skill == nil {
		return ""
	}
	return s.skill.Name
}

// inContext returns the severity of a finding: at most medium in a block of
// Markdown that a skill about attacks quotes.
func (s *scanner) inContext(severity Severity, t *source, b *block, r *Rule, at int) Severity {
	if severity > Medium && b.prose && s.isTeaching() && bytes.HasPrefix(bytes.TrimSpace(t.lineAt(at)), []byte("|")) {
		return Medium // a cell of a table of attacks
	}
	if severity > Medium && b.hasWarning != nil && r.Target != Prose && s.isTeaching() && !isUnderSetup(t.data[:b.start]) {
		return Medium
	}
	if severity > Medium && b.language == inline && bytes.Contains(t.data[b.start:b.end], []byte(`\|`)) {
		return Medium // a cell of a table, which explains it
	}
	if severity > Medium && r.vendor && strings.HasPrefix(strings.ToLower(path.Base(t.name)), "dockerfile") {
		return Medium // it runs in a container
	}
	return severity
}

var setupHeading = lazyregexp.New(`(?i)set\s?up|install|prerequisite|requirement|getting started|quick\s?start|before you|安装|准备|前置|einrichtung|voraussetzung|prérequis|requisitos|установка`)

// isUnderSetup reports whether the last heading before a block is about setting
// the skill up.
func isUnderSetup(before []byte) bool {
	tail := before[max(0, len(before)-4096):]
	i := lastHeading(tail)
	if i < 0 {
		return false
	}
	heading := tail[i+1:]
	return setupHeading.Match(heading[:lineLength(heading)])
}

// hidesOutput matches commands that hide what they do.
var hidesOutput = lazyregexp.New(`(?i)/dev/null|\bnohup\b|&\s*$|\s-\w*k\w*\s|--insecure|base64|\bdisown\b|hidden|https?://\d+\.`)

// isVendorInstaller reports whether a command downloads, over HTTPS and in plain
// sight, the installer of a tool that the text is about: the host or repository
// has exactly the name of the skill, of one of its words, or of a word that the
// text uses.
func isVendorInstaller(t *source, skillName, command string) bool {
	if hidesOutput.MatchString(command) {
		return false
	}
	addresses := downloadAddresses(command)
	if len(addresses) > 8 {
		return false
	}
	vendors := 0
	for _, a := range addresses {
		rest, ok := strings.CutPrefix(a, "https://")
		if !ok {
			return false
		}
		host, file := rest, ""
		if i := strings.IndexAny(rest, "/?#"); i >= 0 {
			host, file = rest[:i], rest[i+1:]
		}
		if isIdentifierHost(host) || isKnownHost(host) && !sharedHosts[host] {
			vendors++
			continue
		}
		names := []string{registeredLabel(host)}
		if sharedHosts[host] {
			names = strings.Split(file, "/")
			names = names[:min(len(names), 4)]
		}
		if !anyNamed(t, skillName, names) {
			return false
		}
		vendors++
	}
	return vendors > 0
}

// sharedHosts lists hosts on which everybody publishes: the names in the path
// say who.
var sharedHosts = map[string]bool{"github.com": true, "raw.githubusercontent.com": true, "gitlab.com": true, "dl.cloudsmith.io": true, "codeberg.org": true}

func anyNamed(t *source, skillName string, names []string) bool {
	for _, n := range names {
		if len(n) < 2 || genericPath[n] {
			continue
		}
		for _, w := range append(strings.Split(strings.ToLower(skillName), "-"), skillName) {
			if w == n && len(n) > 2 {
				return true
			}
		}
		if joined := strings.ReplaceAll(strings.ToLower(skillName), "-", ""); len(n) >= 5 && strings.HasPrefix(joined, n) {
			return true
		}
		plain, _, _ := strings.Cut(n, "-")
		if t.countNamed(n) >= 1 || len(plain) > 3 && plain != n && (sharedOwner(skillName, plain) || t.countNamed(plain) >= 2) {
			return true
		}
	}
	return false
}

// genericPath lists parts of paths that name nobody.
var genericPath = map[string]bool{"public": true, "main": true, "master": true, "install": true, "scripts": true, "bin": true, "releases": true, "latest": true, "raw": true, "setup": true, "download": true, "get": true}

func sharedOwner(skillName, owner string) bool {
	for w := range strings.SplitSeq(strings.ToLower(skillName), "-") {
		if w == owner {
			return true
		}
	}
	return false
}

// countNamed counts, up to two, how often a text has a name as a word that is not part of
// an address or a path.
func (t *source) countNamed(name string) int {
	if n, ok := t.named[name]; ok {
		return n
	}
	if t.lower == nil {
		t.lower, t.named = bytes.ToLower(t.data), map[string]int{}
	}
	t.work += len(t.data)
	lower, n := t.lower, 0
	for at := 0; n < 2; {
		i := bytes.Index(lower[at:], []byte(name))
		if i < 0 {
			break
		}
		at += i
		before, after := byte(' '), byte(' ')
		if at > 0 {
			before = lower[at-1]
		}
		if at+len(name) < len(lower) {
			after = lower[at+len(name)]
		}
		if !isLetterByte(before) && strings.IndexByte("/.@-", before) < 0 && !isLetterByte(after) && strings.IndexByte("/.-", after) < 0 {
			n++
		}
		at += len(name)
	}
	t.named[name] = n
	return n
}

// containsAny reports whether a text has one of the words, in any case.
func containsAny(text []byte, words []string) bool {
	lower := lowerASCII(string(text))
	for _, w := range words {
		if strings.Contains(lower, w) {
			return true
		}
	}
	return false
}
