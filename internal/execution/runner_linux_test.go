package execution_test

import (
	"bufio"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/decision"
	"github.com/loadout-dev/loadout/internal/execution"
	"github.com/loadout-dev/loadout/internal/sandbox/execute"
	"github.com/loadout-dev/loadout/internal/script"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/skill"
)

var (
	ann   = policy.Principal{ID: "ann", Kind: policy.UserPrincipal}
	robot = policy.Principal{ID: "robot", Kind: policy.AgentPrincipal}
)

// machine runs the scripts of skills in memory.
type machine struct {
	*execution.Runner
	files   fstest.MapFS
	catalog *catalog.Catalog
	grants  policy.Store
	records []policy.Record
	audited func() // called after each record; may be nil
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	const head = "---\nname: tides\ndescription: Reads tide tables.\ndependencies: [clock]\nsandbox: {secrets: [KEY, NONE], seconds: 30, colour: red}\n---\n"
	m := &machine{grants: policy.NewMemoryStore(), files: fstest.MapFS{
		"tides/SKILL.md": {Data: []byte(head)}, "tides/do.sh": {Data: []byte("eval \"$1\"\n")}, "tides/notes.txt": {Data: []byte("notes\n")},
		"clock/SKILL.md": {Data: []byte("---\nname: clock\ndescription: Tells the time.\n---\n")}, "clock/time.txt": {Data: []byte("noon\n")},
	}}
	var err error
	if m.catalog, err = catalog.New([]catalog.Source{catalog.NewFS("mine", catalog.User, m.files)}, nil); err != nil {
		t.Fatal(err)
	}
	if err := m.catalog.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	o := execution.Options{
		Catalog: m.catalog, Sandbox: newBackend(t), Grants: m.grants, Bounds: policy.Bounds{Secrets: []string{"*"}}, Principal: robot, Host: script.Host{},
		Audit: func(_ context.Context, r policy.Record) error {
			m.records = append(m.records, r)
			if m.audited != nil {
				m.audited()
			}
			return nil
		},
		Services: func(*catalog.Entry, *skill.Skill) (execution.ServiceNeeds, error) {
			return execution.ServiceNeeds{}, nil
		},
		Secret: func(_ context.Context, _ policy.Digest, name string) (string, error) {
			return map[string]string{"KEY": "v3ry-s3cret"}[name], nil
		},
	}
	m.Runner = execution.New(o)
	return m
}

