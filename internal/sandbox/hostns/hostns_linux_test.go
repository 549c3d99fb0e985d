package hostns_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/sandbox/cgroup"
	"github.com/loadout-dev/loadout/internal/sandbox/execute"
	"github.com/loadout-dev/loadout/internal/sandbox/hostns"
	"github.com/loadout-dev/loadout/internal/sandbox/launcher"
	"github.com/loadout-dev/loadout/internal/sandbox/mountpoint"
	"github.com/loadout-dev/loadout/internal/sandbox/prepare"
	"github.com/loadout-dev/loadout/internal/sandbox/rundir"
	"github.com/loadout-dev/loadout/internal/sandbox/stage"
	"github.com/loadout-dev/loadout/internal/sandbox/stage/stagetest"
	"github.com/loadout-dev/loadout/sandbox"
)

var stageFile string

func TestMain(m *testing.M) { stagetest.Main(m, &stageFile) }

// user is the user that runs commands if the tests run as root.
const user = 65534

// backend runs sandboxes in the namespaces of the host.
type backend struct{ opts hostns.Options }

func (backend) Name() string                                   { return "test" }
func (backend) Tier() sandbox.Tier                             { return sandbox.None }
func (backend) Probe(context.Context) (*sandbox.Report, error) { return nil, nil }

func (b backend) Start(ctx context.Context, spec *sandbox.Spec) (sandbox.Sandbox, error) {
	s, err := hostns.Start(ctx, spec, b.opts)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func options(t *testing.T) hostns.Options {
	return hostns.Options{
		Backend: "test", Stage: stageFile, UID: user, Cache: stagetest.OpenDir(t), NoGroups: true,
		Enforced: func(*launcher.Sandbox, *cgroup.Group, *sandbox.Spec) map[string]string {
			return map[string]string{"wall": "timer"}
		},
	}
}

func shell(script string) *sandbox.Cmd { return &sandbox.Cmd{Args: []string{"/bin/sh", "-c", script}} }

func TestSandboxRunsAsUser(t *testing.T) {
	opts := options(t)
	var dir *rundir.Dir
	opts.Restrict = func(r *stage.Restrictions, d *rundir.Dir) {
		if r.Work != d.HostPath(mountpoint.Work) || r.Memory != 64<<20 || r.CPU != int64(prepare.DefaultLimits().CPU.Seconds()) {
			t.Errorf("restrictions %+v", r)
		}
		dir = d
	}
	spec := &sandbox.Spec{Limits: sandbox.Limits{Memory: 64 << 20}}
	s, err := hostns.Start(t.Context(), spec, opts)
	if err != nil {
		t.Fatal(err)
	}
	res, err := execute.RunIn(t.Context(), s, spec, shell("id -u; ulimit -n; ulimit -c; pwd"), nil)
	if err != nil {
		t.Fatal(err)
	}
	uid := os.Geteuid()
	if uid == 0 {
		uid = user
	}
	if got, want := string(res.Stdout), strconv.Itoa(uid)+"\n256\n0\n"+dir.HostPath(mountpoint.Work)+"\n"; got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
	state := s.State()
	state.Enforced["wall"] = "changed"
	if s.State().Enforced["wall"] != "timer" {
		t.Error("callers can change the state of the sandbox")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir.Root); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory after Close: %v", err)
	}
}

// A command that writes more than its limit ends with the reason.
func TestDiskIsWatched(t *testing.T) {
	spec := &sandbox.Spec{Limits: sandbox.Limits{Work: 1 << 20, FileSize: 64 << 20}}
	res, err := execute.Run(t.Context(), backend{options(t)}, spec, shell("i=0; while :; do i=$((i+1)); head -c 100000 /dev/zero >$i; done"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if res.Reason != sandbox.FileSize || !strings.Contains(res.Detail, "too much data") {
		t.Errorf("ended with %s: %s", res.Reason, res.Detail)
	}
}

func TestStartFails(t *testing.T) {
	unsafe := stagetest.OpenDir(t)
	if err := os.Chmod(unsafe, 0o777); err != nil {
		t.Fatal(err)
	}
	want := errors.New("no filter")
	for name, tt := range map[string]struct {
		change  func(*hostns.Options)
		missing string
	}{
		"an unsafe directory": {func(o *hostns.Options) { o.Dir = unsafe }, "a directory for sandboxes"},
		"no stage":            {func(o *hostns.Options) { o.Stage = filepath.Join(unsafe, "none") }, "cannot start the first process"},
		"no filter":           {func(o *hostns.Options) { o.Filter = func() ([]byte, error) { return nil, want } }, "seccomp"},
	} {
		opts := options(t)
		tt.change(&opts)
		_, err := hostns.Start(t.Context(), &sandbox.Spec{}, opts)
		if e, ok := errors.AsType[*sandbox.UnavailableError](err); !ok || e.Backend != "test" || e.Missing != tt.missing {
			t.Errorf("%s: %v", name, err)
		}
		if left, _ := filepath.Glob(filepath.Join(opts.Cache, "run", "*")); len(left) > 0 {
			t.Errorf("%s: left %v", name, left)
		}
	}
}

// With control groups, the limits on memory and processes apply to the sandbox alone.
func TestControlGroups(t *testing.T) {
	g, err := cgroup.New(cgroup.Limits{Memory: 1 << 30, Processes: 100, Cores: 1})
	if err != nil {
		t.Skip("no control groups: ", err)
	}
	counts := hostns.LimitsUser(g)
	g.Remove()
	opts := options(t)
	opts.NoGroups = false
	var group *cgroup.Group
	opts.Enforced = func(_ *launcher.Sandbox, g *cgroup.Group, _ *sandbox.Spec) map[string]string {
		group = g
		return nil
	}
	res, err := execute.Run(t.Context(), backend{opts}, &sandbox.Spec{}, shell("cat /proc/self/cgroup; ulimit -u"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if group == nil || hostns.LimitsUser(group) != counts || !hostns.LimitsUser(nil) {
		t.Fatalf("control group %+v", group)
	}
	if name := []byte("/loadout-" + strconv.Itoa(os.Getpid()) + "-"); !bytes.Contains(res.Stdout, name) {
		t.Errorf("the command is in none of the groups %s*: %s", name, res.Stdout)
	}
	if left, _ := filepath.Glob("/sys/fs/cgroup/*/loadout-" + strconv.Itoa(os.Getpid()) + "-*"); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}
