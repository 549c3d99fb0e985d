package presence

import (
	"os"
	"slices"
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
	python := func(args ...string) Process {
		return Process{Name: "python3", Path: "/usr/bin/python3.12", Args: append([]string{"python3"}, args...)}
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

		"CLAUDECODE":              {env: map[string]string{"CLAUDECODE": "1"}, processes: under(shell), terminal: terminal, agent: "Claude Code", evidence: "environment variable CLAUDECODE"},
		"CODEX_THREAD_ID":         {env: map[string]string{"CODEX_THREAD_ID": "0199"}, terminal: terminal, agent: "Codex", evidence: "environment variable CODEX_THREAD_ID"},
		"AGENT=goose":             {env: map[string]string{"AGENT": "goose"}, terminal: terminal, agent: "an agent", evidence: "environment variable AGENT"},
		"a client's shell":        {processes: under(shell, Process{Name: "codex"}), terminal: terminal, agent: "Codex", evidence: "parent process 98, codex"},
		"a process title":         {processes: under(shell, Process{Name: "claude", Path: "/usr/bin/node", Args: []string{"claude"}}), terminal: terminal, agent: "Claude Code", evidence: "parent process 98, claude"},
		"a script":                {processes: under(shell, node("--no-warnings", "/usr/lib/node_modules/@google/gemini-cli/dist/index.js")), terminal: terminal, agent: "Gemini CLI", evidence: "parent process 98, index"},
		"a link to a script":      {processes: under(shell, node("/usr/bin/qwen")), terminal: terminal, agent: "Qwen Code", evidence: "parent process 98, qwen"},
		"a Python program":        {processes: under(shell, Process{Name: "aider", Path: "/usr/bin/python3.12", Args: []string{"/usr/bin/python3.12", "/home/u/.local/bin/aider"}}), terminal: terminal, agent: "Aider", evidence: "parent process 98, aider"},
		"a Windows program":       {processes: under(Process{Name: "cmd.exe"}, Process{Name: "claude.exe"}), terminal: "console", agent: "Claude Code", evidence: "parent process 98, claude"},
		"script and setsid":       {processes: under(shell, Process{Name: "script"}, Process{Name: "setsid"}, shell, Process{Name: "claude"}), terminal: terminal, agent: "Claude Code", evidence: "parent process 95, claude"},
		"an unknown client":       {processes: under(shell, Process{Name: "my-agent"}), clients: []int{7, 98}, terminal: terminal, agent: "an MCP client", evidence: "parent process 98, my-agent, also runs loadout mcp"},
		"an editor's agent":       {processes: under(shell, Process{Name: "claude"}, shell, vscode), terminal: terminal, agent: "Claude Code", evidence: "parent process 98, claude"},
		"an option with a value":  {processes: under(shell, node("--require", "x.js", "/usr/lib/node_modules/@anthropic-ai/claude-code/cli.js")), terminal: terminal, agent: "Claude Code", evidence: "parent process 98, cli"},
		"an imported module":      {processes: under(shell, node("--import", "./x.mjs", "/usr/bin/gemini")), terminal: terminal, agent: "Gemini CLI", evidence: "parent process 98, gemini"},
		"a Python module":         {processes: under(shell, python("-W", "ignore", "-m", "aider")), terminal: terminal, agent: "Aider", evidence: "parent process 98, aider"},
		"a module with an option": {processes: under(shell, python("-X", "utf8", "-m", "aider.main")), terminal: terminal, agent: "Aider", evidence: "parent process 98, aider"},
		"an argument of a script": {processes: under(shell, python("-W", "ignore", "report.py", "aider")), terminal: terminal},
		"sshd":                    {processes: under(shell, Process{Name: "sshd-session"}), clients: []int{98}, terminal: terminal},
		"zellij":                  {processes: under(shell, Process{Name: "zellij"}), clients: []int{98}, terminal: terminal},
		"an IDE on Windows":       {processes: under(Process{Name: "powershell.exe"}, Process{Name: "pycharm64.exe"}), clients: []int{98}, terminal: "console"},
		"RustRover":               {processes: under(shell, Process{Name: "rustrover", Path: "/opt/rustrover/bin/rustrover"}), clients: []int{98}, terminal: terminal},
		"PowerShell that ran mcp": {processes: under(Process{Name: "PowerShell.exe"}), clients: []int{99}, terminal: "console"},
		"a title of a program":    {processes: under(shell, Process{Name: "MainThread", Path: "/usr/bin/node", Args: []string{"/opt/bin/claude"}}), terminal: terminal, agent: "Claude Code", evidence: "parent process 98, MainThread"},
		"an unknown executable":   {processes: under(shell, Process{Name: "python3", Args: []string{"python3", "/opt/bin/aider"}}), terminal: terminal, agent: "Aider", evidence: "parent process 98, aider"},
		"a title and a script":    {processes: under(shell, Process{Name: "node", Path: "/usr/bin/node", Args: []string{"title", "/usr/bin/gemini"}}), terminal: terminal, agent: "Gemini CLI", evidence: "parent process 98, gemini"},
		"only options":            {processes: under(shell, node("--interactive")), terminal: terminal},
		"a module that misses":    {processes: under(shell, python("-m")), terminal: terminal},
		"a value that misses":     {processes: under(shell, python("-W")), terminal: terminal},
		"a value like a client":   {processes: under(shell, python("-W", "aider")), terminal: terminal},
		"an unknown parent":       {processes: table{100: {Name: "loadout", Parent: 99}, 99: {Name: "bash"}, 0: {Name: "claude"}}, terminal: terminal},
		"an unknown process":      {processes: table{0: {Name: "claude"}}, terminal: terminal},
		"a client in a container": {processes: table{100: {Name: "loadout", Parent: 1}, 1: {Name: "claude"}}, terminal: terminal, agent: "Claude Code", evidence: "parent process 1, claude"},
		"init of a container":     {processes: table{100: {Name: "loadout", Parent: 1}, 1: {Name: "my-init"}}, clients: []int{1}, terminal: terminal},
		"the first process":       {processes: table{100: {Name: "loadout", Parent: 2}, 2: {Name: "my-agent", Parent: 1}}, clients: []int{2}, terminal: terminal, agent: "an MCP client", evidence: "parent process 2, my-agent, also runs loadout mcp"},
		"a cycle of processes":    {processes: table{100: {Name: "loadout", Parent: 99}, 99: {Name: "a", Parent: 98}, 98: {Name: "b", Parent: 99}}, terminal: terminal},
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

// A client is found above what starts the server for it, but not above the user's
// own shell.
func TestCallers(t *testing.T) {
	process := func(args ...string) Process {
		return Process{Name: baseName(args[0]), Path: "/usr/bin/" + args[0], Args: args}
	}
	agent, shell := process("my-agent"), process("bash", "-i")
	for name, tt := range map[string]struct {
		parents []Process
		want    []int
	}{
		"a client":         {[]Process{agent, shell}, []int{99}},
		"a shell":          {[]Process{process("sh", "-c", "loadout mcp; true"), agent, shell}, []int{99, 98}},
		"env":              {[]Process{process("env", "A=b", "loadout", "mcp"), process("bash", "run.sh"), agent}, []int{99, 98, 97}},
		"npx":              {[]Process{process("node", "/usr/lib/node_modules/npm/bin/npx-cli.js", "loadout", "mcp"), agent}, []int{99, 98}},
		"uvx":              {[]Process{process("python3", "/home/u/.cache/uv/bin/loadout", "mcp"), process("uvx", "loadout", "mcp"), agent}, []int{99, 98, 97}},
		"a user's shell":   {[]Process{shell, process("gnome-terminal-server")}, []int{99}},
		"a Windows script": {[]Process{{Name: "cmd.exe"}, {Name: "my-agent.exe"}}, []int{99, 98}},
		"a Python client":  {[]Process{process("python3", "agent.py"), process("jupyter-lab")}, []int{99}},
		"many shells":      {slices.Repeat([]Process{process("sh", "-c", "run")}, 20), []int{99, 98, 97, 96, 95, 94, 93, 92}},
		"init":             {nil, nil},
	} {
		processes := under(tt.parents...)
		if tt.parents == nil {
			processes[100] = Process{Name: "loadout", Parent: 1}
		}
		if got := Callers(100, processes.lookup); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

func TestCallerWithLowPID(t *testing.T) {
	processes := table{100: {Name: "loadout", Parent: 2}, 2: {Name: "my-agent", Parent: 1}}
	if got := Callers(100, processes.lookup); !slices.Equal(got, []int{2}) {
		t.Errorf("got %v, want 2", got)
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
