//go:build linux

package landlock

import (
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/sandbox/sandboxtest"
	"github.com/loadout-dev/loadout/sandbox"
)

func probes(t *testing.T) {
	b := backend(t)
	r, err := b.Probe(t.Context())
	if err != nil || r.Tier != b.Tier() {
		t.Fatalf("%+v, %v", r, err)
	}
	start := time.Now()
	const n = 20
	for range n {
		if res := run(t, b, &sandbox.Spec{}, "/bin/true"); res.Reason != sandbox.OK {
			t.Fatalf("%+v", res)
		}
	}
	t.Logf("missing %q; /bin/true takes %v", r.Missing(), time.Since(start)/n)
}

func TestProbe(t *testing.T) { probes(t) }

func TestProbeAsUser(t *testing.T) {
	if sandboxtest.AsUser(t) {
		return
	}
	probes(t)
}
