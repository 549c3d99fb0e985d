//go:build linux

package sandboxtest

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/loadout-dev/loadout/sandbox"
)

// extraAttacks returns the additional attacks. They are not included in
// AttackCount, so that results of different versions remain comparable. They
// fail the test only if [Options.RequireExtra] is set.
func extraAttacks() []attack {
	return []attack{
		{"A08+", "any inherited descriptor, such as a directory", nil, nil, reportsBreach("A08+")},
		{"B04+", "a symlink in place of /work/out", []string{"disk"}, nil, func(x *trial) bool {
			x.attack("B04+", filepath.Dir(x.key))
			return x.collectsSecret("key")
		}},
		{"B05+", "swap files and symlinks during collection", []string{"disk"}, nil, swapsFiles},
		{"D06+", "prlimit() on the watching process", nil, nil, reportsBreach("D06+")},
		{"D11+", "personality, semget", []string{"syscalls"}, nil, reportsBreach("D11+")},
		{"E16+", "400 MB in ten memfds", []string{"memory"}, []need{needFeature("memfd")}, reportsBreach("E16+")},
	}
}

// swapsFiles collects files while the payload swaps files and symlinks. It
// reports whether a secret was collected or the collection did not finish.
func swapsFiles(x *trial) bool {
	box := x.start()
	k := &check{scene: x.scene, ctx: x.t.Context(), b: x.backend, mark: x.mark, spec: x.spec, box: box}
	p, err := k.startProcess("B05+", x.key)
	requireNoError(x.t, err)
	defer p.Kill()
	p.Stdin().Close()
	start, rounds := time.Now(), 0
	var failed error
	for ; time.Since(start) < 2*time.Second; rounds++ {
		files, err := x.collectFiles(20 * time.Second)
		if err == errHung {
			x.note("collection did not finish in time")
			return true
		}
		if x.containsSecret(files, "key") {
			return true
		}
		if err != nil && failed == nil {
			failed = fmt.Errorf("collection %d: %w", rounds+1, err) // the file may have been removed in between
		}
	}
	x.state = box.State()
	x.note(fmt.Sprintf("%d collections, first error: %v", rounds, failed))
	if exit := pollExit(p); exit != nil && exit.Reason != sandbox.OK {
		x.t.Errorf("collecting ended the payload, %s: %+v", x.detail, *exit)
	}
	return false
}

// pollExit returns the exit status of a command, or nil if the command is still
// running.
func pollExit(p sandbox.Process) *sandbox.Exit {
	done := make(chan sandbox.Exit, 1)
	go func() { done <- p.Wait() }()
	select {
	case e := <-done:
		return &e
	case <-time.After(10 * time.Millisecond):
		return nil
	}
}
