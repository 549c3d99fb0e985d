//go:build linux

package process

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/sandbox/execute"
	"github.com/loadout-dev/loadout/internal/sandbox/sandboxtest"
	"github.com/loadout-dev/loadout/internal/sandbox/stage/stagetest"
	"github.com/loadout-dev/loadout/sandbox"
)

var stageFile string

func TestMain(m *testing.M) { stagetest.Main(m, &stageFile) }

// host is the backend for specs that ask for no network, which it has not.
type host struct{ *Backend }

func (h host) Start(ctx context.Context, spec *sandbox.Spec) (sandbox.Sandbox, error) {
	s := *spec
	s.Network = sandbox.Network{Host: true}
	return h.Backend.Start(ctx, &s)
}

func backend(t *testing.T) host {
	return host{New(&Options{Allow: func(d string) bool { return d == digest || d == sandboxtest.Digest }, Stage: stageFile, Cache: stagetest.OpenDir(t)})}
}

func TestRun(t *testing.T) {
	t.Setenv("LOADOUT_TEST_SECRET", "x")
	res, err := execute.Run(t.Context(), backend(t), &sandbox.Spec{Digest: digest}, &sandbox.Cmd{Args: []string{"sh", "-c", "id -u; env; ulimit -n; grep NoNewPrivs /proc/self/status"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	out := string(res.Stdout)
	if strings.HasPrefix(out, "0\n") || strings.Contains(out, "LOADOUT_TEST_SECRET") || !strings.Contains(out, "\n256\n") || !strings.Contains(out, "NoNewPrivs:\t1") {
		t.Errorf("%s %s", out, res.Stderr)
	}
	if res.Enforced["filesystem"] != "" || res.Enforced["network"] != "" || res.Enforced["wall"] == "" {
		t.Errorf("%v", res.Enforced)
	}
}

func TestProbe(t *testing.T) {
	b := backend(t)
	b.opts.Allow = nil // a probe runs no foreign code
	r, err := b.Probe(t.Context())
	if err != nil || r.Tier != sandbox.Limited || len(r.Missing()) < 3 {
		t.Errorf("%+v, %v", r, err)
	}
}

// known are the attacks that are not contained: nothing isolates.
const known = "A02 A03 A05 A06 A07 A08 A10 B01 B02 B03 B05 C01 C02 C03 C04 C05 C06 C07 C08 C09 C11 D01 D02 D03 D04 D05 D06 D09 D11 D15 D16 D17 E08 E14"

// TestAttack prints what an attacker reaches without isolation: as the user of this
// program, all files of the user.
func TestAttack(t *testing.T) {
	if os.Getenv("LOADOUT_TEST_PROCESS") == "" {
		t.Skip("set LOADOUT_TEST_PROCESS to see how many attacks are not contained without a sandbox")
	}
	if sandboxtest.AsUser(t) {
		return
	}
	sandboxtest.TestAttacks(t, backend(t), sandboxtest.Options{MayBreach: strings.Fields(known)})
}

// TestBehaves has one failure that is as it must be: the network of the host is
// there.
func TestBehaves(t *testing.T) {
	if os.Getenv("LOADOUT_TEST_PROCESS") == "" {
		t.Skip("set LOADOUT_TEST_PROCESS to see what holds of the contract without isolation")
	}
	sandboxtest.TestBackend(t, backend(t))
}

func TestFlood(t *testing.T)   { sandboxtest.TestOutputFlood(t, backend(t)) }
func TestResidue(t *testing.T) { sandboxtest.TestResidue(t, backend(t), 50) }
func TestOrphans(t *testing.T) { sandboxtest.TestOrphans(t, backend(t)) }
