package steering

import (
	"strings"
	"unicode"
)

// MaxGitConfig is the maximum size of a configuration that
// [IsPlainGitConfig] accepts.
const MaxGitConfig = 64 << 10

// plainGitKeys lists the keys that git init and git clone write, by section.
// None of them names a program or a path.
var plainGitKeys = map[string][]string{
	"core":       {"repositoryformatversion", "filemode", "bare", "logallrefupdates", "ignorecase", "precomposeunicode", "symlinks"},
	"remote":     {"url", "fetch", "tagopt"},
	"branch":     {"remote", "merge", "rebase"},
	"extensions": {"objectformat", "refstorage"},
	"user":       {"name", "email"},
}

// IsPlainGitConfig reports whether a Git configuration contains nothing but
// what git init and git clone write: the format, remotes and branches. It
// accepts one key on each line, without comments and continued lines. A URL
// must not name a remote helper, such as ext::.
func IsPlainGitConfig(data []byte) bool {
	if len(data) > MaxGitConfig {
		return false
	}
	var keys []string
	for line := range strings.Lines(string(data)) {
		line = strings.TrimRight(line, "\n")
		if strings.ContainsFunc(line, func(r rune) bool { return unicode.IsControl(r) && r != '\t' }) {
			return false
		}
		line = strings.TrimSpace(line)
		switch {
		case line == "":
		case strings.HasPrefix(line, "["):
			if keys = sectionKeys(line); keys == nil {
				return false
			}
		case !isPlainSetting(line, keys):
			return false
		}
	}
	return true
}

// sectionKeys returns the keys that a section may have, from its header.
func sectionKeys(header string) []string {
	body, ok := strings.CutSuffix(strings.TrimPrefix(header, "["), "]")
	name, sub, hasSub := strings.Cut(body, ` "`)
	if !ok || hasSub && (!strings.HasSuffix(sub, `"`) || strings.ContainsAny(strings.TrimSuffix(sub, `"`), `"\]`)) {
		return nil
	}
	name = strings.ToLower(name)
	if (name == "remote" || name == "branch") != hasSub {
		return nil
	}
	return plainGitKeys[name]
}

func isPlainSetting(line string, keys []string) bool {
	key, value, ok := strings.Cut(line, "=")
	key, value = strings.ToLower(strings.TrimSpace(key)), strings.TrimSpace(value)
	if !ok || strings.ContainsAny(value, "\"\\#;") {
		return false
	}
	known := false
	for _, k := range keys {
		known = known || k == key
	}
	return known && (key != "url" || !strings.Contains(value, "::") && !strings.HasPrefix(value, "-"))
}
