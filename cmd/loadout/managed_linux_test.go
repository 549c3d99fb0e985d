package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/operator"
	"github.com/loadout-dev/loadout/policy"
)

// managedFixture is a user's home directory on a machine whose administrator
// alone approves skills.
type managedFixture struct {
	*callerFixture
	file string   // of the administrator
	vars []string // the environment of all commands
}

func newManagedFixture(t *testing.T) *managedFixture {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("the administrator's file must belong to root")
	}
	root := t.TempDir()
	d := &managedFixture{newCallerFixture(t), operator.File{Root: root}.Path(), []string{"TEST_OPERATOR=" + root}}
	d.administrator("policy: {presence: managed}\n")
	return d
}

func (d *managedFixture) administrator(text string) { d.write(d.file, text) }

func (d *managedFixture) write(file, text string) {
	d.t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		d.t.Fatal(err)
	}
}

// run runs the script of the skill, with more arguments before the command.
func (d *managedFixture) run(env []string, more ...string) (string, int) {
	d.t.Helper()
	return d.unattended(append(slices.Clone(d.vars), env...), append(more, "run", "task", "task.sh", "--skills", "skills")...)
}

// nothingCounts checks that no approval counts, whatever is stored.
func (d *managedFixture) nothingCounts(env []string, more ...string) {
	d.t.Helper()
	out, code := d.run(env, more...)
	if code != exit.Refused || strings.Contains(out, "\ndone") || strings.HasPrefix(out, "done") {
		d.t.Errorf("the skill runs, exit code %d:\n%s", code, out)
	}
	if list, _ := d.unattended(append(slices.Clone(d.vars), env...), append(more, "approve", "--list", "--skills", "skills")...); strings.Contains(list, "task") {
		d.t.Errorf("approved are\n%s", list)
	}
}

// storeGrant writes a grant as an attacker would.
func (d *managedFixture) storeGrant(subject policy.Digest, p policy.Permissions) {
	d.t.Helper()
	g := policy.Grant{Principal: policy.LocalUser(), By: policy.LocalUser(), Subject: subject, Name: "task", Origin: "x", Permissions: p, Scope: policy.Always, Presence: "terminal /dev/pts/0"}
	if _, err := policy.NewFileStore(filepath.Join(d.home, ".local", "state", "loadout", "grants")).Put(d.t.Context(), g); err != nil {
		d.t.Fatal(err)
	}
}

// On a managed machine, no command of a user or an agent creates an approval that
// counts, on a terminal or without one.
func TestManagedRefusesCommands(t *testing.T) {
	digest := newCallerFixture(t).digest("task")
	for _, command := range []string{
		"loadout-detecting approve task --skills skills",
		"loadout-detecting approve task --skills skills --yes",
		"loadout-detecting approve task --skills skills --digest " + digest + " --yes",
		"loadout-detecting run task task.sh --skills skills",
		"loadout-detecting run task task.sh --skills skills --host-network",
		"loadout-detecting trust project --yes",
		"loadout-detecting secret grant KEY --skill task --skills skills",
		"loadout-detecting serve",
		"script -qec 'loadout-detecting approve task --skills skills' /dev/null",
		"setsid -w loadout-detecting approve task --skills skills --yes",
	} {
		t.Run(command, func(t *testing.T) {
			if name := strings.Fields(command)[0]; name != "loadout-detecting" {
				if _, err := exec.LookPath(name); err != nil {
					t.Skip(err)
				}
			}
			d := newManagedFixture(t)
			out, code := d.inTerminal(d.vars, nil, command, "")
			if code != exit.Refused || !strings.Contains(out, "policy.presence is managed") || strings.Contains(out, "Approved.") {
				t.Errorf("exit code %d:\n%s", code, out)
			}
			if strings.Contains(command, " approve ") {
				refusal := out[max(0, strings.Index(out, "loadout: run ")):]
				if at := strings.Index(refusal, "loadout approve task --dry-run"); at < 0 || at >= 60 {
					t.Errorf("the refusal names no command: %s", out)
				}
			}
			if len(d.grants()) > 0 {
				t.Errorf("stored %+v", d.grants())
			}
			d.nothingCounts(nil)
		})
	}
}

// Neither do writes to the user's files, or other files that a command names.
func TestManagedIgnoresUserFiles(t *testing.T) {
	d := newManagedFixture(t)
	digest := d.digest("task")
	all := policy.Permissions{Run: true, Unsandboxed: true, HostNetwork: true, Network: []string{"*"}}
	own := filepath.Join(d.home, ".config", "loadout", "loadout.yaml")
	other := filepath.Join(d.home, "other.yaml")
	approved := "policy: {approved: [task=" + digest + "]}\n"
	for _, tt := range []struct {
		name  string
		write func()
		env   []string
		more  []string
	}{
		{"a grant", func() { d.storeGrant(policy.Digest(digest), all) }, nil, nil},
		{"the backend that does not isolate", func() { d.write(own, "sandbox: {backend: process, min_tier: 1}\n") }, nil, nil},
		{"the configuration", func() { d.write(own, approved) }, nil, nil},
		{"the configuration, with the mode", func() { d.write(own, "policy: {presence: cooperative, approved: [task="+digest+"]}\n") }, nil, nil},
		{"--config", func() { d.write(other, approved) }, nil, []string{"--config", other}},
		{"LOADOUT_CONFIG", func() {}, []string{"LOADOUT_CONFIG=" + other}, nil},
		{"another state directory", func() {}, []string{"LOADOUT_STATE=" + filepath.Join(d.home, ".local", "state", "loadout")}, nil},
		{"another home directory", func() {}, []string{"HOME=" + filepath.Join(d.home, "project"), "XDG_CONFIG_HOME=" + filepath.Join(d.home, ".config")}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.write()
			d.nothingCounts(tt.env, tt.more...)
		})
	}
}