// approve approves the skill in its current version.
func (m *machine) approve(t *testing.T) policy.Grant {
	t.Helper()
	digest := func(name string) policy.Digest {
		e, err := m.catalog.Snapshot().Get(name)
		if err != nil {
			t.Fatal(err)
		}
		files, err := m.catalog.CompleteManifest(t.Context(), e)
		if err != nil {
			t.Fatal(err)
		}
		return policy.Digest(files.Digest())
	}
	g, err := m.grants.Put(t.Context(), policy.Grant{Principal: robot, By: ann, Subject: digest("tides"), Name: "tides", Scope: policy.Always,
		Needs: []policy.Need{{Name: "clock", Digest: digest("clock")}}, Permissions: policy.Permissions{Run: true, Secrets: []string{"KEY", "NONE"}}})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func (m *machine) decisions() string {
	var out []string
	for _, r := range m.records {
		out = append(out, r.Action+" "+string(r.Decision)+" "+r.Reason)
	}
	m.records = nil
	return strings.Join(out, "; ")
}

func do(text string) *execution.Request {
	return &execution.Request{Skill: "tides", Script: "do.sh", Args: []string{text}}
}

func TestRunScript(t *testing.T) {
	m := newMachine(t)
	res, err := m.Run(t.Context(), do("true"))
	if e, ok := errors.AsType[*execution.RefusedError](err); res != nil || !ok || e.Skill != "tides" || e.Decision.Code != decision.NotApproved {
		t.Fatalf("without approval: %+v, %v", res, err)
	}
	if got := m.decisions(); strings.Contains(got, ";") || !strings.Contains(got, "not approved") {
		t.Errorf("recorded %s", got)
	}
	m.approve(t)
	out := t.TempDir()
	var progress []string
	req := do(`cat $LOADOUT_SKILL/notes.txt /work/in/given; cat; cat $LOADOUT_SECRETS/KEY; ls $LOADOUT_SECRETS; echo result > /work/out/r.txt; echo bad >&2; exit 3`)
	req.Inputs = []execution.Input{{Name: "given", FS: execution.TextFile([]byte("given\n")), Path: "data"}}
	req.Streams.Stdin = strings.NewReader("typed\n")
	req.Output.Dir = out
	req.Progress = func(what string) { progress = append(progress, what) }
	if res, err = m.Run(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(res.Stdout), "notes\ngiven\ntyped\n") || strings.Contains(string(res.Stdout), "v3ry-s3cret") || !strings.HasSuffix(string(res.Stdout), "KEY\n") || string(res.Stderr) != "bad\n" || res.ExitCode != 3 || res.Reason != sandbox.Exited {
		t.Errorf("%+v: %s%s", res.Result, res.Stdout, res.Stderr)
	}
	if res.Skill != "tides" || res.Script != "do.sh" || res.Digest == "" || !slices.Equal(progress, []string{"running do.sh"}) {
		t.Errorf("%+v, progress %q", res, progress)
	}
	notes := strings.Join(res.Notes, "\n")
	if !strings.Contains(notes, "ignored: sandbox.colour: unknown field") || !strings.Contains(notes, "secret NONE is not set") {
		t.Errorf("notes %q", notes)
	}
	if b, err := os.ReadFile(filepath.Join(out, "r.txt")); string(b) != "result\n" {
		t.Errorf("output %q, %v", b, err)
	}
	if got := m.decisions(); !strings.HasSuffix(got, "; ran allow "+string(sandbox.Exited)) {
		t.Errorf("recorded %s", got)
	}

	req = do("sleep 600")
	req.Timeout = 100 * time.Millisecond
	if res, err := m.Run(t.Context(), req); err != nil || res.Reason != sandbox.Timeout || !res.Killed {
		t.Errorf("timeout: %+v, %v", res, err)
	}
	for script, want := range map[string]any{"none.sh": new(*script.NotFoundError), "notes.txt": new(*script.NotScriptError), "../do.sh": new(*script.OutsideError)} {
		if _, err := m.Run(t.Context(), &execution.Request{Skill: "tides", Script: script}); !errors.As(err, want) {
			t.Errorf("%s: %v", script, err)
		}
	}
	if _, err := (*execution.Runner)(nil).Run(t.Context(), do("true")); !errors.Is(err, execution.ErrNoScripts) {
		t.Errorf("without a runner: %v", err)
	}

	// The approval is one of these bytes.
	m.files["tides/do.sh"] = &fstest.MapFile{Data: []byte("echo evil\n")}
	if res, err := m.Run(t.Context(), do("true")); res != nil || err == nil {
		t.Errorf("changed: %+v, %v", res, err)
	}
}

// A user who types the command needs no other approval.
func TestRunByUser(t *testing.T) {
	m := newMachine(t)
	dir := newWorkspace(t, map[string]string{"x": "old\n"})
	req := do("cd /workspace; cat x; echo new > x; echo more > y")
	req.Workspace, req.Caller = dir, execution.Caller{Principal: ann, ByUser: true, WriteWorkspace: true}
	res, err := m.Run(t.Context(), req)
	if err != nil || string(res.Stdout) != "old\n" || res.ExitCode != 0 {
		t.Fatalf("%+v, %v", res, err)
	}
	for name, want := range map[string]string{"x": "new\n", "y": "more\n"} {
		if b, err := os.ReadFile(filepath.Join(dir, name)); string(b) != want {
			t.Errorf("%s has %q, %v", name, b, err)
		}
	}
	req.Caller.WriteWorkspace = false
	req.Args = []string{"(echo newer > /workspace/x) 2>/dev/null || echo refused"}
	if res, err := m.Run(t.Context(), req); err != nil || string(res.Stdout) != "refused\n" {
		t.Errorf("without write access: %+v, %v", res, err)
	}
	req.Caller.Principal = robot
	if _, err := m.Run(t.Context(), req); err == nil {
		t.Error("an agent types no commands")
	}
}

// Revoking the grant ends a run.
func TestRevokedRunEnds(t *testing.T) {
	m := newMachine(t)
	g := m.approve(t)
	req := do("echo started; sleep 600")
	req.Streams.Stdout = writer(func() {
		if _, err := m.grants.Revoke(t.Context(), g.ID); err != nil {
			t.Error(err)
		}
	})
	res, err := m.Run(t.Context(), req)
	if res == nil || !res.Killed || res.Reason != sandbox.Disabled {
		t.Errorf("%+v, %v", res, err)
	}
}

type writer func()

func (w writer) Write(b []byte) (int, error) { w(); return len(b), nil }

func TestServe(t *testing.T) {
	m := newMachine(t)
	m.approve(t)
	s, err := m.Serve(t.Context(), &execution.ServiceRequest{Skill: "tides", Command: []string{"${SKILL_DIR}/do.sh", `pwd; echo $A; while read line; do echo "got $line"; done; echo ended >&2`}, Env: map[string]string{"A": "${SKILL_DIR}/x"}})
	if err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(s)
	if _, err := s.Write([]byte("hello\n")); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"/skill\n", "/skill/x\n", "got hello\n"} {
		if line, err := r.ReadString('\n'); line != want {
			t.Errorf("read %q, %v, want %q", line, err, want)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	<-s.Done()
	if _, err := s.Write([]byte("x\n")); err == nil {
		t.Error("wrote to a closed service")
	}

	if s, err := m.Serve(t.Context(), &execution.ServiceRequest{Skill: "tides", Digest: "sha256:1", Command: []string{"./do.sh"}}); s != nil || err == nil || !strings.Contains(err.Error(), "changed since its command was read") {
		t.Errorf("another version: %v", err)
	}
	for name, tt := range map[string]struct {
		req  execution.ServiceRequest
		want any
	}{
		"a container": {execution.ServiceRequest{Skill: "tides", Command: []string{"docker", "run"}}, new(*execution.CommandError)},
		"no script":   {execution.ServiceRequest{Skill: "tides", Command: []string{"./none.sh"}}, new(*script.NotFoundError)},
		"no skill":    {execution.ServiceRequest{Skill: "none", Command: []string{"./none.sh"}}, new(*catalog.NotFoundError)},
	} {
		if s, err := m.Serve(t.Context(), &tt.req); s != nil || !errors.As(err, tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A service ends with its grant, with the reason.
func TestRevokedServiceEnds(t *testing.T) {
	m := newMachine(t)
	g := m.approve(t)
	s, err := m.Serve(t.Context(), &execution.ServiceRequest{Skill: "tides", Command: []string{"./do.sh", "echo started; sleep 600"}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if line, err := bufio.NewReader(s).ReadString('\n'); err != nil {
		t.Fatalf("read %q, %v", line, err)
	}
	if _, err := m.grants.Revoke(t.Context(), g.ID); err != nil {
		t.Fatal(err)
	}
	<-s.Done()
	if err := s.Err(); !errors.Is(err, execute.ErrDisabled) {
		t.Errorf("ended with %v", err)
	}
}

func TestServeProject(t *testing.T) {
	m := newMachine(t)
	dir := newWorkspace(t, map[string]string{"sub/x": "of the project\n"})
	trusted := errors.New("not trusted")
	p := &execution.Project{Dir: dir, Name: "project p", Subdir: "sub", Digest: "d", Check: func(context.Context) error { return trusted }}
	req := &execution.ServiceRequest{Project: p, Command: []string{"cat", "x"}}
	if _, err := m.Serve(t.Context(), req); !errors.Is(err, trusted) {
		t.Errorf("not trusted: %v", err)
	}
	trusted = nil
	s, err := m.Serve(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if line, err := bufio.NewReader(s).ReadString('\n'); line != "of the project\n" {
		t.Errorf("read %q, %v; %s", line, err, s.Stderr())
	}
	for name, wrong := range map[string]*execution.Project{
		"no check": {Dir: dir}, "outside": {Dir: dir, Subdir: "../x", Check: p.Check}, "relative": {Dir: "x", Check: p.Check},
	} {
		if _, err := m.Serve(t.Context(), &execution.ServiceRequest{Project: wrong, Command: []string{"cat", "x"}}); err == nil {
			t.Errorf("%s: started", name)
		}
	}
}
