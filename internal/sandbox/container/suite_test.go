//go:build linux

package container

import (
	"testing"

	"github.com/loadout-dev/loadout/internal/sandbox/sandboxtest"
)

// With the engine of containertest, which limits little itself.
func TestBehaves(t *testing.T) {
	b, _ := backend(t)
	sandboxtest.TestBackend(t, b)
}
