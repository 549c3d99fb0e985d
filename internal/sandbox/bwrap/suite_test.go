//go:build linux

package bwrap

import (
	"context"
	"os"
	"testing"

	"github.com/loadout-dev/loadout/internal/sandbox/sandboxtest"
	"github.com/loadout-dev/loadout/internal/sandbox/stage/stagetest"
	"github.com/loadout-dev/loadout/sandbox"
)

// known lists attacks that bubblewrap does not reliably contain: the number of files is
// checked only periodically (E08), and without control groups the CPU share is not
// limited (E14).
var known = []string{"E08", "E14"}

func TestAttack(t *testing.T) {
	if sandboxtest.AsUser(t) {
		return
	}
	sandboxtest.TestAttacks(t, backend(t), sandboxtest.Options{MayBreach: known})
}

// As root, bubblewrap is started as another user, and control groups are there.
func TestAttackAsRoot(t *testing.T) {
	if sandboxtest.InTerminal(t) {
		return
	}
	sandboxtest.TestAttacks(t, backend(t), sandboxtest.Options{MayBreach: known})
}

// opened returns the backend for root, with files accessible to the sandbox user.
type opened struct {
	sandbox.Backend
	t *testing.T
}

func (o opened) Start(ctx context.Context, spec *sandbox.Spec) (sandbox.Sandbox, error) {
	for _, m := range spec.Mounts {
		stagetest.Open(o.t, m.Host)
		if m.Writable {
			os.Chmod(m.Host, 0o777) // the test reports modes that cannot be changed
		}
	}
	return o.Backend.Start(ctx, spec)
}

func TestBehaves(t *testing.T) { sandboxtest.TestBackend(t, opened{backend(t), t}) }

func TestBehavesAsUser(t *testing.T) {
	if sandboxtest.AsUser(t) {
		return
	}
	sandboxtest.TestBackend(t, backend(t))
}

func TestFlood(t *testing.T)   { sandboxtest.TestOutputFlood(t, backend(t)) }
func TestResidue(t *testing.T) { sandboxtest.TestResidue(t, backend(t), 50) }
func TestOrphans(t *testing.T) { sandboxtest.TestOrphans(t, backend(t)) }
