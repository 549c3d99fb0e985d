//go:build unix

// Package hub_test runs nodes of a hub as people run them: processes of the command, on
// real databases, with a model and a tool server on loopback addresses. Nodes are killed,
// told to end, and lose what they depend on, in the middle of conversations.
package hub_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/loadout-dev/loadout/internal/store/storetest"
)

func TestMain(m *testing.M) {
	// The race detector makes every process of a command wait for a second.
	os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	code := storetest.Main(m)
	if built != "" {
		os.RemoveAll(built)
	}
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// built is the directory of the command, once it is built.
var built string

// command is the command, built once, with the race detector where the tests have it.
var command = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "loadout-test-hub-")
	if err != nil {
		return "", err
	}
	built = dir
	exe := filepath.Join(dir, "loadout")
	args := []string{"build", "-buildvcs=false", "-ldflags=-s -w", "-o", exe} // without what only debuggers need
	if raced {
		args = append(args, "-race")
	}
	if out, err := exec.Command("go", append(args, "../../cmd/loadout")...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return exe, nil
})

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
