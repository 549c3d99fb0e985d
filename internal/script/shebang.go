package script

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
)

// maxShebang is the maximum length in bytes of a first line on Linux, including
// "#!" (BINPRM_BUF_SIZE). Linux truncates longer lines and does not run them.
const maxShebang = 256

var utf8BOM = []byte("\ufeff")

// shebang is the first line of a script, parsed as by the kernel and env(1).
type shebang struct {
	line        string // the line without "#!" and surrounding space
	interpreter string // an absolute path, or a name for env to look up
	args        []string
	env         map[string]string
}

// parseShebang parses the first line of src. It returns false if the line is
// not a shebang. It ignores a byte order mark before the line and a carriage
// return after it. As on Linux, the text after the interpreter is one argument.
// For env, it is split even without -S, as on macOS, because such a line cannot
// run on Linux at all.
func parseShebang(src []byte) (shebang, bool, error) {
	src = bytes.TrimPrefix(src, utf8BOM)
	if !bytes.HasPrefix(src, []byte("#!")) || bytes.HasPrefix(src, []byte("#![")) { // "#![" starts a Rust attribute
		return shebang{}, false, nil
	}
	line, _, whole := bytes.Cut(src[:min(len(src), maxShebang)], []byte("\n"))
	if !whole && len(src) > maxShebang {
		return shebang{line: string(line[2:60]) + "…"}, true, fmt.Errorf("line too long (kernel limit %d bytes)", maxShebang)
	}
	sb := shebang{line: strings.Trim(string(line[2:]), " \t\r")}
	if strings.ContainsFunc(sb.line, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
		return sb, true, errors.New("line contains control characters")
	}
	i := strings.IndexAny(sb.line, " \t")
	if i < 0 {
		i = len(sb.line)
	}
	sb.interpreter = sb.line[:i]
	rest := strings.Trim(sb.line[i:], " \t")
	switch {
	case sb.interpreter == "":
		return sb, true, errors.New("missing interpreter")
	case !path.IsAbs(sb.interpreter):
		return sb, true, errors.New("interpreter path is not absolute; begin the script with #!/usr/bin/env NAME")
	case path.Base(sb.interpreter) == "env":
		return sb, true, sb.parseEnv(rest)
	case rest != "":
		sb.args = []string{rest}
	}
	return sb, true, nil
}

var (
	variableAssignment = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*=`)
	// reservedVariable matches variables that a script must not set, because
	// they belong to the sandbox or affect what runs before the script.
	reservedVariable = lazyregexp.New(`^(LD_.*|DYLD_.*|GO[A-Z]*|LOADOUT_.*|PATH|HOME|TMPDIR|ENV|BASH_ENV|IFS|SHELLOPTS|BASHOPTS)$`)
	uvPython         = lazyregexp.New(`^3(\.[0-9]{1,2})?$`)
)

// parseEnv parses the arguments of env(1).
func (sb *shebang) parseEnv(rest string) error {
	words, err := Split(rest)
	if err != nil {
		return errors.New("missing closing quote")
	}
	// The kernel passes a single argument to env, so -S and the text after it
	// may be one word.
	for len(words) > 0 && strings.HasPrefix(words[0], "-") {
		w := words[0]
		words = words[1:]
		if text, ok := strings.CutPrefix(w, "--split-string="); ok {
			words = append([]string{text}, words...)
			break
		}
		if w == "-S" || w == "-vS" || w == "--split-string" {
			continue
		}
		if text, ok := strings.CutPrefix(w, "-S"); ok {
			words = append([]string{text}, words...)
			break
		}
		if w == "-" || w == "-i" || w == "--ignore-environment" || w == "--" {
			continue // the sandbox starts with an empty environment
		}
		return fmt.Errorf("option %s of env is not supported", w)
	}
	for len(words) > 0 && variableAssignment.MatchString(words[0]) {
		k, v, _ := strings.Cut(words[0], "=")
		if reservedVariable.MatchString(k) {
			return fmt.Errorf("script cannot set environment variable %s", k)
		}
		if sb.env == nil {
			sb.env = map[string]string{}
		}
		sb.env[k] = v
		words = words[1:]
	}
	if len(words) == 0 || words[0] == "" {
		return errors.New("missing interpreter")
	}
	sb.interpreter, sb.args = words[0], words[1:]
	if strings.Contains(sb.interpreter, "/") && !path.IsAbs(sb.interpreter) {
		return errors.New("interpreter path is relative; begin the script with #!/usr/bin/env NAME")
	}
	return nil
}

var (
	pythonName = lazyregexp.New(`^(python|pypy)[23]?(\.[0-9]{1,2})?$`)
	shellNames = []string{"sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish"}
)

// detect returns how to run the script at p with this shebang.
func (sb shebang) detect(p string) (detected, error) {
	name := path.Base(sb.interpreter)
	how := detected{args: sb.args, env: sb.env, interpreters: []string{name}}
	if path.IsAbs(sb.interpreter) {
		how.exact = sb.interpreter
	}
	_, typescript := strings.CutSuffix(strings.ToLower(p), ".ts")
	switch {
	case name == "python" || name == "python3":
		how.kind, how.interpreters = Python, byKind(Python).interpreters
	case pythonName.MatchString(name):
		how.kind = Python
	case name == "uv" || name == "pipx":
		return how.detectLauncher(name)
	case slices.Contains(shellNames, name):
		how.kind = Shell
	case (name == "node" || name == "nodejs") && typescript:
		how.kind, how.interpreters = TypeScript, []string{"node"}
	case name == "node" || name == "nodejs":
		how.kind, how.interpreters = Node, []string{"node"}
	case name == "deno" || name == "bun":
		how.kind = Node
		if typescript {
			how.kind = TypeScript
		}
	case name == "tsx" || name == "ts-node":
		how.kind, how.args, how.exact, how.interpreters = TypeScript, nil, "", byKind(TypeScript).interpreters
	case name == "npx" || name == "bunx":
		// npx would download the interpreter; any program that runs TypeScript
		// is suitable.
		if !slices.ContainsFunc(sb.args, func(a string) bool { return a == "tsx" || a == "ts-node" }) {
			return how, fmt.Errorf("%s would download a program; after #!, write the interpreter itself", name)
		}
		how.kind, how.args, how.exact, how.interpreters = TypeScript, nil, "", byKind(TypeScript).interpreters
	case name == "ruby":
		how.kind = Ruby
	case name == "perl":
		how.kind = Perl
	case name == "php":
		how.kind = PHP
	case name == "pwsh" || name == "powershell":
		how.kind, how.interpreters = PowerShell, []string{"pwsh"}
		how.args = slices.DeleteFunc(slices.Clone(sb.args), func(a string) bool {
			switch strings.ToLower(a) {
			case "-noprofile", "-noninteractive", "-file", "-f", "-nologo":
				return true
			}
			return false
		})
	default:
		how.kind = Other
		return how, checkOtherInterpreter(sb.interpreter)
	}
	return how, nil
}

var (
	programName = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9._+-]{0,63}$`)
	// userSwitchers run a program as another user. downloaders download the
	// program that they run.
	userSwitchers = []string{"sudo", "sudoedit", "su", "doas", "pkexec", "run0", "runuser", "newgrp", "sg", "gosu", "su-exec"}
	downloaders   = []string{"uvx", "pnpx"}
)

