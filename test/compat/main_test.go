//go:build linux

// Package compat checks that everyday programs run in the sandbox of the native backend
// as they do outside: 30 programs (see testdata/programs) and every script of the
// bundled skills, as root and as an ordinary user.
package compat

import (
	"context"
	"sync"
	"testing"

	"github.com/loadout-dev/loadout/internal/sandbox/native"
	"github.com/loadout-dev/loadout/internal/sandbox/stage/stagetest"
	"github.com/loadout-dev/loadout/sandbox"
)

var stage string

func TestMain(m *testing.M) { stagetest.Main(m, &stage) }

// usable is why the native backend cannot be used here, or nothing.
var usable = sync.OnceValue(func() error {
	_, err := native.New(&native.Options{Stage: stage}).Probe(context.Background())
	return err
})

func backend(t *testing.T) sandbox.Backend {
	t.Helper()
	if err := usable(); err != nil {
		t.Skip(err)
	}
	return native.New(&native.Options{Stage: stage})
}
