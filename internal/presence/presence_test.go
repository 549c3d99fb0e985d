package presence

import (
	"os"
	"strings"
	"testing"
)

// table is a fake process table.
type table map[int]Process

func (t table) lookup(pid int) (Process, bool) {
	p, ok := t[pid]
	p.PID = pid
	return p, ok
}

// under returns the process table of a command, process 100, whose parents are
// listed from the nearest to the farthest: 99, 98, and so on.
func under(parents ...Process) table {
	t := table{100: {Name: "loadout", Parent: 99}}
	for i, p := range parents {
		p.Parent = 98 - i
		t[99-i] = p
	}
	return t
}

func TestDetect(t *testing.T) {
	shell := Process{Name: "bash", Path: "/usr/bin/bash", Args: []string{"-bash"}}
	node := func(args ...string) Process {
		return Process{Name: "MainThread", Path: "/usr/bin/node", Args: append([]string{"node"}, args...)}
	}
	vscode := Process{Name: "code", Path: "/usr/share/code/code"}
	const terminal = "/dev/pts/3"
	tests := map[string]struct {
		env       map[string]string
		processes table
		clients   []int
		terminal  string
		agent     string // "" for the user
		evidence  string
	}{
		"a shell":                    {processes: under(shell, Process{Name: "gnome-terminal"}), terminal: terminal},
		"an editor's terminal":       {env: map[string]string{"TERM_PROGRAM": "vscode", "VSCODE_PID": "98", "CURSOR_TRACE_ID": "x"}, processes: under(shell, vscode), terminal: terminal},
		"an editor that is a client": {processes: under(shell, Process{Name: "zed-editor"}), clients: []int{98}, terminal: terminal},
		"a shell that ran mcp":       {processes: under(shell), clients: []int{99}, terminal: terminal},
		"settings of clients":        {env: map[string]string{"CODEX_HOME": "/x", "CLAUDE_CONFIG_DIR": "/x", "AGENT": "build-7"}, processes: under(shell), terminal: terminal},
		"a file named like a client": {processes: under(Process{Name: "vim", Path: "/usr/bin/vim", Args: []string{"vim", "claude"}}), terminal: terminal},

		"CLAUDECODE":           {env: map[string]string{"CLAUDECODE": "1"}, processes: under(shell), terminal: terminal, agent: "Claude Code", evidence: "environment variable CLAUDECODE"},
		"CODEX_THREAD_ID":      {env: map[string]string{"CODEX_THREAD_ID": "0199"}, terminal: terminal, agent: "Codex", evidence: "environment variable CODEX_THREAD_ID"},
		"AGENT=goose":          {env: map[string]string{"AGENT": "goose"}, terminal: terminal, agent: "an agent", evidence: "environment variable AGENT"},
		"a client's shell":     {processes: under(shell, Process{Name: "codex"}), terminal: terminal, agent: "Codex", evidence: "parent process 98"},
		"a process title":      {processes: under(shell, Process{Name: "claude", Path: "/usr/bin/node", Args: []string{"claude"}}), terminal: terminal, agent: "Claude Code", evidence: "parent process 98"},
		"a script":             {processes: under(shell, node("--no-warnings", "/usr/lib/node_modules/@google/gemini-cli/dist/index.js")), terminal: terminal, agent: "Gemini CLI", evidence: "parent process 98"},
		"a link to a script":   {processes: under(shell, node("/usr/bin/qwen")), terminal: terminal, agent: "Qwen Code", evidence: "parent process 98"},
		"a Python program":     {processes: under(shell, Process{Name: "aider", Path: "/usr/bin/python3.12", Args: []string{"/usr/bin/python3.12", "/home/u/.local/bin/aider"}}), terminal: terminal, agent: "Aider", evidence: "parent process 98"},
		"a Windows program":    {processes: under(Process{Name: "cmd.exe"}, Process{Name: "claude.exe"}), terminal: "console", agent: "Claude Code", evidence: "parent process 98"},
		"script and setsid":    {processes: under(shell, Process{Name: "script"}, Process{Name: "setsid"}, shell, Process{Name: "claude"}), terminal: terminal, agent: "Claude Code", evidence: "parent process 95"},
		"an unknown client":    {processes: under(shell, Process{Name: "my-agent"}), clients: []int{7, 98}, terminal: terminal, agent: "an MCP client", evidence: "parent process 98, my-agent, also runs loadout mcp"},
		"an editor's agent":    {processes: under(shell, Process{Name: "claude"}, shell, vscode), terminal: terminal, agent: "Claude Code", evidence: "parent process 98"},
		"a cycle of processes": {processes: table{100: {Name: "loadout", Parent: 99}, 99: {Name: "a", Parent: 98}, 98: {Name: "b", Parent: 99}}, terminal: terminal},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := Detect(Options{Getenv: func(k string) string { return tt.env[k] }, Self: 100, Clients: tt.clients, Lookup: tt.processes.lookup, Terminal: func() string { return tt.terminal }})
			if c.Agent != tt.agent || c.Evidence != tt.evidence || c.Terminal != tt.terminal {
				t.Errorf("got %+v, want agent %q by %q", c, tt.agent, tt.evidence)
			}
			if c.IsUser() != (tt.agent == "") || (c.Reason() == "") != c.IsUser() {
				t.Errorf("user %v, reason %q", c.IsUser(), c.Reason())
			}
		})
	}
}

func TestNoTerminalIsNoUser(t *testing.T) {
	c := Detect(Options{Self: 100, Lookup: under().lookup, Terminal: func() string { return "" }})
	if c.IsUser() || c.Agent != "" || c.Reason() != "this command has no controlling terminal" {
		t.Errorf("got %+v, %q", c, c.Reason())
	}
}

// The system's process table has this process and its parent.
func TestLookupProcess(t *testing.T) {
	self, ok := lookupProcess(os.Getpid())
	if !ok {
		t.Skip("no process table on this system")
	}
	if self.Parent != os.Getppid() || !strings.HasPrefix(self.Name, "presence.test"[:8]) {
		t.Errorf("got %+v, want parent %d", self, os.Getppid())
	}
	if len(self.Args) > 0 && self.Args[0] != os.Args[0] {
		t.Errorf("arguments %q, want %q", self.Args, os.Args)
	}
	if _, ok := lookupProcess(1 << 30); ok {
		t.Error("found a process that cannot exist")
	}
}
