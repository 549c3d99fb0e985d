// Package script plans how to run a skill's script: the host's interpreter, the
// host directories that it needs, and the packages to install first.
//
// [Find] resolves a path typed by a model to a file of the skill, [Resolve]
// returns the [Plan] for that file, and [Split] splits a string of arguments
// into words. The package installs and runs nothing. It reads the skill only
// through [io/fs.FS], and only those parts of the host that [Host] describes.
//
// # Selecting the interpreter
//
// The shebang selects the interpreter. Without a shebang, the file extension
// does (see [Table]). From a shebang, the package uses the base name of the
// interpreter and its arguments. It uses the path only if it is in a system
// directory or in a directory of PATH, because a skill must not choose which
// part of a home directory is mounted. Any interpreter name is allowed;
// interpreters without special rules have the kind [Other] and run as the
// kernel would run them.
//
// # Errors
//
// Callers can handle these errors: [NotFoundError], [NotScriptError] and
// [OutsideError] for paths, [ShebangError] for first lines, [MissingError] for
// interpreters and [NeedsError] for requirements. All others are I/O errors.
//
// All functions are safe for concurrent use.
package script

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// Kind is the language of a script.
type Kind string

// Kinds of scripts. A WASM module runs in the caller's WASM runtime, and an
// executable runs directly. All other kinds have an interpreter.
const (
	Python     Kind = "python"
	Shell      Kind = "shell"
	Node       Kind = "node"
	TypeScript Kind = "typescript"
	Ruby       Kind = "ruby"
	Perl       Kind = "perl"
	PHP        Kind = "php"
	PowerShell Kind = "powershell"
	WASM       Kind = "wasm"
	Executable Kind = "executable"
	Other      Kind = "other" // another interpreter in a shebang: awk, lua, make
)

// Placeholder is the element of [Plan.Argv] that is replaced by the path of the
// script.
const Placeholder = "{script}"

// maxSource is the maximum size, in bytes, of a file that declares required
// packages: a Python script, a requirements file, a package.json or a lock
// file.
const maxSource = 8 << 20

// Plan describes how to run a script. The caller may modify it.
type Plan struct {
	// Kind is the language of the script.
	Kind Kind `json:"kind"`
	// Script is the path of the script in the skill.
	Script string `json:"script"`
	// Interpreter is the interpreter's name in PATH, such as "python3". It is
	// empty for executables and WASM. Version is its version, such as "3.11.7"
	// or "3.11", or empty if it is unknown without running the interpreter.
	Interpreter string `json:"interpreter,omitempty"`
	Version     string `json:"version,omitempty"`
	// Argv is the absolute host path of the interpreter, its flags, and
	// [Placeholder] as the last element. For executables and WASM modules it is
	// only the placeholder. [Plan.Command] replaces the placeholder.
	Argv []string `json:"argv"`
	// Prefixes lists the host directories to mount read-only at the same paths,
	// in sorted order. For a single-file interpreter it lists that file. It
	// never contains the home directory, a parent of it, or a system directory,
	// which every sandbox has.
	Prefixes []string `json:"prefixes,omitempty"`
	// Bin lists the directories to add to the front of PATH, so that programs
	// that the script starts use the same interpreter.
	Bin []string `json:"bin,omitempty"`
	// Env holds the environment variables of the run. It is never nil. The
	// shebang may set some, but none that affect loaders and shells.
	Env map[string]string `json:"env"`
	// Needs lists the packages to install first. It is nil if there are none.
	Needs *Needs `json:"needs,omitempty"`
}

// Command returns the command line that runs the script with args. file is the
// script's path as seen by the interpreter.
func (p *Plan) Command(file string, args ...string) []string {
	out := slices.Grow(slices.Clone(p.Argv), len(args))
	for i := len(out) - 1; i >= 0; i-- { // the last one, because the shebang may contain the same word
		if out[i] == Placeholder {
			out[i] = file
			break
		}
	}
	return append(out, args...)
}

