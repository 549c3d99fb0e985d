package steering

import (
	"slices"
	"strings"
	"unicode"
)

// MaxGitConfig is the maximum size of a configuration that
// [IsPlainGitConfig] accepts.
const MaxGitConfig = 64 << 10

// plainGitKeys maps sections to the keys that git init and git clone write.
// None of them names a program or a path.
var plainGitKeys = map[string][]string{
	"core":       {"repositoryformatversion", "filemode", "bare", "logallrefupdates", "ignorecase", "precomposeunicode", "symlinks"},
	"remote":     {"url", "fetch", "tagopt"},
	"branch":     {"remote", "merge", "rebase"},
	"extensions": {"objectformat", "refstorage"},
	"user":       {"name", "email"},
}

// IsPlainGitConfig reports whether a Git configuration contains only settings
// that git init and git clone write: the format, remotes and branches. It
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

// GitConfigPaths returns the paths in a Git configuration from which Git may
// run programs or read settings: the directory of hooks, included files, and
// the words of other settings that look like paths. It does not expand
// variables or home directories. The configuration need not be valid.
func GitConfigPaths(data []byte) (files, includes []string) {
	p := &gitParser{text: strings.ReplaceAll(strings.TrimPrefix(string(data), "\ufeff"), "\r\n", "\n")}
	for p.next() {
		switch {
		case p.value == "":
		case p.key == "path" && (p.section == "include" || p.section == "includeif"):
			includes = append(includes, p.value)
		case p.key == "hookspath" || strings.HasSuffix(p.key, "file"):
			files = append(files, p.value)
		case !slices.Contains(plainGitKeys[p.section], p.key):
			files = append(files, pathWords(p.value)...)
		}
	}
	return files, includes
}

// gitParser reads the settings of a Git configuration in order. It skips
// invalid text, which Git rejects.
type gitParser struct {
	text                string // text that was not read yet
	section, key, value string // section and key in lower case
}

// next reads the next setting.
func (p *gitParser) next() bool {
	for p.text != "" {
		c := p.text[0]
		switch {
		case c == '[':
			p.readSection()
		case c == '#' || c == ';':
			p.skipLine()
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			if p.readKey() {
				p.readValue()
				p.value, _, _ = strings.Cut(p.value, "\x00") // as Git, which is written in C
				return true
			}
		default:
			p.text = p.text[1:]
		}
	}
	return false
}

func (p *gitParser) skipLine() { _, p.text, _ = strings.Cut(p.text, "\n") }

// readSection reads a header such as [core], [remote "name"] or the older
// [remote.name].
func (p *gitParser) readSection() {
	quoted := false
	for i := 1; i < len(p.text); i++ {
		switch c := p.text[i]; {
		case c == '\n', c == ']' && !quoted:
			name, _, _ := strings.Cut(p.text[1:i], ` `)
			name, _, _ = strings.Cut(name, ".")
			p.section, p.text = strings.ToLower(strings.TrimSpace(name)), p.text[i+1:]
			return
		case c == '\\' && quoted:
			i++
		case c == '"':
			quoted = !quoted
		}
	}
	p.text = ""
}

// readKey reads a key, and reports whether a value follows.
func (p *gitParser) readKey() bool {
	end := strings.IndexFunc(p.text, func(r rune) bool {
		return r != '-' && (r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r))
	})
	if end < 0 {
		end = len(p.text)
	}
	p.key, p.text = strings.ToLower(p.text[:end]), strings.TrimLeft(p.text[end:], " \t\r\v\f")
	if rest, ok := strings.CutPrefix(p.text, "="); ok {
		p.text = rest
		return true
	}
	p.skipLine()
	return false
}

// readValue reads a value into p.value, without quotes, escapes, comments and
// surrounding spaces.
func (p *gitParser) readValue() {
	var b strings.Builder
	quoted, length := false, 0 // length is that without spaces at the end
	text := p.text
	i := 0
	for ; i < len(text) && text[i] != '\n'; i++ {
		c := text[i]
		switch {
		case c == '"':
			quoted = !quoted
			length = b.Len()
			continue
		case !quoted && (c == '#' || c == ';'):
			p.value, p.text = b.String()[:length], text[i:]
			p.skipLine()
			return
		case !quoted && strings.IndexByte(" \t\r\v\f", c) >= 0:
			if b.Len() > 0 {
				b.WriteByte(c)
			}
			continue
		case c == '\\':
			if i++; i >= len(text) || text[i] == '\n' { // the value goes on in the next line
				continue
			}
			c = text[i]
			if at := strings.IndexByte("tbn", c); at >= 0 {
				c = "\t\b\n"[at]
			}
		}
		b.WriteByte(c)
		length = b.Len()
	}
	p.value, p.text = b.String()[:length], text[min(i, len(text)):]
}

// pathWords returns the words of a command that contain a slash or a dot.
func pathWords(command string) []string {
	words := strings.FieldsFunc(command, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("'\"`;|&()<>=!$", r) })
	return slices.DeleteFunc(words, func(w string) bool { return !strings.ContainsAny(w, "/.") })
}
