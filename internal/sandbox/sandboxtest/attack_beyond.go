//go:build linux

package sandboxtest

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/loadout-dev/loadout/sandbox"
)

// beyond are attacks that are not of the 63, so that their number stays what
// others can compare with. They are shown, and fail where [Options.Beyond] says
// so.
func beyond() []attack {
	return []attack{
		{"A08+", "any inherited descriptor, as of a directory", nil, nil, told("A08+")},
		{"B04+", "a link in the place of /work/out", []string{"disk"}, nil, func(x *trial) bool {
			x.attack("B04+", filepath.Dir(x.key))
			return x.collects("key")
		}},
		{"B05+", "swap files and links while they are collected", []string{"disk"}, nil, swaps},
		{"D06+", "prlimit() on the process that watches", nil, nil, told("D06+")},
		{"E16+", "400 MB in ten memfds", []string{"memory"}, []need{needFeature("memfd")}, told("E16+")},
	}
}

// swaps collects again and again while the payload changes what there is.
func swaps(x *trial) bool {
	box := x.start()
	k := &check{scene: x.scene, ctx: x.t.Context(), b: x.backend, mark: x.mark, spec: x.spec, box: box}
	p, err := k.process("B05+", x.key)
	must(x.t, err)
	defer p.Kill()
	p.Stdin().Close()
	began, rounds := time.Now(), 0
	var failed error
	for ; time.Since(began) < 2*time.Second; rounds++ {
		files, err := x.collected(5 * time.Second)
		if err == errHung {
			x.note("collecting hung")
			return true
		}
		if x.has(files, "key") {
			return true
		}
		if err != nil && failed == nil {
			failed = fmt.Errorf("time %d: %w", rounds+1, err) // a file that is gone by now may be one
		}
	}
	x.state = box.State()
	x.note(fmt.Sprintf("%d times, first error: %v", rounds, failed))
	if exit := ended(p); exit != nil && exit.Reason != sandbox.OK {
		x.t.Errorf("the payload was ended by collecting, %s: %+v", x.detail, *exit)
	}
	return false
}

// ended returns how a command ended, nil if it runs.
func ended(p sandbox.Process) *sandbox.Exit {
	done := make(chan sandbox.Exit, 1)
	go func() { done <- p.Wait() }()
	select {
	case e := <-done:
		return &e
	case <-time.After(10 * time.Millisecond):
		return nil
	}
}
