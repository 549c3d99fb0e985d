//go:build linux

package sandboxtest

import (
	"runtime/debug"
	"testing"

	"github.com/loadout-dev/loadout/sandbox"
)

// maxGrowth is how much more memory a host may have after a flood of 300 MB.
const maxGrowth = 5 << 20

// TestOutputFlood checks that output which nobody asked for costs the host little: with
// 300 MB of it a command is ended, what is kept is bounded, and the test's own
// memory grows by less than 5 MB.
func TestOutputFlood(t *testing.T, b sandbox.Backend) {
	x := &trial{t: t, scene: newScene(t), backend: b, mark: "flood-" + word()}
	defer func() { x.close(); sweep(x.mark) }()
	x.exec(nil, "both", "warm", "up")
	debug.FreeOSMemory()
	before := rss()
	res := x.exec(nil, "fill", "314572800")
	grown := rss() - before
	t.Logf("%s: kept %d bytes of stdout, grew by %d KiB", b.Name(), len(res.Stdout), grown>>10)
	if grown > maxGrowth {
		t.Errorf("the host grew by %d KiB, want less than %d", grown>>10, maxGrowth>>10)
	}
	if int64(len(res.Stdout)) != PolicyLimits().Output || !res.Truncated {
		t.Errorf("kept %d bytes, truncated %v, want %d, true", len(res.Stdout), res.Truncated, PolicyLimits().Output)
	}
	if res.Reason != sandbox.Output || !res.Killed {
		t.Errorf("reason %q, killed %v, want %q, true", res.Reason, res.Killed, sandbox.Output)
	}
}
