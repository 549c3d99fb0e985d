package bwrap

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/loadout-dev/loadout/internal/sandbox/stage/stagetest"
)

// The stage is the program that runs, even after an upgrade replaced its file.
func TestStageOfReplacedProgram(t *testing.T) {
	const variable = "LOADOUT_TEST_REPLACED"
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	cache := os.Getenv(variable)
	if cache == "" { // run a copy of this test, which can be replaced
		program := filepath.Join(stagetest.OpenDir(t), "program")
		if err := os.WriteFile(program, self, 0o755); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(program, "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), variable+"="+stagetest.OpenDir(t))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return
	}
	b := New(&Options{})
	check := func() string {
		t.Helper()
		var held bundles
		defer held.close()
		path, err := b.stageExecutable(cache, &held)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, self) {
			t.Errorf("%s has %d bytes, want the %d of this program: %v", path, len(got), len(self), err)
		}
		return path
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if path := check(); !b.isRoot() && path != program {
		t.Errorf("stage %s, want %s itself", path, program)
	}
	if err := os.WriteFile(program+".new", []byte("another version"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(program+".new", program); err != nil {
		t.Fatal(err)
	}
	check()
	if err := os.Remove(program); err != nil {
		t.Fatal(err)
	}
	check()
}