// language describes how to run scripts in a programming language.
type language struct {
	kind Kind
	exts []string
	// interpreters lists the names to search for, best first.
	interpreters []string
	before       []string // arguments between interpreter and script
	env          map[string]string
}

// languages lists the kinds of scripts that have a file extension.
var languages = []language{
	{kind: Python, exts: []string{".py"}, interpreters: []string{"python3", "python"},
		// The skill is read-only, and the output of a killed script must not be
		// lost.
		env: map[string]string{"PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1"}},
	// Prefer bash, because authors of scripts without a shebang test them in
	// bash.
	{kind: Shell, exts: []string{".sh", ".bash"}, interpreters: []string{"bash", "sh"}},
	{kind: Node, exts: []string{".js", ".mjs", ".cjs"}, interpreters: []string{"node"}},
	{kind: TypeScript, exts: []string{".ts"}, interpreters: []string{"node", "deno", "bun", "tsx"}},
	{kind: Ruby, exts: []string{".rb"}, interpreters: []string{"ruby"}},
	{kind: Perl, exts: []string{".pl"}, interpreters: []string{"perl"}},
	{kind: PHP, exts: []string{".php"}, interpreters: []string{"php"}},
	{kind: PowerShell, exts: []string{".ps1"}, interpreters: []string{"pwsh"},
		before: []string{"-NoProfile", "-NonInteractive", "-File"},
		env:    map[string]string{"POWERSHELL_TELEMETRY_OPTOUT": "1", "POWERSHELL_UPDATECHECK": "Off"}},
	{kind: WASM, exts: []string{".wasm"}},
}

// Row is a row of the [Table] of extensions.
type Row struct {
	Extension string `json:"extension"` // file extension, with its dot
	Kind      Kind   `json:"kind"`
	// Interpreters lists the interpreters for scripts without a shebang, best
	// first. It is empty if no interpreter is needed.
	Interpreters []string `json:"interpreters"`
}

// Table returns the interpreters for each extension in a fixed order, for
// documentation. The caller may modify the slice.
func Table() []Row {
	var rows []Row
	for _, l := range languages {
		for _, ext := range l.exts {
			rows = append(rows, Row{ext, l.kind, slices.Clone(l.interpreters)})
		}
	}
	return rows
}

func byExtension(p string) (language, bool) {
	ext := strings.ToLower(path.Ext(p))
	for _, l := range languages {
		if slices.Contains(l.exts, ext) {
			return l, true
		}
	}
	return language{}, false
}

func byKind(k Kind) language {
	if i := slices.IndexFunc(languages, func(l language) bool { return l.kind == k }); i >= 0 {
		return languages[i]
	}
	return language{} // Other
}

// Resolve returns the plan for running the script at p, a path returned by
// [Find], on host. declared lists the Python requirements in the skill's
// SKILL.md, which apply to Python scripts that have no other requirements.
// Resolve returns an error if the requirements are invalid or no usable
// interpreter is found.
func Resolve(fsys fs.FS, p string, host Host, declared ...string) (*Plan, error) {
	head, mode, err := readHead(fsys, p)
	if err != nil {
		return nil, fmt.Errorf("read script: %w", err)
	}
	how, err := detectInterpreter(p, head, mode)
	if err != nil {
		return nil, err
	}
	plan := &Plan{Kind: how.kind, Script: p, Argv: []string{Placeholder}, Env: map[string]string{}}
	if len(how.interpreters) == 0 {
		return plan, nil
	}
	var requires string // supported Python versions
	switch how.kind {
	case Python:
		var src []byte
		if src, err = readSource(fsys, p); err != nil {
			return nil, fmt.Errorf("read script: %w", err)
		}
		plan.Needs, requires, err = pythonNeeds(fsys, p, src, how, declared)
	case Node, TypeScript:
		plan.Needs, err = nodeNeeds(fsys, p)
	}
	if err != nil {
		return nil, err
	}
	if err := host.finishPlan(plan, how, requires); err != nil {
		return nil, err
	}
	return plan, nil
}