// checkOtherInterpreter returns an error if an interpreter without special
// rules is not allowed.
func checkOtherInterpreter(interpreter string) error {
	name := path.Base(interpreter)
	lower := strings.ToLower(name) // some file systems ignore case
	switch {
	case slices.Contains(strings.Split(interpreter, "/"), ".."):
		return errors.New("interpreter path contains ..; begin the script with #!/usr/bin/env NAME")
	case strings.HasPrefix(path.Clean(interpreter)+"/", "/skill/"):
		return errors.New("interpreter is inside the skill; begin the script with #!/usr/bin/env NAME")
	case !programName.MatchString(name):
		return fmt.Errorf("invalid interpreter name %q: use letters, digits and . _ + - only", name)
	case lower == "env":
		return errors.New("missing interpreter after env")
	case slices.Contains(userSwitchers, lower):
		return fmt.Errorf("%s would run the script as another user; after #!, write the interpreter itself", name)
	case slices.Contains(downloaders, lower):
		return fmt.Errorf("%s would download a program; after #!, write the interpreter itself", name)
	}
	return nil
}

// detectLauncher handles "uv run --script" and "pipx run". These install the
// script's needs and start Python, so the plan does the same.
func (how detected) detectLauncher(name string) (detected, error) {
	words := how.args
	how.kind, how.args, how.exact, how.interpreters = Python, nil, "", byKind(Python).interpreters
	if len(words) == 1 {
		words = strings.Fields(words[0]) // a shebang without env
	}
	for len(words) > 0 && (words[0] == "-q" || words[0] == "--quiet") {
		words = words[1:]
	}
	if len(words) == 0 || words[0] != "run" {
		return how, fmt.Errorf("only `%s run` can run a script", name)
	}
	for i := 1; i < len(words); i++ {
		flag, value, joined := strings.Cut(words[i], "=")
		takes := func() string {
			if !joined && i+1 < len(words) {
				i++
				return words[i]
			}
			return value
		}
		switch flag {
		case "--with", "-w":
			how.with = append(how.with, strings.Split(takes(), ",")...)
		case "--python", "-p":
			if v := takes(); uvPython.MatchString(v) {
				how.interpreters = []string{"python" + v}
			}
		case "--script", "-s", "--no-project", "--isolated", "--quiet", "-q", "--no-cache", "--frozen", "--locked", "--offline", "--path", "python", "python3":
		default:
			return how, fmt.Errorf("option %s of %s is not supported", flag, name)
		}
	}
	return how, nil
}
