package script

import (
	"fmt"
	"strings"
)

// NotFoundError: the skill has no such script.
type NotFoundError struct {
	Name string // as it was typed
	// Near are scripts that may have been meant, best first: of the same base
	// name, or spelled nearly so. Scripts are all the skill has.
	Near, Scripts []string
}

func (e *NotFoundError) Error() string {
	msg := fmt.Sprintf("there is no script %q in the skill", e.Name)
	if len(e.Near) > 0 {
		return msg + "; did you mean " + strings.Join(e.Near, " or ") + "?"
	}
	return msg + "; " + offer(e.Scripts)
}

// NotScriptError: the file is there and is not one that can be run.
type NotScriptError struct {
	Path    string
	Scripts []string // all the skill has; nil where only the file was looked at
}

func (e *NotScriptError) Error() string {
	msg := e.Path + " is not a script"
	if e.Scripts == nil {
		return msg + ": it has neither the extension of one nor a first line that names an interpreter"
	}
	return msg + "; " + offer(e.Scripts)
}

// OutsideError: the path leads out of the skill, or is no path.
type OutsideError struct {
	Name string // as it was typed
}

func (e *OutsideError) Error() string {
	return fmt.Sprintf("%q is not a path inside the skill; give one relative to its folder, such as scripts/run.py", e.Name)
}

// offer lists the scripts of a skill for a message.
func offer(scripts []string) string {
	const most = 12
	switch {
	case len(scripts) == 0:
		return "the skill has no scripts"
	case len(scripts) > most:
		return fmt.Sprintf("its scripts are %s and %d more", strings.Join(scripts[:most], ", "), len(scripts)-most)
	}
	return "its scripts are " + strings.Join(scripts, ", ")
}

// ShebangError: the first line of a script names no interpreter that may be looked
// for.
type ShebangError struct {
	Path   string
	Line   string // the line without "#!"
	Reason string
}

func (e *ShebangError) Error() string {
	return fmt.Sprintf("%s: first line %q: %s", e.Path, "#!"+e.Line, e.Reason)
}

// MissingError: no interpreter for the script can be had on this host.
type MissingError struct {
	Interpreter string // "python3", "deno or bun"
	For         string // the script
	Hint        string // how to get it on Debian and macOS
	// Tried are those that were found and cannot be used.
	Tried []Unusable
}

// Unusable is an interpreter that was found and cannot be given to a sandbox.
type Unusable struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

func (e *MissingError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s is needed to run %s and is missing", e.Interpreter, e.For)
	for i, t := range e.Tried {
		if i == 3 {
			fmt.Fprintf(&b, "; and %d more", len(e.Tried)-i)
			break
		}
		fmt.Fprintf(&b, "; %s cannot be used: %s", t.Path, t.Reason)
	}
	return b.String() + "; " + e.Hint
}

// NeedsError: what a script needs is written down in a way that is broken or
// refused. It holds all findings at once.
type NeedsError struct {
	Problems []Problem // at least one, in file order
}

// Problem is one finding in a file that says what a script needs.
type Problem struct {
	File string `json:"file"` // path in the skill
	Line int    `json:"line"` // 1-based; 0 where the file as a whole is meant
	// Code names the kind of finding: "syntax", "option", "direct", "outside",
	// "missing", "unsupported".
	Code    string `json:"code"`
	Message string `json:"message"`
	Fix     string `json:"fix"`
}

// String renders the problem as "file:line: message; fix".
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

// hints say how an interpreter is installed.
var hints = map[string]string{
	"python3": "install it with `apt install python3` (Debian), `brew install python` (macOS) or `uv python install`",
	"python2": "Python 2 is no longer supplied: port the script to Python 3 and change its first line to #!/usr/bin/env python3",
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

// otherHint is for interpreters whose packages are not known here.
const otherHint = "install it system-wide or in a directory of its own that is in PATH, or name another interpreter in the first line of the script"

func hint(interpreter string) string {
	if h, ok := hints[interpreter]; ok {
		return h
	}
	if strings.HasPrefix(interpreter, "python3.") {
		return fmt.Sprintf("install it with `uv python install %s` or `brew install python@%[1]s` (macOS), or change the first line of the script to #!/usr/bin/env python3", strings.TrimPrefix(interpreter, "python"))
	}
	return fmt.Sprintf("install it with `apt install %s` (Debian) or `brew install %[1]s` (macOS)", interpreter)
}