// ResolvePython returns the plan for running Python code that is not a script
// of a skill. needs holds the packages to install and may be nil. The plan has
// no script.
func ResolvePython(needs *Needs, host Host) (*Plan, error) {
	l := byKind(Python)
	plan := &Plan{Kind: Python, Argv: []string{Placeholder}, Env: map[string]string{}, Needs: needs}
	requires := ""
	if needs != nil {
		requires = needs.RequiresPython
	}
	if err := host.finishPlan(plan, detected{kind: l.kind, interpreters: l.interpreters}, requires); err != nil {
		return nil, err
	}
	return plan, nil
}

// finishPlan sets the environment of the plan and the fields that depend on the
// host. requires specifies the supported Python versions.
func (h Host) finishPlan(plan *Plan, how detected, requires string) error {
	maps.Copy(plan.Env, byKind(how.kind).env)
	maps.Copy(plan.Env, how.env)
	if err := h.completePlan(plan, how, requires); err != nil {
		return err
	}
	slices.Sort(plan.Prefixes)
	plan.Prefixes = slices.Compact(plan.Prefixes)
	return nil
}

// detected describes how to run a script, based on its name and first bytes.
type detected struct {
	kind Kind
	// interpreters lists the names to search for, best first. exact is the path
	// in a shebang. If both are empty, no interpreter is needed.
	interpreters []string
	exact        string
	args         []string // arguments in the shebang
	env          map[string]string
	with         []string // requirements in the shebang
}

// detectInterpreter determines the interpreter of a script from its name, mode
// and first bytes.
func detectInterpreter(p string, src []byte, mode fs.FileMode) (detected, error) {
	if isELF(src) {
		return detected{kind: Executable}, nil
	}
	l, known := byExtension(p)
	if l.kind == WASM {
		return detected{kind: WASM}, nil
	}
	sb, ok, err := parseShebang(src)
	if err != nil {
		return detected{}, &ShebangError{Path: p, Line: sb.line, Reason: err.Error()}
	}
	if ok && (known || mayBeScript(p, mode)) {
		how, err := sb.detect(p)
		if err != nil {
			return detected{}, &ShebangError{Path: p, Line: sb.line, Reason: err.Error()}
		}
		return how, nil
	}
	if !known {
		return detected{}, &NotScriptError{Path: p}
	}
	return detected{kind: l.kind, interpreters: l.interpreters}, nil
}

// mayBeScript reports whether a file without a script extension may be a
// script: it is executable, or it has no extension at all, because archives can
// lose the executable bit.
func mayBeScript(p string, mode fs.FileMode) bool {
	return mode&0o111 != 0 || path.Ext(p) == ""
}

func isELF(src []byte) bool { return bytes.HasPrefix(src, []byte("\x7fELF")) }

// openRegular opens a file. It returns an error if the file is not regular.
func openRegular(fsys fs.FS, p string) (fs.File, fs.FileInfo, error) {
	f, err := fsys.Open(p)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "read", Path: p, Err: errors.New("not a regular file")}
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// readHead returns the file's leading bytes, which include the first line, and
// its mode.
func readHead(fsys fs.FS, p string) ([]byte, fs.FileMode, error) {
	f, info, err := openRegular(fsys, p)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	buf := make([]byte, len(utf8BOM)+maxShebang+1)
	n, err := io.ReadFull(f, buf)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = nil
	}
	return buf[:n], info.Mode(), err
}

// readSource reads a file of at most [maxSource] bytes.
func readSource(fsys fs.FS, p string) ([]byte, error) {
	f, _, err := openRegular(fsys, p)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	src, err := io.ReadAll(io.LimitReader(f, maxSource+1))
	if err == nil && len(src) > maxSource {
		err = &fs.PathError{Op: "read", Path: p, Err: fmt.Errorf("file too large (limit %d MiB)", maxSource>>20)}
	}
	return src, err
}
