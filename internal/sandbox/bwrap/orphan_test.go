//go:build linux

package bwrap

import (
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/sandbox/execute"
	"github.com/loadout-dev/loadout/internal/sandbox/mountpoint"
	"github.com/loadout-dev/loadout/internal/sandbox/stage/stagetest"
	"github.com/loadout-dev/loadout/sandbox"
)

// Variables for a host that is to be killed: the directory that its sandbox has,
// and its cache and program.
const (
	killedVariable = "LOADOUT_TEST_KILLED"
	cacheVariable  = "LOADOUT_TEST_KILLED_CACHE"
	bwrapVariable  = "LOADOUT_TEST_KILLED_BWRAP"
)

// killed runs the calling test again up to this call, where it starts a sandbox with
// program bwrap. It kills that process after the time and lists what is left. A time of
// 0 waits for bubblewrap to start.
func killed(t *testing.T, bwrap, cache string, after time.Duration) []string {
	t.Helper()
	dir := stagetest.OpenDir(t)
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+regexp.QuoteMeta(t.Name())+"$")
	cmd.Env = append(os.Environ(), killedVariable+"="+dir, cacheVariable+"="+cache, bwrapVariable+"="+bwrap)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for start := time.Now(); len(with(dir)) == 0 && time.Since(start) < 30*time.Second; {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(after)
	cmd.Process.Kill()
	cmd.Wait()
	for start := time.Now(); len(with(dir)) > 0 && time.Since(start) < 20*time.Second; {
		time.Sleep(2 * time.Millisecond)
	}
	return with(dir)
}

// victim is the process to kill.
func victim(dir string) {
	b := New(&Options{Stage: stageFile, Program: os.Getenv(bwrapVariable), Cache: os.Getenv(cacheVariable)})
	spec := &sandbox.Spec{Mounts: []sandbox.Mount{{Host: dir, Path: mountpoint.Workspace}}}
	execute.Run(context.Background(), b, spec, &sandbox.Cmd{Args: []string{"/bin/sleep", "20"}}, nil)
}

// with lists the processes that have a directory among their arguments or mounts.
func with(dir string) (found []string) {
	procs, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range procs {
		args, _ := os.ReadFile(p + "/cmdline")
		mounts, _ := os.ReadFile(p + "/mountinfo")
		if strings.Contains(string(args), dir) || strings.Contains(string(mounts), filepath.Base(dir)+" ") {
			found = append(found, filepath.Base(p)+" "+string(args[:min(len(args), 40)]))
		}
	}
	return found
}

// No process survives if the host is killed while bubblewrap prepares, however long that
// takes.
func TestKilledWhilePreparing(t *testing.T) {
	if dir := os.Getenv(killedVariable); dir != "" {
		victim(dir)
		return
	}
	backend(t)
	slow := filepath.Join(stagetest.OpenDir(t), "bwrap")
	script := "#!/bin/sh\n[ \"$1\" = --version ] && exec bwrap \"$@\"\nPATH=/usr/local/bin:/usr/bin:/bin; sleep 0.4; exec bwrap \"$@\"\n"
	if err := os.WriteFile(slow, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	if left := killed(t, slow, stagetest.OpenDir(t), 100*time.Millisecond); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	cache := stagetest.OpenDir(t)
	for range 30 {
		if left := killed(t, "bwrap", cache, rand.N(12*time.Millisecond)); len(left) > 0 {
			t.Errorf("left: %q", left)
		}
	}
}

// A child that bubblewrap leaves behind ends with the sandbox.
func TestChildEnds(t *testing.T) {
	b := backend(t)
	dir := stagetest.OpenDir(t)
	s, err := b.Start(t.Context(), &sandbox.Spec{Mounts: []sandbox.Mount{{Host: dir, Path: mountpoint.Workspace}}})
	if err != nil {
		t.Fatal(err)
	}
	if len(with(dir)) == 0 {
		t.Fatal("nothing has the directory")
	}
	inner := s.(*instance).Sandbox
	children, _ := filepath.Glob("/proc/self/task/*/children")
	for _, f := range children { // bubblewrap is one of ours
		list, _ := os.ReadFile(f)
		for pid := range strings.FieldsSeq(string(list)) {
			if args, _ := os.ReadFile("/proc/" + pid + "/cmdline"); strings.Contains(string(args), dir) {
				n := 0
				for _, c := range pid {
					n = n*10 + int(c-'0')
				}
				syscall.Kill(n, syscall.SIGKILL)
			}
		}
	}
	select {
	case <-inner.Ended():
	case <-time.After(20 * time.Second):
		t.Fatal("bubblewrap lives on")
	}
	s.Close()
	for start := time.Now(); len(with(dir)) > 0; time.Sleep(time.Millisecond) {
		if time.Since(start) > 20*time.Second {
			t.Fatalf("left: %q", with(dir))
		}
	}
}
