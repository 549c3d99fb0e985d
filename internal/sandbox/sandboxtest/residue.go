//go:build linux

package sandboxtest

import (
	"context"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/sandbox/execute"
	"github.com/loadout-dev/loadout/sandbox"
)

// TestResidue runs n commands and ends them in every possible way, at random
// but reproducible times. It tests that no process, mount, control group,
// descriptor or file remains.
func TestResidue(t *testing.T, b sandbox.Backend, n int) {
	x := &trial{t: t, scene: newScene(t), backend: b, mark: "residue-" + randomWord()}
	defer sweep(x.mark)
	rnd := rand.New(rand.NewPCG(1, uint64(n)))
	x.runMany(n, rand.New(rand.NewPCG(2, 2)), 1) // the first run creates permanent caches
	before := findTraces(x.tmp, x.mark)
	start := time.Now()
	x.runMany(n, rnd, 0)
	t.Logf("%s: %d runs in %v", b.Name(), n, time.Since(start).Round(time.Millisecond))
	var after traces
	if !poll(maxLifetime/4, func() bool { after = findTraces(x.tmp, x.mark); return after.isSubsetOf(before) }) {
		t.Errorf("left behind:\nbefore %+v\nafter  %+v", before, after)
	}
}

// isSubsetOf reports whether all traces in tr are also in before.
func (tr traces) isSubsetOf(before traces) bool {
	for _, f := range tr.files {
		if !slices.Contains(before.files, f) {
			return false
		}
	}
	return tr.mounts <= before.mounts && tr.cgroups <= before.cgroups && tr.fds <= before.fds && len(tr.marked) == 0
}

// endings lists the ways to end a run.
var endings = []string{"itself", "kill", "close", "cancel", "start", "timeout"}

// runMany runs n commands, or only the first limit of them if limit is not 0.
func (x *trial) runMany(n int, rnd *rand.Rand, limit int) {
	x.t.Helper()
	for i := range n {
		if limit > 0 && i >= limit {
			return
		}
		way, after := endings[rnd.IntN(len(endings))], time.Duration(rnd.IntN(40))*time.Millisecond
		if !x.runAndEnd(way, after) {
			x.t.Errorf("run %d (%s after %v) did not end", i, way, after)
			return
		}
	}
}

// runAndEnd runs a command and ends it in the given way after the given time. It
// reports whether all calls returned.
func (x *trial) runAndEnd(way string, after time.Duration) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		x.runOnce(way, after)
	}()
	select {
	case <-done:
		return true
	case <-time.After(time.Minute):
		return false
	}
}

func (x *trial) runOnce(way string, after time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	spec := newSpec(x.t)
	cmd := payloadCmd("E12", x.mark) // leaves a process that holds its output open
	if way == "itself" {
		cmd = payloadCmd("both", x.mark, "out", "err")
	}
	if way == "timeout" {
		cmd = payloadCmd("sleep", x.mark)
		cmd.Timeout = after + time.Millisecond
	}
	switch way {
	case "start": // the context is cancelled while the sandbox starts
		time.AfterFunc(after/4, cancel)
		if box, err := x.backend.Start(ctx, spec); err == nil {
			box.Close()
		}
	case "cancel":
		time.AfterFunc(after, cancel)
		execute.Run(ctx, x.backend, spec, cmd, nil)
	case "itself", "timeout":
		if _, err := execute.Run(ctx, x.backend, spec, cmd, nil); err != nil {
			x.t.Errorf("%s: %v", way, err)
		}
	default:
		x.runInSandbox(ctx, way, after, spec, cmd)
	}
}

// runInSandbox runs a command in a new sandbox and ends it with Kill or, if way is
// "close", by closing the sandbox.
func (x *trial) runInSandbox(ctx context.Context, way string, after time.Duration, spec *sandbox.Spec, cmd *sandbox.Cmd) {
	box, err := x.backend.Start(ctx, spec)
	if err != nil {
		x.t.Errorf("start: %v", err)
		return
	}
	defer box.Close()
	p, err := box.Exec(ctx, cmd)
	if err != nil {
		x.t.Errorf("exec: %v", err)
		return
	}
	p.Stdin().Close()
	read := make(chan struct{}, 2)
	for _, r := range []io.Reader{p.Stdout(), p.Stderr()} {
		go func() { io.Copy(io.Discard, r); read <- struct{}{} }()
	}
	end := func() { p.Kill() }
	if way == "close" {
		end = func() { box.Close() }
	}
	ended := make(chan struct{})
	time.AfterFunc(after, func() { end(); close(ended) })
	p.Wait()
	<-ended
	box.Close()
	<-read
	<-read
}
