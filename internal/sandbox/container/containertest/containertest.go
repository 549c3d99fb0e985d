// Package containertest provides a fake container engine for tests. It has the
// command line of docker and creates containers with bubblewrap and nsenter.
package containertest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Engine is a fake container engine. Path is the program to use in the
// backend's options. Dir holds its state.
type Engine struct{ Path, Dir string }

// New builds the engine. It skips the test if the engine cannot work on this
// system. faults are the features to implement incorrectly: limits, network,
// seccomp, privileges.
func New(t *testing.T, faults ...string) *Engine {
	t.Helper()
	for _, p := range []string{"bwrap", "nsenter"} {
		if _, err := exec.LookPath(p); err != nil {
			t.Skip(p + " is not installed")
		}
	}
	dir := t.TempDir()
	e := &Engine{Path: filepath.Join(dir, "docker"), Dir: filepath.Join(dir, "state")}
	cmd := exec.Command("go", "build", "-buildvcs=false", "-ldflags=-X main.state="+e.Dir+" -X main.faults="+strings.Join(faults, ","), "-o", e.Path, "github.com/loadout-dev/loadout/internal/sandbox/container/containertest/engine")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the engine: %v\n%s", err, out)
	}
	if err := os.Mkdir(e.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return e
}

// Calls returns the arguments of all calls so far. A non-empty command selects
// the calls of that engine command.
func (e *Engine) Calls(t *testing.T, command string) [][]string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(e.Dir, "calls"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	var out [][]string
	for line := range strings.Lines(string(b)) {
		call := strings.Split(strings.TrimSuffix(line, "\n"), "\x00")
		if command == "" || call[0] == command {
			out = append(out, call)
		}
	}
	return out
}

// Containers returns the names of all existing containers.
func (e *Engine) Containers(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(e.Dir, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range found {
		found[i] = strings.TrimSuffix(filepath.Base(f), ".json")
	}
	return found
}
