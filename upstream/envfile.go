package upstream

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/pattern"
)

// MaxEnvFile bounds a file of [Config.EnvFile], in bytes.
const MaxEnvFile = 64 << 10

// An EnvFileError is why a file of [Config.EnvFile] that is there does not count.
// Its text names the next step.
type EnvFileError struct{ Why string }

func (e *EnvFileError) Error() string { return e.Why }

// envFile puts what the file says below env, in the copy that is being resolved.
// Only the person's own configuration has files read.
func (r *resolver) envFile(out *Config) {
	const where = "envFile"
	switch {
	case out.EnvFile == "":
		return
	case r.v.File == nil:
		r.miss(Invalid, "", where, "this configuration has no files read; write the variables under env")
		return
	}
	path := out.EnvFile
	follows := !filepath.IsAbs(path)
	if follows {
		if r.v.Workspace == "" {
			r.miss(Invalid, "", where, "there is no workspace that its path is in; write the whole path")
			return
		}
		path = filepath.Join(r.v.Workspace, path)
	}
	follows = follows || below(r.v.Workspace, path) && !below(r.v.Workspace, r.v.Home)
	data, err := r.v.File(path)
	if err == nil && len(data) > MaxEnvFile {
		err = fmt.Errorf("it has more than %d bytes", MaxEnvFile)
	}
	if refused, ok := errors.AsType[*EnvFileError](err); ok {
		r.miss(Invalid, "", where, r.sayable(path)+": "+refused.Why)
		return
	}
	if err != nil {
		if pe := (*fs.PathError)(nil); errors.As(err, &pe) {
			err = pe.Err
		}
		r.miss(Invalid, "", where, fmt.Sprintf("%s: %v; mend the path, or write the variables under env", r.sayable(path), err))
		return
	}
	values := parseEnvFile(data)
	if names := loaders(values); follows && len(names) > 0 {
		r.miss(Invalid, "", where, r.sayable(path)+": "+loadersRefused(names).Why)
		return
	}
	r.merge(out, values)
}

// below reports whether a path is that of a directory, or of what is in it.
func below(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return dir != "" && path != "" && err == nil && filepath.IsLocal(rel)
}

// loader are variables that decide which code runs, or where it comes from: a file
// that changes with the working directory does not set them.
var loader = pattern.New(`^(?i:(LD|DYLD|GIT|NODE|NPM_CONFIG|BUN|DENO|PYTHON|UV|PIP|PERL5?|RUBY|GEM|BUNDLE|LUA|JAVA|CORECLR|XDG|CONDA)_.*|` +
	`PYTHON.*|PERL5.*|PERLLIB|RUBYOPT|RUBYLIB|VIRTUAL_ENV|_JAVA_OPTIONS|JDK_JAVA_OPTIONS|CLASSPATH|BASH_ENV|BASH_FUNC_.*|ENV|ZDOTDIR|SHELL|SHELLOPTS|BASHOPTS|PS4|IFS|` +
	`PATH|PATHEXT|COMSPEC|HOME|USERPROFILE|APPDATA|LOCALAPPDATA|EDITOR|VISUAL|PAGER|BROWSER|SSH_ASKPASS|OPENSSL_(CONF|MODULES|ENGINES)|GCONV_PATH|GLIBC_TUNABLES)$`)

func loaders(values map[string]string) []string {
	var out []string
	for name := range values {
		if loader().MatchString(name) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// CheckEnvFile is nil where a file of [Config.EnvFile] sets no variable that
// decides which code a program loads, as LD_PRELOAD, NODE_OPTIONS or PATH. The
// error names the first of them: a file that comes with a project may have none.
func CheckEnvFile(data []byte) error {
	if names := loaders(parseEnvFile(data)); len(names) > 0 {
		return loadersRefused(names)
	}
	return nil
}

func loadersRefused(names []string) *EnvFileError {
	return &EnvFileError{names[0] + " decides which code is loaded, and a file that comes with a project may not set it; write it under env of the server, or move the file out of the project and name its whole path"}
}

// sayable is the path, or how it is written where a value in it is not to be seen.
func (r *resolver) sayable(path string) string {
	for _, h := range r.hidden {
		if strings.Contains(path, h) {
			return printable(r.c.EnvFile)
		}
	}
	return printable(path)
}

func (r *resolver) merge(out *Config, values map[string]string) {
	env := make(map[string]string, len(out.Env)+len(values))
	for name, value := range values {
		if _, own := out.Env[name]; own {
			continue
		}
		if strings.ContainsRune(value, 0) {
			r.miss(Invalid, "", "envFile", "the value of "+name+" has a control character")
			return
		}
		env[name] = value
		r.conceal(value)
	}
	for name, value := range out.Env {
		env[name] = value
	}
	out.Env, out.EnvFile = env, ""
}

// parseEnvFile reads lines NAME=VALUE, as dotenv files have them: with export
// before it, in quotes, over several lines in quotes, with comments behind #.
// Other lines do not count, and of two with one name the last does. In double
// quotes \n, \r, \t, \", \\ and \$ are what they are elsewhere; variables are not
// replaced.
func parseEnvFile(data []byte) map[string]string {
	out := map[string]string{}
	text := strings.ReplaceAll(strings.TrimPrefix(string(data), "\ufeff"), "\r\n", "\n")
	for text != "" {
		line, rest, _ := strings.Cut(text, "\n")
		name, value, ok := strings.Cut(line, "=")
		name = strings.TrimSpace(name)
		if after, export := strings.CutPrefix(name, "export"); export && strings.TrimLeft(after, " \t") != after {
			name = strings.TrimSpace(after)
		}
		if !ok || !envName().MatchString(name) {
			text = rest
			continue
		}
		begin := strings.TrimLeft(value, " \t")
		if inner, after, ok := unquoted(text[len(line)-len(begin):]); ok {
			out[name] = inner
			_, text, _ = strings.Cut(after, "\n")
			continue
		}
		out[name] = strings.TrimSpace(uncommented(value))
		text = rest
	}
	return out
}

// uncommented leaves out a comment: a # with a blank before it.
func uncommented(s string) string {
	for i := 1; i < len(s); i++ {
		if s[i] == '#' && (s[i-1] == ' ' || s[i-1] == '\t') {
			return s[:i]
		}
	}
	return s
}

var escaped = map[byte]byte{'n': '\n', 'r': '\r', 't': '\t', '"': '"', '\\': '\\', '$': '$'}

// unquoted is the text in the quotes at the beginning of s, and what is behind
// them; false where there are none, or none that end.
func unquoted(s string) (inner, after string, ok bool) {
	if s == "" || s[0] != '"' && s[0] != '\'' {
		return "", "", false
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == s[0]:
			return b.String(), s[i+1:], true
		case s[i] == '\\' && s[0] == '"' && i+1 < len(s) && escaped[s[i+1]] != 0:
			i++
			b.WriteByte(escaped[s[i]])
		default:
			b.WriteByte(s[i])
		}
	}
	return "", "", false
}
