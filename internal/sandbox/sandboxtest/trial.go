//go:build linux

package sandboxtest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/sandbox/execute"
	"github.com/loadout-dev/loadout/sandbox"
)

// hangTimeout is how long a run may exceed the policy's wall time before it
// counts as hanging.
const hangTimeout = 20 * time.Second

// trial holds the state of a running attack.
type trial struct {
	*scene
	t       *testing.T
	backend sandbox.Backend
	opts    Options
	mark    string
	limits  *sandbox.Limits // limits to use instead of [PolicyLimits]; may be nil

	spec   *sandbox.Spec
	box    sandbox.Sandbox
	state  sandbox.State
	detail string // details of the result
}

// execute runs an attack, cleans up, and reports whether the attack succeeded.
func (x *trial) execute(a attack) bool {
	x.detail = ""
	defer func() {
		x.close()
		sweep(x.mark)
	}()
	return a.run(x)
}

// start starts the sandbox of the attack.
func (x *trial) start() sandbox.Sandbox {
	x.t.Helper()
	if x.box != nil {
		return x.box
	}
	x.spec = newSpec(x.t)
	if x.limits != nil {
		x.spec.Limits = *x.limits
	}
	if x.opts.Spec != nil {
		x.opts.Spec(x.spec)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	box, err := x.backend.Start(ctx, x.spec)
	if err != nil {
		x.t.Fatalf("start: %v", err)
	}
	x.box = box
	return box
}

// exec runs the payload, copying its output to tee. It fails the test if the
// payload does not start.
func (x *trial) exec(tee io.Writer, command string, args ...string) *execute.Result {
	x.t.Helper()
	x.start()
	ctx, cancel := context.WithTimeout(context.Background(), x.spec.Limits.Wall+hangTimeout)
	defer cancel()
	res, err := execute.RunIn(ctx, x.box, x.spec, payloadCmd(command, x.mark, args...), &execute.Options{Stdout: tee})
	if res == nil {
		x.t.Fatalf("%s: %v", command, err)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		x.note("timed out")
	}
	x.state = x.box.State()
	return res
}

// attack runs the payload's part of an attack. It returns the result and
// whether the payload reported success.
func (x *trial) attack(id string, args ...string) (*execute.Result, bool) {
	x.t.Helper()
	res := x.exec(nil, id, args...)
	x.requireStart(res)
	last := lastLine(res.Stdout)
	switch {
	case strings.HasPrefix(last, "BREACH"):
		x.note(strings.TrimPrefix(last, "BREACH "))
		return res, true
	case strings.HasPrefix(last, "BLOCKED"):
		x.note(strings.TrimPrefix(last, "BLOCKED "))
		return res, false
	}
	if !mayBeKilled(id, res) {
		x.t.Fatalf("%s ended without a result: %+v\nstdout: %.500s\nstderr: %.1000s", id, res, res.Stdout, res.Stderr)
	}
	x.note("ended: " + string(res.Reason) + " " + res.Signal + " " + res.Detail)
	return res, false
}

// mayBeKilled reports whether the sandbox stopped an attacker that printed no
// result. This can happen in resource attacks and after forbidden system calls.
// Otherwise the attacker crashed.
func mayBeKilled(id string, res *execute.Result) bool {
	if bytes.Contains(res.Stderr, []byte("panic: ")) {
		return false
	}
	return id[0] == 'E' || id[0] == 'M' || res.Reason == sandbox.Denied || res.Signal == "SIGSYS"
}

// requireStart fails the test if the payload did not start, because then the
// result proves nothing.
func (x *trial) requireStart(res *execute.Result) {
	x.t.Helper()
	if !bytes.HasPrefix(res.Stdout, []byte("ready\n")) {
		x.t.Fatalf("payload did not start: %+v\nstdout: %.500s\nstderr: %.500s", res, res.Stdout, res.Stderr)
	}
}

// note appends a detail to the result.
func (x *trial) note(s string) {
	s = strings.ReplaceAll(strings.TrimSpace(s), x.dir, "SCENE")
	if len(s) > 160 {
		s = s[:160] + "…"
	}
	if x.detail != "" {
		s = x.detail + "; " + s
	}
	x.detail = s
}

// outputHasSecret reports whether the output contains a secret of the scene.
func (x *trial) outputHasSecret(res *execute.Result, names ...string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return bytes.Contains(res.Stdout, []byte(x.secrets[n])) })
}

// collectFiles returns the files collected from the sandbox, keyed by path.
func (x *trial) collectFiles(d time.Duration) (map[string]string, error) {
	x.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	type answer struct {
		files map[string]string
		err   error
	}
	done := make(chan answer, 1)
	box := x.box
	go func() {
		files := map[string]string{}
		err := box.Collect(ctx, func(f sandbox.File, r io.Reader) error {
			b, err := io.ReadAll(io.LimitReader(r, 8<<20))
			files[f.Path] = string(b)
			return err
		})
		done <- answer{files, err}
	}()
	select {
	case a := <-done:
		return a.files, a.err
	case <-time.After(d + time.Second):
		return nil, errHung
	}
}

var errHung = errors.New("collection did not finish in time")

// close closes the sandbox. It fails the test if closing takes too long.
func (x *trial) close() {
	x.t.Helper()
	if x.box == nil {
		return
	}
	done := make(chan error, 1)
	box := x.box
	x.box = nil
	go func() { done <- box.Close() }()
	select {
	case err := <-done:
		if err != nil {
			x.t.Errorf("close: %v", err)
		}
	case <-time.After(time.Minute):
		x.t.Error("close timed out")
	}
}

// hasSurvivors closes the sandbox and reports whether any process of the attack
// is still running.
func (x *trial) hasSurvivors() bool {
	x.t.Helper()
	x.close()
	gone := poll(maxLifetime/5, func() bool { return len(processesWithMark(x.mark)) == 0 })
	if !gone {
		x.note("processes still running")
	}
	return !gone
}

// containedBy describes those of the named layers that the sandbox enforces.
func (x *trial) containedBy(names []string) string {
	var all []string
	for _, n := range names {
		if m := x.state.Enforced[n]; m != "" {
			all = append(all, n+": "+m)
		}
	}
	return strings.Join(all, ", ")
}