// An MCP client is refused, although the user approved the skill before, and
// learns how an administrator approves it.
func TestManagedRefusesMCPClients(t *testing.T) {
	d := newManagedFixture(t)
	d.storeGrant(policy.Digest(d.digest("task")), policy.Permissions{Run: true})
	cmd := exec.Command("loadout-detecting", "mcp", "--skills", "skills")
	cmd.Dir, cmd.Env = d.home, d.env(d.vars...)
	s, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	refused := func() bool {
		t.Helper()
		res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "run_skill_script", Arguments: map[string]any{"skill": "task", "script": "task.sh"}})
		if err != nil {
			t.Fatal(err)
		}
		return strings.HasPrefix(res.Content[0].(*mcp.TextContent).Text, "The user can run `loadout approve task --dry-run --skills skills` to see what an administrator must approve: ")
	}
	if !refused() {
		t.Error("the client is not refused")
	}
	d.administrator("policy: {presence: managed, approved: [task=" + d.digest("task") + "]}\n")
	if refused() {
		t.Error("refused after the administrator approved the skill")
	}
	d.administrator("policy: {presence: managed}\n")
	if !refused() {
		t.Error("the client is not refused after the administrator removed the approval")
	}
}

// An agent that is its own MCP client can answer every question of the server. Its
// answers approve no skill: the server does not ask about skills.
func TestManagedIgnoresAnswersOfClients(t *testing.T) {
	d := newManagedFixture(t)
	cmd := exec.Command("loadout-detecting", "mcp", "--skills", "skills")
	cmd.Dir, cmd.Env = d.home, d.env(d.vars...)
	o := &mcp.ClientOptions{ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "always"}}, nil
	}}
	s, err := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, o).Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, call := range []*mcp.CallToolParams{
		{Name: "load_skill", Arguments: map[string]any{"name": "task"}},
		{Name: "run_skill_script", Arguments: map[string]any{"skill": "task", "script": "task.sh"}},
	} {
		res, err := s.CallTool(t.Context(), call)
		if err != nil {
			t.Fatal(err)
		}
		if got := res.Content[0].(*mcp.TextContent).Text; call.Name == "run_skill_script" && !strings.Contains(got, "to see what an administrator must approve") {
			t.Errorf("not refused: %s", got)
		}
	}
	if len(d.grants()) > 0 {
		t.Errorf("stored %+v", d.grants())
	}
	d.nothingCounts(nil)
}

// The administrator approves versions in their file, which --dry-run shows.
func TestManagedAdministratorApproves(t *testing.T) {
	d := newManagedFixture(t)
	needs := []string{"needy=" + d.digest("needy"), "task=" + d.digest("task")}
	out, code := d.unattended(d.vars, "approve", "needy", "--skills", "skills", "--dry-run")
	if want := d.file + ":\n\npolicy:\n  approved:\n    - " + needs[0] + "\n    - " + needs[1] + "\n"; code != exit.OK || !strings.Contains(out, want) {
		t.Fatalf("exit code %d, want %q:\n%s", code, want, out)
	}
	d.administrator("policy:\n  presence: managed\n  approved:\n    - " + strings.Join(needs, "\n    - ") + "\n")
	if out, code := d.run(nil); code == exit.Refused {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	for _, name := range []string{"sh", "bash"} {
		d.write(filepath.Join(d.home, "own", "bin", name), "#!/bin/sh\necho replaced\n")
		if err := os.Chmod(filepath.Join(d.home, "own", "bin", name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if out, _ := d.run([]string{"PATH=" + filepath.Join(d.home, "own", "bin") + ":" + os.Getenv("PATH")}); strings.Contains(out, "replaced") {
		t.Errorf("an interpreter of the user runs:\n%s", out)
	}
	if out, _ := d.unattended(d.vars, "doctor", "--skills", "skills"); !strings.Contains(out, "only the administrator's approvals count") {
		t.Errorf("doctor:\n%s", out)
	}
	list, _ := d.unattended(d.vars, "approve", "--list", "--skills", "skills", "--json")
	if n := strings.Count(list, `"presence": "stated by the administrator"`); n != 2 || strings.Count(list, `"configured": true`) != 2 {
		t.Errorf("listed are\n%s", list)
	}
	if out, code := d.unattended(d.vars, "approve", "--revoke", "task", "--skills", "skills"); code != exit.Refused || !strings.Contains(out, "set in policy.approved") {
		t.Errorf("revoked, exit code %d:\n%s", code, out)
	}
	d.write(filepath.Join(d.home, "skills", "task", "task.sh"), "echo other\n")
	if out, code := d.run(nil); code != exit.Refused {
		t.Errorf("another version runs, exit code %d:\n%s", code, out)
	}
}

// A file that others can write denies everything.
func TestManagedUnsafeFileDenies(t *testing.T) {
	d := newManagedFixture(t)
	digest := d.digest("task")
	d.storeGrant(policy.Digest(digest), policy.Permissions{Run: true})
	d.administrator("policy: {approved: [task=" + digest + "]}\n")
	if err := os.Chmod(d.file, 0o666); err != nil {
		t.Fatal(err)
	}
	if out, code := d.run(nil); code == exit.OK || !strings.Contains(out, "cannot be trusted: writable by others (mode 0666)") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	if err := os.Chmod(d.file, 0o644); err != nil {
		t.Fatal(err)
	}
	if out, code := d.run(nil); code == exit.Refused || code == exit.Usage {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}
