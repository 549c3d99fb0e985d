// Package script says how a script inside a skill is to be run: which
// interpreter of the host, which directories of the host that interpreter
// needs, and what has to be installed first.
//
// [Find] turns a path as a model types it into a file of the skill, [Resolve]
// turns that file into a [Plan], [Split] turns one string of arguments into
// words. The package resolves and runs nothing. It reads the skill through
// [io/fs.FS] only, and of the host what [Host] leads to.
//
// # Which interpreter
//
// A shebang decides where there is one, else the extension (see [Table]). Of a
// shebang only the base name of the interpreter and its arguments count: its
// path is honoured where it lies in a system directory or in one of PATH,
// because a skill must not choose which part of a home directory is mounted. An
// interpreter of any name is looked for; those without rules of their own are of
// kind [Other], and run as the kernel would run them.
//
// # Errors
//
// What a program can act on: [NotFoundError], [NotScriptError] and
// [OutsideError] of a path, [ShebangError] of a first line, [MissingError] of
// an interpreter, [NeedsError] of requirements. Anything else is I/O.
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

// The kinds. A WASM module is run by the caller's own engine, an executable by
// the kernel; all others have an interpreter.
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
	Other      Kind = "other" // an interpreter that a first line names: awk, lua, make
)

// Placeholder is the element of [Plan.Argv] that stands for the script.
const Placeholder = "{script}"

// maxSource bounds what is read of a Python script, a requirements file, a
// package.json or a lock file to learn what is needed.
const maxSource = 8 << 20

// Plan is how one script is to be run. It is the caller's to change.
type Plan struct {
	// Kind is the language.
	Kind Kind `json:"kind"`
	// Script is the path of the script in the skill.
	Script string `json:"script"`
	// Interpreter is the name that was looked for ("python3"), empty for
	// executables and WASM; Version is what is known of it without running
	// it ("3.11.7", "3.11" or empty).
	Interpreter string `json:"interpreter,omitempty"`
	Version     string `json:"version,omitempty"`
	// Argv is the interpreter by its absolute host path, its flags, and
	// [Placeholder] as its last element. For an executable and a WASM module it is only the
	// placeholder. Fill it in with [Plan.Command].
	Argv []string `json:"argv"`
	// Prefixes are the host directories (or, for an interpreter that is one
	// file, that file) to mount read-only at the same path, sorted. None is
	// the home directory, lies above it, or is a system directory: those a
	// sandbox has anyway.
	Prefixes []string `json:"prefixes,omitempty"`
	// Bin are the directories to put before PATH, so that what the script
	// starts by name is the same interpreter.
	Bin []string `json:"bin,omitempty"`
	// Env are variables that the run needs; never nil. Some may be from the
	// first line of the script, but none that loaders and shells obey.
	Env map[string]string `json:"env"`
	// Needs is what has to be installed first; nil for nothing.
	Needs *Needs `json:"needs,omitempty"`
}

// Command returns the whole command line for the script, which lies at file as
// the interpreter sees it, with args.
func (p *Plan) Command(file string, args ...string) []string {
	out := slices.Grow(slices.Clone(p.Argv), len(args))
	for i := len(out) - 1; i >= 0; i-- { // the last: a shebang may hold the same word
		if out[i] == Placeholder {
			out[i] = file
			break
		}
	}
	return append(out, args...)
}

// language is what is fixed for a kind of script.
type language struct {
	kind Kind
	exts []string
	// interpreters are the names looked for, best first.
	interpreters []string
	before       []string // arguments between interpreter and script
	env          map[string]string
}

