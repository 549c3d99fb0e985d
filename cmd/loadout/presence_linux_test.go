package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/presence"
	"github.com/loadout-dev/loadout/policy"
)

// callerFixture is a home directory with skills, a project and a client's
// configuration, for a program that determines who runs it.
type callerFixture struct {
	t    *testing.T
	home string
}

func newCallerFixture(t *testing.T) *callerFixture {
	d := &callerFixture{t, t.TempDir()}
	for name, text := range map[string]string{
		"skills/task/SKILL.md":         skillText("task", "Does a task. Use for tests.", "", "Run task.sh."),
		"skills/task/task.sh":          "echo done\n",
		"skills/needy/SKILL.md":        skillText("needy", "Needs the task. Use for tests.", "metadata: {dependencies: task}\n", "Run needy.sh."),
		"skills/needy/needy.sh":        "echo needy\n",
		"project/.git/HEAD":            "ref: refs/heads/main\n",
		"project/.mcp.json":            `{"mcpServers": {"a": {"command": "true"}}}`,
		".cursor/mcp.json":             `{"mcpServers": {"b": {"command": "true"}}}`,
		".config/loadout/servers.yaml": "mcpServers: {c: {command: 'true'}}\n",
		"more.json":                    `{"mcpServers": {"d": {"command": "true"}}}`,
	} {
		file := filepath.Join(d.home, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// env returns the whole environment of a command.
func (d *callerFixture) env(more ...string) []string {
	return append([]string{"HOME=" + d.home, "PATH=" + os.Getenv("PATH"), "TERM=xterm", "LC_ALL=C.UTF-8", "GORACE=" + os.Getenv("GORACE")}, more...)
}

// inTerminal runs a shell command on a terminal of its own, with answer typed if
// the command asks. names are the programs that run it, outermost first.
func (d *callerFixture) inTerminal(env []string, names []string, command, answer string) (output string, code int) {
	d.t.Helper()
	bin := d.t.TempDir()
	script := command
	for _, name := range slices.Backward(names) {
		link := filepath.Join(bin, name)
		if err := os.Symlink("/bin/sh", link); err != nil {
			d.t.Fatal(err)
		}
		script = link + " -c " + console.ShellQuote(script+"; exit $?")
	}
	words := append([]string{"-i"}, d.env(env...)...)
	c := openConsoleOf(d.t, "env", 300, nil, append(words, "sh", "-c", `cd "$HOME" && `+script)...)
	if answer != "" {
		c.await(d.t, "[y/N]")
		c.types(d.t, answer)
	}
	for _, over := range []chan struct{}{c.ended, c.read} {
		select {
		case <-over:
		case <-time.After(time.Minute):
			d.t.Fatalf("it goes on:\n%s", c.output())
		}
	}
	return c.output(), c.ProcessState.ExitCode()
}

// unattended runs a command without a terminal.
func (d *callerFixture) unattended(env []string, args ...string) (output string, code int) {
	d.t.Helper()
	c := exec.Command("loadout-detecting", args...)
	c.Dir, c.Env, c.SysProcAttr = d.home, d.env(env...), &syscall.SysProcAttr{Setsid: true}
	out, _ := c.CombinedOutput()
	return string(out), c.ProcessState.ExitCode()
}

func (d *callerFixture) grants() []policy.Grant {
	d.t.Helper()
	grants, problems, err := policy.NewFileStore(filepath.Join(d.home, ".local", "state", "loadout", "grants")).List(d.t.Context())
	if err != nil || len(problems) > 0 {
		d.t.Fatal(problems, err)
	}
	return grants
}

func (d *callerFixture) digest(name string) string {
	d.t.Helper()
	out, code := d.unattended(nil, "approve", name, "--skills", "skills", "--dry-run", "--json")
	var r struct{ Digest string }
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != exit.OK {
		d.t.Fatalf("%d %v %s", code, err, out)
	}
	return r.Digest
}

// needsUser skips a test that needs parents that are not agents.
func needsUser(t *testing.T) {
	if c := presence.Detect(presence.Options{Self: os.Getpid()}); c.Agent != "" {
		t.Skipf("an agent runs this test: %s", c.Evidence)
	}
}

// A user approves in a terminal, also in that of an editor.
func TestUserApprovesInTerminal(t *testing.T) {
	needsUser(t)
	for name, tt := range map[string]struct{ env, names []string }{
		"terminal":          {},
		"editor's terminal": {[]string{"TERM_PROGRAM=vscode", "VSCODE_INJECTION=1", "VSCODE_GIT_IPC_HANDLE=x"}, []string{"code", "bash"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newCallerFixture(t)
			out, code := d.inTerminal(tt.env, tt.names, "loadout-detecting approve task --skills skills", "y\n")
			grants := d.grants()
			if code != exit.OK || len(grants) != 1 {
				t.Fatalf("exit code %d, %d grants:\n%s", code, len(grants), out)
			}
			if p := grants[0].Presence; !strings.HasPrefix(p, "terminal /dev/pts/") {
				t.Errorf("presence %q", p)
			}
			if log, _ := os.ReadFile(filepath.Join(d.home, ".local/state/loadout/audit.jsonl")); !strings.Contains(string(log), `"presence":"terminal /dev/pts/`) {
				t.Errorf("the log is %s", log)
			}
		})
	}
}

// refusals are the commands that an agent may not run, and the command that each
// refusal names.
var refusals = map[string]string{
	"approve task --skills skills":                                "loadout approve task --skills skills",
	"approve task --skills skills --yes":                          "loadout approve task --skills skills",
	"approve task --skills skills --json":                         "loadout approve task --skills skills",
	"approve task --skills skills --unsandboxed":                  "loadout approve task --unsandboxed --skills skills",
	"run task task.sh --skills skills":                            "loadout approve task --skills skills",
	"run csv-analysis profile_csv.py --workspace project --write": "loadout run csv-analysis profile_csv.py --workspace project --write",
	"run csv-analysis profile_csv.py --host-network":              "loadout run csv-analysis profile_csv.py --host-network",
	"approve task --skills skills --expires 90m":                  "loadout approve task --expires 1h30m0s --skills skills",
	"run csv-analysis profile_csv.py --workspace project":         "loadout run csv-analysis profile_csv.py --workspace project",
	"run csv-analysis profile_csv.py --workspace project --write --in project --out new --timeout 5s --json -- --rows 2"://
	"loadout run csv-analysis profile_csv.py --in project --out new --workspace project --write --timeout 5s -- --rows 2",
	"servers accept d --mcp-config more.json": "loadout servers accept d --mcp-config more.json",
	"trust project":                                 "loadout trust $HOME/project",
	"trust project --yes":                           "loadout trust $HOME/project",
	"changes project --apply":                       "loadout changes $HOME/project --apply",
	"changes project --apply --yes":                 "loadout changes $HOME/project --apply",
	"import cursor":                                 "loadout import cursor",
	"import cursor --yes --keep":                    "loadout import cursor --keep",
	"servers accept c":                              "loadout servers accept c",
	"verify --forget https://example.com/a/b":       "loadout verify --forget https://example.com/a/b",
	"secret grant KEY --skill task --skills skills": "loadout secret grant KEY --skill task --skills skills",
}

// checkRefused checks that a command was refused and changed nothing.
func (d *callerFixture) checkRefused(command, out string, code int, reason string) {
	d.t.Helper()
	named := strings.ReplaceAll(refusals[command], "$HOME", d.home)
	refusal := regexp.MustCompile(`(?m)^loadout: the user can run .*$`).FindString(strings.ReplaceAll(out, "\r", ""))
	if code != exit.Refused || !strings.Contains(refusal, "`"+named+"` in their own terminal: ") || !strings.Contains(refusal, reason) {
		d.t.Errorf("%s: exit code %d, want a refusal that names %s and %q:\n%s", command, code, named, reason, out)
	}
	if at := strings.Index(refusal, "loadout "+strings.Fields(named)[1]); at < 0 || at >= 60 {
		d.t.Errorf("%s: the command starts at %d of %q", command, at, refusal)
	}
	if g := d.grants(); len(g) > 0 {
		d.t.Errorf("%s: granted %+v", command, g)
	}
	for _, file := range []string{".local/state/loadout/trust", ".local/state/loadout/imports"} {
		if entries, _ := os.ReadDir(filepath.Join(d.home, file)); len(entries) > 0 {
			d.t.Errorf("%s: wrote %s", command, file)
		}
	}
	if pending, _ := d.unattended(nil, "approve", "--pending"); !strings.Contains(pending, named+"\n") {
		d.t.Errorf("%s: pending is\n%s", command, pending)
	}
}

func TestAgentIsRefused(t *testing.T) {
	for command := range refusals {
		t.Run(command, func(t *testing.T) {
			d := newCallerFixture(t)
			out, code := d.inTerminal(nil, []string{"claude", "bash"}, "loadout-detecting "+command, "")
			d.checkRefused(command, out, code, "Claude Code runs this command (parent process ")
			out, code = d.inTerminal([]string{"GEMINI_CLI=1"}, nil, "loadout-detecting "+command, "")
			d.checkRefused(command, out, code, "Gemini CLI runs this command (") // by its variable, or by a parent of this test
			out, code = d.unattended(nil, strings.Fields(command)...)
			d.checkRefused(command, out, code, "")
		})
	}
}

// The ways around a refusal that keep the client as a parent are refused too.
func TestWrappedAgentIsRefused(t *testing.T) {
	const command = "approve task --skills skills"
	for _, wrapped := range []string{"script -qec %s /dev/null", "setsid -w sh -c %s", "env -i HOME=$HOME PATH=$PATH GORACE=\"$GORACE\" sh -c %s", "nohup sh -c %s", "sh -c %s </dev/null"} {
		t.Run(strings.Fields(wrapped)[0], func(t *testing.T) {
			if _, err := exec.LookPath(strings.Fields(wrapped)[0]); err != nil {
				t.Skip(err)
			}
			d := newCallerFixture(t)
			out, code := d.inTerminal(nil, []string{"codex"}, strings.ReplaceAll(wrapped, "%s", "'loadout-detecting "+command+"'"), "")
			if strings.HasPrefix(wrapped, "nohup") {
				data, _ := os.ReadFile(filepath.Join(d.home, "nohup.out"))
				out += string(data)
			}
			d.checkRefused(command, out, code, "Codex runs this command (parent process ")
		})
	}
}

// A program in the background cannot read the terminal: the system would stop it.
func TestBackgroundApprovalIsRefused(t *testing.T) {
	needsUser(t)
	d := newCallerFixture(t)
	out, code := d.inTerminal(nil, nil, "set -m; loadout-detecting approve task --skills skills </dev/null & wait $!", "")
	d.checkRefused("approve task --skills skills", out, code, "cannot ask on the terminal: the program is running in the background")
}

// A Dockerfile and a CI script state the digest. An agent may not.
func TestUnattendedApprovalStatesDigest(t *testing.T) {
	needsUser(t)
	d := newCallerFixture(t)
	task, needy := d.digest("task"), d.digest("needy")
	other := "sha256:" + strings.Repeat("0", 64)
	approve := func(name string, more ...string) []string {
		return append([]string{"approve", name, "--skills", "skills"}, more...)
	}
	for name, tt := range map[string]struct {
		env, args []string
		code      int
		want      string
	}{
		"no digest":               {nil, approve("task", "--yes"), exit.Refused, "loadout approve task --digest sha256:… --yes"},
		"no --yes":                {nil, approve("task", "--digest", task), exit.Refused, "no controlling terminal"},
		"another digest":          {nil, approve("task", "--digest", other, "--yes"), exit.Refused, "digest mismatch: given " + other + ", current " + task},
		"no digest of dependency": {nil, approve("needy", "--digest", needy, "--yes"), exit.Refused, "no --digest for needed task (" + task + ")"},
		"not a digest":            {nil, approve("task", "--digest", "latest", "--yes"), exit.Usage, "--digest latest: want sha256:"},
		"an agent":                {[]string{"CODEX_THREAD_ID=1"}, approve("task", "--digest", task, "--yes"), exit.Refused, "Codex runs this command"},
	} {
		out, code := d.unattended(tt.env, tt.args...)
		if code != tt.code || !strings.Contains(out, tt.want) || len(d.grants()) > 0 {
			t.Errorf("%s: exit code %d, %d grants, want %d and %q:\n%s", name, code, len(d.grants()), tt.code, tt.want, out)
		}
		if name == "an agent" && strings.Contains(out, "unattended") {
			t.Errorf("an agent learns about --digest:\n%s", out)
		}
	}
	for _, args := range [][]string{approve("task", "--digest", task, "--yes"), approve("needy", "--digest", needy, "--digest", task, "--yes", "--json")} {
		if out, code := d.unattended(nil, args...); code != exit.OK {
			t.Fatalf("%v: exit code %d:\n%s", args, code, out)
		}
	}
	for _, g := range d.grants() {
		if g.Presence != "digest stated" {
			t.Errorf("%s: presence %q", g.Name, g.Presence)
		}
	}
	if pending, _ := d.unattended(nil, "approve", "--pending", "--json"); !strings.Contains(pending, `"requests": []`) && strings.Contains(pending, `"approve", "needy"`) {
		t.Errorf("pending is %s", pending)
	}
	if out, code := d.unattended(nil, "run", "task", "task.sh", "--skills", "skills"); code == exit.Refused {
		t.Errorf("an approved skill is refused:\n%s", out)
	}
}

// A project is trusted by its digest.
func TestUnattendedTrustStatesDigest(t *testing.T) {
	needsUser(t)
	d := newCallerFixture(t)
	out, _ := d.unattended(nil, "trust", "project", "--dry-run", "--json")
	var p struct{ Digest string }
	if err := json.Unmarshal([]byte(out), &p); err != nil {
		t.Fatal(err, out)
	}
	if out, code := d.unattended(nil, "trust", "project", "--yes", "--digest", "sha256:"+strings.Repeat("0", 64)); code != exit.Refused {
		t.Errorf("another digest: exit code %d:\n%s", code, out)
	}
	if out, code := d.unattended([]string{"CRUSH=1"}, "trust", "project", "--yes", "--digest", p.Digest); code != exit.Refused {
		t.Errorf("an agent: exit code %d:\n%s", code, out)
	}
	if out, code := d.unattended(nil, "trust", "project", "--yes", "--digest", p.Digest); code != exit.OK {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}

// What the user runs is no longer pending.
func TestPendingRequestIsRemoved(t *testing.T) {
	needsUser(t)
	d := newCallerFixture(t)
	d.unattended([]string{"CLAUDECODE=1"}, "approve", "task", "--skills", "skills")
	d.unattended([]string{"CLAUDECODE=1"}, "approve", "task", "--skills", "skills")
	d.unattended([]string{"CLAUDECODE=1"}, "trust", "project")
	pending := func() []string {
		t.Helper()
		out, _ := d.unattended(nil, "approve", "--pending", "--json")
		var p struct {
			Requests []struct{ Command, Dir, Reason string }
		}
		if err := json.Unmarshal([]byte(out), &p); err != nil {
			t.Fatal(err, out)
		}
		var names []string
		for _, r := range p.Requests {
			names = append(names, r.Command)
			if r.Dir != d.home || r.Reason != "Claude Code runs this command (environment variable CLAUDECODE)" {
				t.Errorf("%+v", r)
			}
		}
		return names
	}
	trust := "loadout trust " + d.home + "/project"
	if got := pending(); !slices.Equal(got, []string{"loadout approve task --skills skills", trust}) {
		t.Errorf("pending %q", got)
	}
	if out, code := d.inTerminal(nil, nil, "loadout-detecting approve task --skills skills --expires 1h", "y\n"); code != exit.OK {
		t.Fatalf("exit code %d:\n%s", code, out)
	}
	if got := pending(); !slices.Equal(got, []string{trust}) {
		t.Errorf("pending %q", got)
	}
}

// Requests for other skills stay pending, and so does what the user declines.
func TestOtherRequestsStayPending(t *testing.T) {
	needsUser(t)
	d := newCallerFixture(t)
	requests := []string{"approve task --skills skills", "secret grant KEY --skill needy --skills skills", "secret grant KEY --skill task --skills skills"}
	for _, r := range requests {
		d.unattended([]string{"CLAUDECODE=1"}, strings.Fields(r)...)
	}
	check := func(want ...string) {
		t.Helper()
		all, _ := d.unattended(nil, "approve", "--pending")
		for _, r := range requests {
			if strings.Contains(all, "loadout "+r+"\n") != slices.Contains(want, r) {
				t.Errorf("want %q, pending is\n%s", want, all)
			}
		}
	}
	check(requests...)
	if out, code := d.inTerminal(nil, nil, "loadout-detecting approve task --skills skills", "n\n"); code != exit.Refused {
		t.Fatalf("exit code %d:\n%s", code, out)
	}
	check(requests...)
	if out, code := d.inTerminal(nil, nil, "loadout-detecting secret grant KEY --skill task --skills skills", ""); code != exit.OK {
		t.Fatalf("exit code %d:\n%s", code, out)
	}
	check(requests[:2]...)
}

// A list of requests that cannot be read is named. The refusal has its hint.
func TestPendingFileIsNamed(t *testing.T) {
	d := newCallerFixture(t)
	file := filepath.Join(d.home, ".local", "state", "loadout", "pending.json")
	for text, want := range map[string]string{`{"version": 99}`: "unsupported version 99 (this program reads up to 1); update loadout", "{": "cannot decode JSON"} {
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, code := d.unattended(nil, "approve", "--pending"); code != exit.Failure || !strings.Contains(out, file+": "+want) || !strings.Contains(out, "remove the file") {
			t.Errorf("exit code %d, want %q:\n%s", code, want, out)
		}
		out, code := d.unattended([]string{"CLAUDECODE=1"}, "run", "task", "task.sh", "--skills", "skills")
		if code != exit.Refused || !strings.Contains(out, file+": "+want) || !strings.Contains(out, "`loadout approve task --skills skills`") {
			t.Errorf("exit code %d, want %q:\n%s", code, want, out)
		}
		for line := range strings.Lines(out) {
			if strings.TrimSpace(line) == "" || strings.HasSuffix(strings.TrimSpace(line), ":") {
				t.Errorf("an empty line:\n%s", out)
			}
		}
	}
}

// A directory that the user approved for the skill needs no user.
func TestApprovedWorkspace(t *testing.T) {
	needsUser(t)
	d := newCallerFixture(t)
	run := func() int {
		t.Helper()
		_, code := d.unattended([]string{"CLAUDECODE=1"}, "run", "task", "task.sh", "--skills", "skills", "--workspace", "project")
		return code
	}
	for _, tt := range []struct {
		approve string
		refused bool
	}{{"approve task --skills skills", true}, {"approve task --skills skills --write-workspace", false}} {
		if out, code := d.inTerminal(nil, nil, "loadout-detecting "+tt.approve, "y\n"); code != exit.OK {
			t.Fatalf("exit code %d:\n%s", code, out)
		}
		if code := run(); (code == exit.Refused) != tt.refused {
			t.Errorf("after %s: exit code %d", tt.approve, code)
		}
	}
}

// The parent of a running loadout mcp is a client, so its other commands are an
// agent's. A shell between them does not hide it.
func TestParentOfServerIsClient(t *testing.T) {
	needsUser(t)
	for name, server := range map[string]string{"direct": "loadout-detecting mcp", "shell": "sh -c 'loadout-detecting mcp; true'", "env": "env A=b sh -c 'loadout-detecting mcp; true'"} {
		t.Run(name, func(t *testing.T) {
			d := newCallerFixture(t)
			// The client starts the server, waits until it is listed, and then runs the
			// command in a shell below itself. Its name is none of the known ones.
			client := filepath.Join(t.TempDir(), "some-client")
			if out, err := exec.Command("cp", "/bin/sh", client).CombinedOutput(); err != nil { // a link would be a shell
				t.Fatal(err, string(out))
			}
			script := `mkfifo in; ` + server + ` <in >out & exec 3>in
until ls .local/state/loadout/running/*.json >/dev/null 2>&1; do sleep 0.05; done
sh -c "loadout-detecting approve task --skills skills; echo code \$?"
exec 3>&-; wait`
			out, _ := d.inTerminal(nil, nil, client+" -c "+console.ShellQuote(script), "")
			if !strings.Contains(out, "code 3") || !strings.Contains(out, ", some-client, also runs loadout mcp)") || len(d.grants()) > 0 {
				t.Errorf("%d grants:\n%s", len(d.grants()), out)
			}
		})
	}
}

// The configuration of the operator approves a skill by its digest, without a
// terminal and without a command.
func TestConfigurationApprovesByDigest(t *testing.T) {
	d := newCallerFixture(t)
	task, needy := "task="+d.digest("task"), "needy="+d.digest("needy")
	configure := func(file string, entries ...string) {
		t.Helper()
		text, err := json.Marshal(map[string]any{"policy": map[string]any{"approved": entries}})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(d.home, file), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run := func(env []string, skill string) (string, bool) {
		t.Helper()
		out, code := d.unattended(env, "run", skill, skill+".sh", "--skills", "skills")
		return out, code != exit.Refused
	}
	for name, tt := range map[string]struct {
		entries []string
		env     []string
		skill   string
		runs    bool
		note    string
	}{
		"stated":            {[]string{task}, nil, "task", true, ""},
		"with dependencies": {[]string{task, needy}, nil, "needy", true, ""},
		"not stated":        {nil, nil, "task", false, ""},
		"no dependencies":   {[]string{needy}, nil, "needy", false, "needy is not approved: missing entry for task ("},
		"another digest":    {[]string{"task=sha256:" + strings.Repeat("0", 64)}, nil, "task", false, "task is not approved: digest mismatch: configured sha256:0000"},
		"a variable":        {nil, []string{"LOADOUT_POLICY_APPROVED=" + task}, "task", false, ""},
	} {
		configure(".config/loadout/loadout.yaml", tt.entries...)
		if out, runs := run(tt.env, tt.skill); runs != tt.runs || !strings.Contains(out, tt.note) {
			t.Errorf("%s: runs %v, want %v and %q:\n%s", name, runs, tt.runs, tt.note, out)
		}
	}
	configure(".config/loadout/loadout.yaml")
	configure("named.yaml", task)
	named := "LOADOUT_CONFIG=" + filepath.Join(d.home, "named.yaml")
	if out, runs := run([]string{named}, "task"); !runs {
		t.Errorf("a file that the operator names does not approve:\n%s", out)
	}
	if out, runs := run([]string{named, "CLAUDECODE=1"}, "task"); runs || !strings.Contains(out, "policy.approved is ignored, because an agent") {
		t.Errorf("a file that an agent names approves:\n%s", out)
	}
	if out, code := d.unattended([]string{"CLAUDECODE=1"}, "run", "task", "task.sh", "--skills", "skills", "--config", "named.yaml"); code != exit.Refused {
		t.Errorf("a file that an agent gives with --config approves, exit code %d:\n%s", code, out)
	}
	configure("loadout.yaml", task) // of the project
	if out, runs := run(nil, "task"); runs {
		t.Errorf("a project approves:\n%s", out)
	}
}

// The digests of platform values and packages are listed beside that of the skill
// that needs them.
func TestConfigurationApprovesPlatformValues(t *testing.T) {
	d := newCallerFixture(t)
	write := func(file, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(d.home, file)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(d.home, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	configure := func(approved ...string) {
		t.Helper()
		text, err := json.Marshal(map[string]any{"variables": map[string]string{"backend_url": "https://values.example:8000"}, "policy": map[string]any{"approved": approved}})
		if err != nil {
			t.Fatal(err)
		}
		write(".config/loadout/loadout.yaml", string(text))
	}
	write("skills/valued/SKILL.md", skillText("valued", "Uses a value. Use for tests.", "mcpServers: {v: {type: streamable-http, url: \"${{backend_url}}/mcp\"}}\n", "Run valued.sh."))
	write("skills/valued/valued.sh", "echo valued\n")
	configure()
	out, code := d.unattended(nil, "approve", "valued", "--skills", "skills", "--dry-run", "--json")
	var r struct {
		Digest string
		Needs  []policy.Need
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != exit.OK || len(r.Needs) != 1 || r.Needs[0].Name != "variable:backend_url@values.example:8000" {
		t.Fatalf("exit code %d, %v:\n%s", code, err, out)
	}
	valued, value, unused := "valued="+r.Digest, r.Needs[0].Name+"="+string(r.Needs[0].Digest), "npm:@scope/unused@1.0.0=sha256:"+strings.Repeat("0", 64)

	configure(valued, value, unused)
	if out, code := d.unattended(nil, "run", "valued", "valued.sh", "--skills", "skills"); code == exit.Refused || strings.Contains(out, "policy.approved") {
		t.Errorf("approved: exit code %d:\n%s", code, out)
	}
	configure(valued, unused)
	want := "valued is not approved: missing entry for " + r.Needs[0].Name
	if out, code := d.unattended(nil, "run", "valued", "valued.sh", "--skills", "skills"); code != exit.Refused || !strings.Contains(out, want) {
		t.Errorf("without the value: exit code %d, want %q:\n%s", code, want, out)
	}
}
