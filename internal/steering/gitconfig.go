package steering

import (
	"iter"
	"slices"
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

// GitConfigPaths returns the paths in a Git configuration from which Git runs
// programs or reads settings, as far as its syntax shows: the directory of
// hooks, the words of other settings that look like paths, and included files.
// It does not expand variables or home directories. It expects no valid
// configuration.
func GitConfigPaths(data []byte) (files, includes []string) {
	section := ""
	for line := range gitLines(string(data)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			header, rest, _ := strings.Cut(line[1:], "]")
			section, _, _ = strings.Cut(strings.ToLower(header), " ")
			section, _, _ = strings.Cut(section, ".")
			line = strings.TrimSpace(rest)
		}
		key, value, _ := strings.Cut(line, "=")
		key, value = strings.ToLower(strings.TrimSpace(key)), gitValue(value)
		switch {
		case value == "" || strings.HasPrefix(key, "#") || strings.HasPrefix(key, ";"):
		case key == "path" && (section == "include" || section == "includeif"):
			includes = append(includes, value)
		case key == "hookspath" || strings.HasSuffix(key, "file"):
			files = append(files, value)
		case !slices.Contains(plainGitKeys[section], key):
			files = append(files, pathWords(value)...)
		}
	}
	return files, includes
}

// gitLines returns the lines of a configuration, with continued ones joined.
func gitLines(text string) iter.Seq[string] {
	return strings.SplitSeq(strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\\\n", ""), "\n")
}

// gitValue returns a value without quotes, escapes and comment.
func gitValue(s string) string {
	var b strings.Builder
	quoted := false
	s = strings.TrimSpace(s)
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\' && i+1 < len(s):
			i++
			b.WriteByte(s[i])
		case (c == '#' || c == ';') && !quoted:
			return strings.TrimSpace(b.String())
		default:
			b.WriteByte(c)
		}
	}
	return strings.TrimSpace(b.String())
}

// pathWords returns the words of a command that contain a slash or a dot.
func pathWords(command string) []string {
	words := strings.FieldsFunc(command, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("'\"`;|&()<>=!$", r) })
	return slices.DeleteFunc(words, func(w string) bool { return !strings.ContainsAny(w, "/.") })
}
