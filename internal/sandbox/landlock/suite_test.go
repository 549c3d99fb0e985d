//go:build linux

package landlock

import (
	"context"
	"os"
	"testing"

	"github.com/loadout-dev/loadout/internal/sandbox/sandboxtest"
	"github.com/loadout-dev/loadout/internal/sandbox/stage/stagetest"
	"github.com/loadout-dev/loadout/sandbox"
)

func TestAttack(t *testing.T) {
	if sandboxtest.AsUser(t) {
		return
	}
	sandboxtest.TestAttacks(t, backend(t), sandboxtest.Options{MayBreach: known})
}

// As root, code is another user, and control groups are there.
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
