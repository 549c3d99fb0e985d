package script

import (
	"fmt"
	"strings"
)

// NotFoundError is returned if the skill has no script with the given name.
type NotFoundError struct {
	Name string // as the user or model typed it
	// Near lists scripts with an equal or similar base name, best match first.
	// Scripts lists all scripts of the skill.
	Near, Scripts []string
}

func (e *NotFoundError) Error() string {
	msg := fmt.Sprintf("script %q not found in the skill", e.Name)
	if len(e.Near) > 0 {
		return msg + "; did you mean " + strings.Join(e.Near, " or ") + "?"
	}
	return msg + "; " + listScripts(e.Scripts)
}

// NotScriptError is returned if a file exists but is not a script.
type NotScriptError struct {
	Path    string
	Scripts []string // all scripts of the skill; nil if they were not listed
}

func (e *NotScriptError) Error() string {
	msg := e.Path + " is not a script"
	if e.Scripts == nil {
		return msg + ": no script extension and no first line that names an interpreter"
	}
	return msg + "; " + listScripts(e.Scripts)
}

// OutsideError is returned if a path is invalid or points outside the skill.
type OutsideError struct {
	Name string // as the user or model typed it
}

func (e *OutsideError) Error() string {
	return fmt.Sprintf("%q is not a path in the skill; use a path relative to its folder, such as scripts/run.py", e.Name)
}

// listScripts formats a skill's scripts for an error message.
func listScripts(scripts []string) string {
	const most = 12
	switch {
	case len(scripts) == 0:
		return "the skill has no scripts"
	case len(scripts) > most:
		return fmt.Sprintf("its scripts are %s and %d more", strings.Join(scripts[:most], ", "), len(scripts)-most)
	}
	return "its scripts are " + strings.Join(scripts, ", ")
}

// ShebangError is returned if a script's first line does not name a permitted
// interpreter.
type ShebangError struct {
	Path   string
	Line   string // the line without "#!"
	Reason string
}

func (e *ShebangError) Error() string {
	return fmt.Sprintf("%s: first line %q: %s", e.Path, "#!"+e.Line, e.Reason)
}

// MissingError is returned if the host has no usable interpreter for a script.
type MissingError struct {
	Interpreter string // for example "python3" or "deno or bun"
	For         string // the script
	Hint        string // how to install it on Debian and macOS
	// Tried lists interpreters that were found but are not usable.
	Tried []Unusable
}

// Unusable is an interpreter that was found but cannot be mounted in a sandbox.
type Unusable struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

func (e *MissingError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s is required to run %s but not installed", e.Interpreter, e.For)
	for i, t := range e.Tried {
		if i == 3 {
			fmt.Fprintf(&b, "; and %d more", len(e.Tried)-i)
			break
		}
		fmt.Fprintf(&b, "; %s cannot be used: %s", t.Path, t.Reason)
	}
	return b.String() + "; " + e.Hint
}

// NeedsError is returned if a script's requirements are invalid or forbidden.
// It lists all problems.
type NeedsError struct {
	Problems []Problem // at least one, in file order
}

// Problem describes a problem in a file that declares requirements.
type Problem struct {
	File string `json:"file"` // path in the skill
	Line int    `json:"line"` // 1-based; 0 for the whole file
	// Code is the kind of problem: "syntax", "option", "direct", "outside",
	// "missing" or "unsupported".
	Code    string `json:"code"`
	Message string `json:"message"`
	Fix     string `json:"fix"`
}

// String formats the problem as "file:line: message; fix".
func (p Problem) String() string {
	at := p.File
	if p.Line > 0 {
		at = fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	return at + ": " + p.Message + "; " + p.Fix
}

func (e *NeedsError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// installHints maps interpreters to installation instructions for Debian and
// macOS.
var installHints = map[string]string{
	"python3": "install it with `apt install python3` (Debian), `brew install python` (macOS) or `uv python install`",
	"python2": "Python 2 is no longer available: port the script to Python 3 and change its first line to #!/usr/bin/env python3",
	"pypy3":   "install it with `apt install pypy3` (Debian) or `brew install pypy3` (macOS)",
	"node":    "install it with `apt install nodejs` (Debian) or `brew install node` (macOS)",
	"deno":    "install it with `brew install deno` (macOS) or from https://deno.com (Debian)",
	"bun":     "install it with `brew install oven-sh/bun/bun` (macOS) or from https://bun.sh (Debian)",
	"ts":      "install Node.js 22.18 or newer (https://nodejs.org, `brew install node` on macOS), deno or bun",
	"ruby":    "install it with `apt install ruby` (Debian) or `brew install ruby` (macOS)",
	"perl":    "install it with `apt install perl` (Debian) or `brew install perl` (macOS)",
	"php":     "install it with `apt install php-cli` (Debian) or `brew install php` (macOS)",
	"pwsh":    "install PowerShell from https://aka.ms/install-powershell (Debian) or with `brew install powershell` (macOS)",
}

// defaultInstallHint is the hint for interpreters without an entry in
// installHints.
const defaultInstallHint = "install it system-wide or in a separate directory in PATH, or name another interpreter in the first line of the script"

func installHint(interpreter string) string {
	if h, ok := installHints[interpreter]; ok {
		return h
	}
	if strings.HasPrefix(interpreter, "python3.") {
		return fmt.Sprintf("install it with `uv python install %s` or `brew install python@%[1]s` (macOS), or change the first line of the script to #!/usr/bin/env python3", strings.TrimPrefix(interpreter, "python"))
	}
	return fmt.Sprintf("install it with `apt install %s` (Debian) or `brew install %[1]s` (macOS)", interpreter)
}
