package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/loadout-dev/loadout/internal/testprogram"
)

// builtIn is the directory of plainCommand; TestMain removes it.
var builtIn string

// plainCommand returns the path of the command, built without the race detector. Sandboxes
// need it: their first process is the command itself, and the race detector needs more
// address space than a sandbox grants. Other tests use the test binary as the command.
var plainCommand = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "loadout-plain-")
	if err != nil {
		return "", err
	}
	builtIn = dir
	if err := os.Chmod(dir, 0o755); err != nil { // for backends that start it as another user
		return "", err
	}
	exe := filepath.Join(dir, "loadout")
	if runtime.GOOS == "windows" {
		exe += ".exe"
	}
	return exe, testprogram.Loadout.Install(exe)
})

// hasSandbox returns nil if a sandbox is available, else the reason.
var hasSandbox = sync.OnceValue(func() error {
	exe, err := plainCommand()
	if err != nil {
		return err
	}
	if out, err := exec.Command(exe, "sandbox", "run", "--", "true").CombinedOutput(); err != nil {
		return fmt.Errorf("no sandbox can be had here: %w\n%s", err, out)
	}
	return nil
})

// needsSandbox skips a test if there is no sandbox, and returns the command.
func needsSandbox(t *testing.T) string {
	t.Helper()
	if err := hasSandbox(); err != nil {
		t.Skip(err)
	}
	exe, err := plainCommand()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

// cmdPlain makes loadout the plain command for the rest of a script, which
// begins with
//
//	[!sandbox] skip 'no sandbox can be had here'
//	plain
func cmdPlain(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: plain")
	}
	exe, err := plainCommand()
	ts.Check(err)
	ts.Setenv("PATH", filepath.Dir(exe)+string(os.PathListSeparator)+ts.Getenv("PATH"))
}
