//go:build unix

// Package hub_test runs nodes of a hub as processes of the command, on real databases,
// with a model and a tool server on loopback addresses. Nodes are killed, stopped, and
// lose their dependencies during conversations.
package hub_test

import (
	"fmt"
	"os"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/loadout-dev/loadout/internal/store/storetest"
	"github.com/loadout-dev/loadout/internal/testprogram"
)

func TestMain(m *testing.M) {
	// The race detector makes every process of a command wait for a second.
	os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	code := storetest.Main(m)
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// command returns the path of the command, with the race detector if the tests have it.
var command = sync.OnceValues(testprogram.Program{Package: testprogram.Loadout.Package, Race: raced}.Build)

// must returns a result, or ends the test.
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
