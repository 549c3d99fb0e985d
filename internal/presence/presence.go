// Package presence determines whether an agent or the user runs this program.
//
// It looks for an environment variable that an agent's client sets, for such a
// client among the parent processes, and for a controlling terminal. This stops
// an agent that was misled by a skill's text, and leaves a trace. It is not a
// boundary: a process with the user's rights can remove all of these signs.
//
// Start with [Detect]. The tables of known clients are in clients.go.
package presence

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Caller describes who runs this program, as far as can be detected.
type Caller struct {
	Agent    string // name of the agent's client; "" if none was detected
	Evidence string // how the agent was detected
	Terminal string // name of the controlling terminal; "" if there is none
	// Assumed is set in tests, where a user is assumed to confirm what a command
	// cannot ask on its standard streams.
	Assumed bool
}

// IsUser reports whether the user ran the program: it has a terminal, and no
// agent was detected.
func (c Caller) IsUser() bool { return c.Agent == "" && c.Terminal != "" }

// Reason returns the reason why the caller is not considered the user, or "" if
// it is the user.
func (c Caller) Reason() string {
	switch {
	case c.Agent != "":
		return fmt.Sprintf("%s runs this command (%s)", c.Agent, c.Evidence)
	case c.Terminal == "":
		return "this command has no controlling terminal"
	}
	return ""
}

// Process describes a running process.
type Process struct {
	PID    int
	Parent int      // PID of the parent; 0 if unknown
	Name   string   // name that the system shows, which may be truncated
	Path   string   // path of the executable; "" if unknown
	Args   []string // arguments, with the program's name; nil if unknown
}

// Options configures [Detect]. The zero value uses only the system's process
// table and the terminal.
type Options struct {
	Getenv func(string) string // nil means that no variable is set
	// Self is the PID of this process.
	Self int
	// Clients holds the PIDs of processes that are known to be clients, because
	// they started an MCP server of this program that is still running.
	Clients []int
	// Lookup returns a process, or false if it cannot be read. nil uses the
	// system's process table.
	Lookup func(pid int) (Process, bool)
	// Terminal returns the name of the controlling terminal, or "". nil uses
	// that of this process.
	Terminal func() string
}

// assumed is the name of a terminal. If it is set, [Detect] checks nothing and
// reports a user at this terminal. Only the linker sets it, for programs that
// run commands from the documentation:
//
//	go build -ldflags "-X github.com/loadout-dev/loadout/internal/presence.assumed=test"
var assumed string

// maxAncestors bounds the walk up the process tree, which may contain a cycle
// if a PID was reused.
const maxAncestors = 64

// Detect determines whether an agent or the user runs the process with the PID
// o.Self.
func Detect(o Options) Caller {
	if assumed != "" {
		return Caller{Terminal: assumed, Assumed: true}
	}
	if o.Lookup == nil {
		o.Lookup = lookupProcess
	}
	if o.Terminal == nil {
		o.Terminal = controllingTerminal
	}
	c := Caller{Terminal: o.Terminal()}
	if o.Getenv != nil {
		for _, m := range markers {
			if v := o.Getenv(m.variable); v != "" && (m.values == nil || slices.Contains(m.values, v)) {
				c.Agent, c.Evidence = m.client, "environment variable "+m.variable
				return c
			}
		}
	}
	self, ok := o.Lookup(o.Self)
	for range maxAncestors {
		if !ok || self.Parent <= 0 || self.Parent == self.PID {
			break
		}
		if self, ok = o.Lookup(self.Parent); !ok {
			break
		}
		if name := clientOf(self); name != "" {
			c.Agent, c.Evidence = name, fmt.Sprintf("parent process %d, %s", self.PID, programName(self))
			return c
		}
		if slices.Contains(o.Clients, self.PID) && mayBeClient(self) {
			c.Agent, c.Evidence = "an MCP client", fmt.Sprintf("parent process %d, %s, also runs loadout mcp", self.PID, programName(self))
			return c
		}
	}
	return c
}

