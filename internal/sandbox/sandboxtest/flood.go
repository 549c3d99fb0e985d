//go:build linux

package sandboxtest

import (
	"runtime/debug"
	"testing"

	"github.com/loadout-dev/loadout/sandbox"
)

// maxGrowth is the maximum memory growth of the host process, in bytes, for 300
// MB of output.
const maxGrowth = 5 << 20

// TestOutputFlood tests that excessive output does not exhaust the host. A
// command that writes 300 MB must be killed, and the stored output must be
// limited. The memory of the test process must grow by less than 5 MB.
func TestOutputFlood(t *testing.T, b sandbox.Backend) {
	x := &trial{t: t, scene: newScene(t), backend: b, mark: "flood-" + randomWord()}
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
