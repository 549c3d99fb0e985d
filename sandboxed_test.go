package loadout_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/sandbox/native"
	"github.com/loadout-dev/loadout/internal/sandbox/stage/stagetest"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/sandbox/auto"
)

// staged runs the tests with a separate executable for the first process of
// sandboxes. A test binary would work too, but with -race it needs more memory
// than a sandbox allows that process.
type staged struct{ *testing.M }

func (m staged) Run() int {
	var exe string // also in the environment
	return stagetest.Run(m.run, &exe)
}

// run skips the example that needs a sandbox if there is none, because examples
// cannot skip themselves.
func (m staged) run() int {
	flag.Parse()
	if skip := flag.Lookup("test.skip"); skip.Value.String() == "" {
		if err := usable(); err != nil {
			fmt.Fprintln(os.Stderr, "ExampleRuntime_Run is not run:", err)
			flag.Set("test.skip", "^ExampleRuntime_Run$")
		}
	}
	return m.M.Run()
}

func backend() sandbox.Backend {
	return native.New(&native.Options{Stage: os.Getenv(stagetest.Variable)})
}

// usable reports whether this machine supports the native backend.
var usable = sync.OnceValue(func() error {
	_, err := backend().Probe(context.Background())
	return err
})

func needSandbox(t testing.TB) {
	t.Helper()
	if err := usable(); err != nil {
		t.Skipf("no sandbox here: %v", err)
	}
}

var (
	ann   = policy.Principal{ID: "ann", Kind: policy.UserPrincipal}
	robot = policy.Principal{ID: "robot", Kind: policy.AgentPrincipal}
)

// shop is a runtime that runs scripts.
type shop struct {
	*loadout.Runtime
	dir     string // of the skills
	scripts *loadout.Scripts
	grants  policy.Store
	audit   *records
}

// newShop returns a runtime with the skills in a new directory; change adjusts
// its options.
func newShop(t testing.TB, tree files, change func(*shop, *loadout.Options)) *shop {
	t.Helper()
	needSandbox(t)
	return anyShop(t, tree, change)
}

// anyShop is newShop for tests that do not start the sandbox.
func anyShop(t testing.TB, tree files, change func(*shop, *loadout.Options)) *shop {
	t.Helper()
	s := &shop{dir: t.TempDir(), grants: policy.NewMemoryStore(), audit: &records{}}
	tree.put(t, s.dir)
	s.scripts = &loadout.Scripts{Sandbox: backend(), Grants: s.grants, Audit: s.audit.Append, FolderDir: filepath.Join(t.TempDir(), "work"), ReadServers: servers}
	o := &loadout.Options{Sources: []catalog.Source{catalog.NewDir("local", catalog.User, s.dir, nil)}, Scripts: s.scripts}
	if change != nil {
		change(s, o)
	}
	rt, err := loadout.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close() })
	s.Runtime = rt
	return s
}

// put is like write, for tests and benchmarks.
func (f files) put(t testing.TB, dir string) {
	t.Helper()
	for name, text := range f {
		p := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

// approve approves the current form of the skill for the agent.
func (s *shop) approve(t testing.TB, name string, change ...func(*policy.Grant)) policy.Grant {
	t.Helper()
	w, err := s.ReadApprovalRequest(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	g := policy.Grant{Principal: robot, By: ann, Subject: w.Digest, Name: w.Entry.Name, Origin: w.Entry.Origin, Permissions: w.Requested.Permissions(), Needs: w.Needs, Scope: policy.Always}
	for _, f := range change {
		f(&g)
	}
	if g, err = s.grants.Put(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	return g
}

// try runs a script for an agent.
func (s *shop) try(t testing.TB, run loadout.Run) (*loadout.RunResult, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if run.Principal == (policy.Principal{}) && !run.ByUser {
		run.Principal = robot
	}
	return s.Run(ctx, run)
}

// ran runs a script for the user and requires that it starts.
func (s *shop) ran(t testing.TB, run loadout.Run) *loadout.RunResult {
	t.Helper()
	run.ByUser = true
	res, err := s.try(t, run)
	if err != nil {
		t.Fatalf("run %s of %s: %v", run.Script, run.Skill, err)
	}
	return res
}

// says runs a script for the user, requires that it succeeds and returns its
// output.
func (s *shop) says(t testing.TB, run loadout.Run) string {
	t.Helper()
	res := s.ran(t, run)
	if res.Reason != sandbox.OK {
		t.Fatalf("it ended as %s (%s), exit code %d, with %q and errors %q", res.Reason, res.Detail, res.ExitCode, res.Stdout, res.Stderr)
	}
	return res.Stdout
}

// refused checks that a run was refused, and the reason.
func refused(t testing.TB, res *loadout.RunResult, err error, code string, reason, next string) {
	t.Helper()
	no, ok := errors.AsType[*loadout.RefusedError](err)
	if !ok || res != nil {
		t.Fatalf("got %+v, %v; want a refusal", res, err)
	}
	if d := no.Decision; d.Effect != policy.Deny || d.Code != code || !strings.Contains(err.Error(), reason) || d.Hint != next {
		t.Errorf("refused as %s, %q, next %q; want %s, %q, %q", d.Code, err, d.Hint, code, reason, next)
	}
}

// records is an audit log in memory.
type records struct {
	mu  sync.Mutex
	all []policy.Record
	err error
}

func (r *records) Append(_ context.Context, rec policy.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return r.err
	}
	r.all = append(r.all, rec)
	return nil
}

// take returns the decisions since the last call and the ends of the runs.
func (r *records) take() (decisions, ends []policy.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rec := range r.all {
		if rec.Action == "ran" {
			ends = append(ends, rec)
		} else {
			decisions = append(decisions, rec)
		}
	}
	r.all = nil
	return decisions, ends
}

// signal is a writer that reports when data is written to it.
type signal struct {
	once sync.Once
	c    chan struct{}
}

func newSignal() *signal { return &signal{c: make(chan struct{})} }

func (s *signal) Write(b []byte) (int, error) {
	s.once.Do(func() { close(s.c) })
	return len(b), nil
}

// spy is a backend that records its calls. It starts nothing unless it wraps
// another backend.
type spy struct {
	sandbox.Backend
	tier sandbox.Tier
	spec *sandbox.Spec
}

var errSpied = errors.New("nothing is started here")

func (s *spy) Name() string       { return "spy" }
func (s *spy) Tier() sandbox.Tier { return s.tier }
func (s *spy) Probe(context.Context) (*sandbox.Report, error) {
	return &sandbox.Report{Backend: "spy", Tier: s.tier}, nil
}
func (s *spy) Start(_ context.Context, spec *sandbox.Spec) (sandbox.Sandbox, error) {
	s.spec = spec
	return nil, errSpied
}

// testSandbox selects a backend whose first process is the program for tests.
// Programs of embedders use auto.New(nil).
func testSandbox() *auto.Options {
	return &auto.Options{Stage: os.Getenv(stagetest.Variable)}
}