// languages are the kinds that go by extension.
var languages = []language{
	{kind: Python, exts: []string{".py"}, interpreters: []string{"python3", "python"},
		// The skill is read-only, and output of a killed script counts.
		env: map[string]string{"PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1"}},
	// bash first: scripts without a shebang are written and tried there.
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

// Row is one line of the table of extensions.
type Row struct {
	Extension string `json:"extension"` // with its dot
	Kind      Kind   `json:"kind"`
	// Interpreters are what runs it without a shebang, best first; empty
	// where none is needed.
	Interpreters []string `json:"interpreters"`
}

// Table returns which extension is run by what, in a fixed order, for
// documentation. The slice is the caller's.
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

// Resolve says how the script at p, a path that [Find] returned, is to be run
// on host. What a script needs is read before its interpreter is looked for,
// so that both must be right.
func Resolve(fsys fs.FS, p string, host Host) (*Plan, error) {
	head, mode, err := head(fsys, p)
	if err != nil {
		return nil, fmt.Errorf("read script: %w", err)
	}
	how, err := recognise(p, head, mode)
	if err != nil {
		return nil, err
	}
	plan := &Plan{Kind: how.kind, Script: p, Argv: []string{Placeholder}, Env: map[string]string{}}
	if len(how.interpreters) == 0 {
		return plan, nil
	}
	var requires string // of Python
	switch how.kind {
	case Python:
		var src []byte
		if src, err = read(fsys, p); err != nil {
			return nil, fmt.Errorf("read script: %w", err)
		}
		plan.Needs, requires, err = pythonNeeds(fsys, p, src, how)
	case Node, TypeScript:
		plan.Needs, err = nodeNeeds(fsys, p)
	}
	if err != nil {
		return nil, err
	}
	maps.Copy(plan.Env, byKind(how.kind).env)
	maps.Copy(plan.Env, how.env)
	if err := host.complete(plan, how, requires); err != nil {
		return nil, err
	}
	slices.Sort(plan.Prefixes)
	plan.Prefixes = slices.Compact(plan.Prefixes)
	return plan, nil
}

// recognised is what the bytes and the name of a script say of running it.
type recognised struct {
	kind Kind
	// interpreters are the names to look for, best first; exact is the path
	// that a shebang names. Both empty: none is needed.
	interpreters []string
	exact        string
	args         []string // of the shebang
	env          map[string]string
	with         []string // requirements that the shebang names
}

// recognise says what a script is by its first bytes.
func recognise(p string, src []byte, mode fs.FileMode) (recognised, error) {
	if isELF(src) {
		return recognised{kind: Executable}, nil
	}
	l, known := byExtension(p)
	if l.kind == WASM {
		return recognised{kind: WASM}, nil
	}
	sb, ok, err := parseShebang(src)
	if err != nil {
		return recognised{}, &ShebangError{Path: p, Line: sb.line, Reason: err.Error()}
	}
	if ok && (known || maybeScript(p, mode)) {
		how, err := sb.recognise(p)
		if err != nil {
			return recognised{}, &ShebangError{Path: p, Line: sb.line, Reason: err.Error()}
		}
		return how, nil
	}
	if !known {
		return recognised{}, &NotScriptError{Path: p}
	}
	return recognised{kind: l.kind, interpreters: l.interpreters}, nil
}

// maybeScript reports whether a file that has no script's extension can be one
// by its first bytes: it is executable, or has no extension at all, since
// archives lose the executable bit.
func maybeScript(p string, mode fs.FileMode) bool {
	return mode&0o111 != 0 || path.Ext(p) == ""
}

func isELF(src []byte) bool { return bytes.HasPrefix(src, []byte("\x7fELF")) }

// open opens a regular file.
func open(fsys fs.FS, p string) (fs.File, fs.FileInfo, error) {
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

// head returns what the first line is looked for in, and the mode of the file.
func head(fsys fs.FS, p string) ([]byte, fs.FileMode, error) {
	f, info, err := open(fsys, p)
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

// read reads a file of at most [maxSource].
func read(fsys fs.FS, p string) ([]byte, error) {
	f, _, err := open(fsys, p)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	src, err := io.ReadAll(io.LimitReader(f, maxSource+1))
	if err == nil && len(src) > maxSource {
		err = &fs.PathError{Op: "read", Path: p, Err: fmt.Errorf("larger than %d MiB", maxSource>>20)}
	}
	return src, err
}