// clientOf returns the name of the known client that a process runs, or "".
func clientOf(p Process) string {
	names := []string{baseName(p.Name), baseName(p.Path)}
	paths := []string{p.Path}
	if len(p.Args) > 0 {
		names = append(names, baseName(p.Args[0]))
	}
	if isInterpreted(p) {
		names = append(names, programName(p))
		paths = append(paths, p.Args[1:]...)
	}
	for _, c := range clients {
		for _, n := range names {
			if slices.Contains(c.commands, n) {
				return c.name
			}
		}
		for _, dir := range c.packages {
			if slices.ContainsFunc(paths, func(p string) bool { return strings.Contains(withSlashes(p), "/"+dir+"/") }) {
				return c.name
			}
		}
	}
	return ""
}

// programName returns the name of the program or the script that p runs.
func programName(p Process) string {
	if isInterpreted(p) {
		if script := scriptOf(p); script != "" {
			return baseName(script)
		}
	}
	return baseName(p.Name)
}

// isInterpreted reports whether a process is an interpreter with arguments.
func isInterpreted(p Process) bool {
	return len(p.Args) > 1 && (isInterpreter(p.Path) || isInterpreter(p.Args[0]))
}

// scriptOf returns the script or the module that an interpreter runs, or "".
func scriptOf(p Process) string {
	for args := p.Args[1:]; len(args) > 0; args = args[1:] {
		a := args[0]
		switch {
		case a == "-m" && len(args) > 1: // a Python module
			module, _, _ := strings.Cut(args[1], ".")
			return module
		case slices.Contains(valueOptions, a) && len(args) > 1:
			args = args[1:]
		case !strings.HasPrefix(a, "-"):
			return a
		}
	}
	return ""
}

func isInterpreter(path string) bool {
	name := strings.TrimRight(baseName(path), "0123456789.") // python3.12
	return slices.Contains(interpreters, name)
}

// Callers returns the PIDs of the ancestors of the process pid, nearest first.
// It skips launchers, such as npx and sh -c, and stops at the first ancestor
// that is not one. One of the returned processes is the client. If nothing is
// known about the parent process, Callers returns only its PID.
func Callers(pid int, lookup func(int) (Process, bool)) []int {
	if lookup == nil {
		lookup = lookupProcess
	}
	var out []int
	p, ok := lookup(pid)
	for ok && p.Parent > 1 && len(out) < maxCallers {
		out = append(out, p.Parent)
		if p, ok = lookup(p.Parent); !isLauncher(p) {
			break
		}
	}
	return out
}

// maxCallers bounds the number of launchers between a client and its server.
const maxCallers = 8

// isLauncher reports whether a process only starts the program that its
// arguments name. A shell without a command is the user's own shell, not a
// launcher.
func isLauncher(p Process) bool {
	if slices.Contains(shells, strings.ToLower(baseName(p.Name))) {
		return len(p.Args) == 0 || slices.ContainsFunc(p.Args[1:], func(a string) bool { return !strings.HasPrefix(a, "-") })
	}
	return slices.Contains(launchers, strings.TrimSuffix(strings.ToLower(programName(p)), "-cli"))
}

// mayBeClient reports whether a process that started loadout mcp can be an
// agent's client. A shell in which the user typed the command cannot be a
// client. Neither can an editor with a terminal, because the user may have
// typed the command there.
func mayBeClient(p Process) bool {
	for _, n := range []string{baseName(p.Name), baseName(p.Path)} {
		n = strings.ToLower(n)
		if short := strings.TrimSuffix(n, "64"); slices.Contains(shells, n) || slices.Contains(notClients, n) || slices.Contains(notClients, short) { // goland64.exe
			return false
		}
	}
	return p.PID > 1
}

// baseName returns the last part of a path, without the extension of a program.
func baseName(p string) string {
	name := path.Base(withSlashes(p))
	for _, ext := range []string{".exe", ".cmd", ".js", ".mjs", ".cjs", ".py"} {
		if rest, ok := strings.CutSuffix(name, ext); ok && rest != "" {
			return rest
		}
	}
	return strings.TrimPrefix(name, "-") // a login shell
}

func withSlashes(p string) string { return strings.ReplaceAll(p, `\`, "/") }
