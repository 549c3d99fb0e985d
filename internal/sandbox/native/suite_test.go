//go:build linux

package native_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/sandbox/native"
	"github.com/loadout-dev/loadout/internal/sandbox/sandboxtest"
	"github.com/loadout-dev/loadout/internal/sandbox/stage/stagetest"
	"github.com/loadout-dev/loadout/sandbox"
)

var stagePath string

func TestMain(m *testing.M) { stagetest.Main(m, &stagePath) }

// backend is the backend, or the reason that it cannot be tried.
func backend(t *testing.T) *native.Backend {
	t.Helper()
	b := native.New(&native.Options{Stage: stagePath})
	if _, err := b.Probe(t.Context()); err != nil {
		t.Skip(err)
	}
	return b
}

// Nothing but a control group shares the processors (E14).
func TestAttack(t *testing.T) {
	if sandboxtest.AsUser(t) {
		return
	}
	sandboxtest.TestAttacks(t, backend(t), sandboxtest.Options{MayBreach: []string{"E14"}, RequireExtra: true})
}

func TestAttackAsRoot(t *testing.T) {
	if sandboxtest.InTerminal(t) {
		return
	}
	sandboxtest.TestAttacks(t, backend(t), sandboxtest.Options{MayBreach: []string{"E14"}, RequireExtra: true})
}

func TestBehaves(t *testing.T) { sandboxtest.TestBackend(t, backend(t)) }

func TestBehavesAsUser(t *testing.T) {
	if sandboxtest.AsUser(t) {
		return
	}
	sandboxtest.TestBackend(t, backend(t))
}

func TestFlood(t *testing.T)   { sandboxtest.TestOutputFlood(t, backend(t)) }
func TestResidue(t *testing.T) { sandboxtest.TestResidue(t, backend(t), 100) }
func TestOrphans(t *testing.T) { sandboxtest.TestOrphans(t, backend(t)) }

// If a layer is missing, there is no sandbox, and the error names the layer.
func TestFailsClosed(t *testing.T) {
	for _, feature := range []string{sandboxtest.UserNamespaces, sandboxtest.Seccomp, sandboxtest.Landlock} {
		t.Run(strings.ReplaceAll(feature, " ", "_"), func(t *testing.T) {
			if !sandboxtest.RunWithout(t, feature) {
				return
			}
			b := native.New(&native.Options{Stage: stagePath})
			_, err := b.Probe(t.Context())
			check := func(what string, err error) {
				e, ok := errors.AsType[*sandbox.UnavailableError](err)
				if !ok {
					t.Fatalf("%s without %s: %v, want an UnavailableError", what, feature, err)
				}
				if !strings.Contains(e.Error(), feature) || e.Fix == "" {
					t.Errorf("%s without %s returned %q, and the fix %q", what, feature, e, e.Fix)
				}
			}
			check("Probe", err)
			s, err := b.Start(t.Context(), &sandbox.Spec{})
			if err == nil {
				s.Close()
			}
			check("Start", err)
		})
	}
}
