package upstream

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
)

// MaxEnvFile is the maximum size of a [Config.EnvFile] in bytes.
const MaxEnvFile = 64 << 10

// An EnvFileError reports that a [Config.EnvFile] exists but must not be used.
// Reason explains why and tells the user what to do.
type EnvFileError struct{ Reason string }

func (e *EnvFileError) Error() string { return e.Reason }

// loadEnvFile adds the variables in the file to out. It accepts files only in
// the user's own configuration.
func (r *resolver) loadEnvFile(out *Config) {
	const where = "envFile"
	switch {
	case out.EnvFile == "":
		return
	case r.v.File == nil:
		r.addProblem(Invalid, "", where, "envFile is allowed only in the user's own configuration; set the variables in env")
		return
	}
	path := out.EnvFile
	follows := !filepath.IsAbs(path)
	if follows {
		if r.v.Workspace == "" {
			r.addProblem(Invalid, "", where, "the path is relative and there is no workspace; use an absolute path")
			return
		}
		path = filepath.Join(r.v.Workspace, path)
	}
	follows = follows || isBelow(r.v.Workspace, path) && !isBelow(r.v.Workspace, r.v.Home)
	data, err := r.v.File(path)
	if err == nil && len(data) > MaxEnvFile {
		err = fmt.Errorf("file too large (limit %d bytes)", MaxEnvFile)
	}
	if refused, ok := errors.AsType[*EnvFileError](err); ok {
		r.addProblem(Invalid, "", where, r.displayPath(path)+": "+refused.Reason)
		return
	}
	if err != nil {
		if pe := (*fs.PathError)(nil); errors.As(err, &pe) {
			err = pe.Err
		}
		r.addProblem(Invalid, "", where, fmt.Sprintf("%s: %v; correct the path, or set the variables in env", r.displayPath(path), err))
		return
	}
	values := parseEnvFile(data)
	if names := loaderVariables(values); follows && len(names) > 0 {
		r.addProblem(Invalid, "", where, r.displayPath(path)+": "+newLoaderError(names).Reason)
		return
	}
	r.merge(out, values)
}

// isBelow reports whether path is dir or inside dir. It returns false if either
// is "".
func isBelow(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return dir != "" && path != "" && err == nil && filepath.IsLocal(rel)
}

// loaderVariable matches the names of variables that determine which code a
// program loads. A file in the workspace must not set them.
var loaderVariable = lazyregexp.New(`^(?i:(LD|DYLD|GIT|NODE|NPM_CONFIG|BUN|DENO|PYTHON|UV|PIP|PERL5?|RUBY|GEM|BUNDLE|LUA|JAVA|CORECLR|XDG|CONDA)_.*|` +
	`PYTHON.*|PERL5.*|PERLLIB|RUBYOPT|RUBYLIB|VIRTUAL_ENV|_JAVA_OPTIONS|JDK_JAVA_OPTIONS|CLASSPATH|BASH_ENV|BASH_FUNC_.*|ENV|ZDOTDIR|SHELL|SHELLOPTS|BASHOPTS|PS4|IFS|` +
	`PATH|PATHEXT|COMSPEC|HOME|USERPROFILE|APPDATA|LOCALAPPDATA|EDITOR|VISUAL|PAGER|BROWSER|SSH_ASKPASS|OPENSSL_(CONF|MODULES|ENGINES)|GCONV_PATH|GLIBC_TUNABLES)$`)

func loaderVariables(values map[string]string) []string {
	var out []string
	for name := range values {
		if loaderVariable.MatchString(name) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// CheckEnvFile returns an error if a [Config.EnvFile] sets a variable that
// determines which code a program loads, such as LD_PRELOAD, NODE_OPTIONS or
// PATH. A file in a project must not set such variables. The error names the
// first such variable.
func CheckEnvFile(data []byte) error {
	if names := loaderVariables(parseEnvFile(data)); len(names) > 0 {
		return newLoaderError(names)
	}
	return nil
}

func newLoaderError(names []string) *EnvFileError {
	return &EnvFileError{names[0] + " determines which code is loaded, so a file in a project may not set it; set it in env of the server, or move the file out of the project and use its absolute path"}
}

// displayPath returns path for an error message. If path contains a secret
// value, it returns the path with unresolved variables.
func (r *resolver) displayPath(path string) string {
	for _, h := range r.hidden {
		if strings.Contains(path, h) {
			return printableText(r.c.EnvFile)
		}
	}
	return printableText(path)
}

func (r *resolver) merge(out *Config, values map[string]string) {
	env := make(map[string]string, len(out.Env)+len(values))
	for name, value := range values {
		if _, own := out.Env[name]; own {
			continue
		}
		if strings.ContainsRune(value, 0) {
			r.addProblem(Invalid, "", "envFile", "the value of "+name+" contains a control character")
			return
		}
		env[name] = value
		r.addSecret(value)
	}
	for name, value := range out.Env {
		env[name] = value
	}
	out.Env, out.EnvFile = env, ""
}

// parseEnvFile parses NAME=VALUE lines in dotenv syntax: an optional export,
// quotes that may span lines, and comments after #. It ignores other lines. If
// a name is repeated, the last value wins. In double quotes, it replaces \n,
// \r, \t, \", \\ and \$. It does not expand variables.
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
		if !ok || !envName.MatchString(name) {
			text = rest
			continue
		}
		begin := strings.TrimLeft(value, " \t")
		if inner, after, ok := unquote(text[len(line)-len(begin):]); ok {
			out[name] = inner
			_, text, _ = strings.Cut(after, "\n")
			continue
		}
		out[name] = strings.TrimSpace(stripComment(value))
		text = rest
	}
	return out
}

// stripComment removes a comment, which starts with # after a space or tab.
func stripComment(s string) string {
	for i := 1; i < len(s); i++ {
		if s[i] == '#' && (s[i-1] == ' ' || s[i-1] == '\t') {
			return s[:i]
		}
	}
	return s
}

var escaped = map[byte]byte{'n': '\n', 'r': '\r', 't': '\t', '"': '"', '\\': '\\', '$': '$'}

// unquote returns the content of the quoted string at the start of s and the
// text after it. ok is false if s does not start with a complete quoted string.
func unquote(s string) (inner, after string, ok bool) {
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
