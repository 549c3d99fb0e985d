package native_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/loadout-dev/loadout/internal/sandbox/cgroup"
	"github.com/loadout-dev/loadout/internal/sandbox/execute"
	"github.com/loadout-dev/loadout/internal/sandbox/launcher"
	"github.com/loadout-dev/loadout/internal/sandbox/native"
	"github.com/loadout-dev/loadout/internal/sandbox/prepare"
	"github.com/loadout-dev/loadout/internal/sandbox/sandboxtest"
	"github.com/loadout-dev/loadout/sandbox"
)

// sparing returns a backend that keeps spares, and has one.
func sparing(t *testing.T) *native.Backend {
	t.Helper()
	backend(t)
	b := native.New(&native.Options{Stage: stagePath, Spare: true})
	t.Cleanup(b.Close)
	startSpare(t, b)
	return b
}

// startSpare makes the backend start a spare if it has none. It returns its PID.
func startSpare(t *testing.T, b *native.Backend) int {
	t.Helper()
	pid := b.SparePID()
	if pid == 0 {
		box := startBox(t, b, &sandbox.Spec{})
		if err := box.Close(); err != nil {
			t.Fatal(err)
		}
		pid = b.SparePID()
	}
	if pid == 0 || !isRunning(pid) {
		t.Fatalf("no spare is running: %d", pid)
	}
	return pid
}

func startBox(t *testing.T, b sandbox.Backend, spec *sandbox.Spec) sandbox.Sandbox {
	t.Helper()
	box, err := b.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { box.Close() })
	return box
}

// isRunning reports whether a process exists and is no zombie.
func isRunning(pid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	_, rest, _ := strings.Cut(string(b), ") ")
	return err == nil && !strings.HasPrefix(rest, "Z")
}

func waitUntil(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); {
		if time.Now().After(deadline) {
			t.Fatal("waited a minute until " + what)
		}
		time.Sleep(time.Millisecond)
	}
}

// A spare is used for one sandbox, which has what its own spec says. Its /work
// contains only in and out.
func TestSpareIsUsedOnce(t *testing.T) {
	b := sparing(t)
	seen := map[int]bool{}
	for i := range 3 {
		pid := startSpare(t, b)
		if seen[pid] {
			t.Fatalf("the spare %d was used twice", pid)
		}
		seen[pid] = true
		spec := &sandbox.Spec{Env: map[string]string{"ROUND": fmt.Sprint(i)}, Limits: sandbox.Limits{OpenFiles: 100 + i}}
		box := startBox(t, b, spec)
		if got := native.StagePID(box); got != pid {
			t.Errorf("the sandbox has the first process %d, not the spare %d", got, pid)
		}
		other := startBox(t, b, &sandbox.Spec{})
		if got := native.StagePID(other); got == pid {
			t.Error("two sandboxes have the same first process")
		}
		res, err := execute.RunIn(t.Context(), box, spec, &sandbox.Cmd{Args: []string{"/bin/sh", "-c", "echo $ROUND $(ulimit -n) $(ls -A /work | wc -l); touch mark"}}, nil)
		if want := fmt.Sprintf("%d %d 2\n", i, 100+i); err != nil || string(res.Stdout) != want {
			t.Errorf("%+v, %v, want %q", res, err, want)
		}
		box.Close()
		other.Close()
		if isRunning(pid) {
			t.Error("the first process runs after Close")
		}
	}
}

// groupValue returns the value of the first of the named files that exists in a
// control group of a process, or "" if none does.
func groupValue(t *testing.T, pid int, names ...string) string {
	t.Helper()
	for _, dir := range cgroup.Parents("/proc/self/mountinfo", fmt.Sprintf("/proc/%d/cgroup", pid)) {
		for _, name := range names {
			if b, err := os.ReadFile(filepath.Join(dir, name)); err == nil && strings.Contains(dir, "loadout-") {
				return strings.TrimSpace(string(b))
			}
		}
	}
	return ""
}

// wantGroupLimits checks the limits in the control groups of a sandbox.
func wantGroupLimits(t *testing.T, box sandbox.Sandbox, l sandbox.Limits) {
	t.Helper()
	e, pid := box.State().Enforced, native.StagePID(box)
	files := l.Work + l.Tmp + l.Shm
	if got, want := groupValue(t, pid, "memory.max", "memory.limit_in_bytes"), strconv.FormatInt(l.Memory+files, 10); strings.Contains(e["memory"], "control group") && got != want {
		t.Errorf("the memory limit is %q, want %s", got, want)
	}
	if got, want := groupValue(t, pid, "pids.max"), strconv.Itoa(l.Processes+launcher.SpareThreads); strings.Contains(e["processes"], "control group") && got != want {
		t.Errorf("the process limit is %q, want %s", got, want)
	}
	quota := strconv.Itoa(int(l.Cores * 100000))
	if got := groupValue(t, pid, "cpu.max", "cpu.cfs_quota_us"); strings.Contains(e["cores"], "control group") && got != quota && got != quota+" 100000" {
		t.Errorf("the CPU limit is %q, want %s", got, quota)
	}
}

// The group of a spare gets the limits of the sandbox, and a spare that was
// started when no group could be created gets a group.
func TestSpareIsLimited(t *testing.T) {
	b := sparing(t)
	hasGroup := func(box sandbox.Sandbox) bool {
		e := box.State().Enforced
		return strings.Contains(e["memory"]+e["processes"]+e["cores"], "control group")
	}
	if !hasGroup(startBox(t, backend(t), &sandbox.Spec{})) {
		t.Skip("no control groups")
	}
	for i, alone := range []bool{false, true} {
		b.EndSpare() // waits for a launch, which reads the option
		b.SetNoGroups(alone)
		pid := startSpare(t, b)
		b.SetNoGroups(false)
		limits := prepare.DefaultLimits()
		limits.Memory, limits.Processes, limits.Cores = int64(64+i)<<20, 10+i, 0.5+float64(i)/4
		box := startBox(t, b, &sandbox.Spec{Limits: limits})
		if native.StagePID(box) != pid {
			t.Error("the sandbox did not use the spare")
		}
		if !hasGroup(box) {
			t.Errorf("spare without a group %t: the sandbox has no group", alone)
		}
		wantGroupLimits(t, box, limits)
		box.Close()
	}
}

func TestNoSpareUnlessRequested(t *testing.T) {
	b := backend(t)
	startBox(t, b, &sandbox.Spec{}).Close()
	if pid := b.SparePID(); pid != 0 {
		t.Errorf("there is a spare: %d", pid)
	}
	if native.DefaultSpareIdle != time.Minute {
		t.Errorf("a spare waits for %v", native.DefaultSpareIdle)
	}
}

// A spare has its own network, so a sandbox with the network of the host does not
// use it.
func TestSpareHasOwnNetwork(t *testing.T) {
	b := sparing(t)
	pid := startSpare(t, b)
	box := startBox(t, b, &sandbox.Spec{Network: sandbox.Network{Host: true}})
	if native.StagePID(box) == pid || b.SparePID() != pid {
		t.Error("the spare was used")
	}
}

func TestSpareEnds(t *testing.T) {
	t.Run("when idle", func(t *testing.T) {
		b := sparing(t)
		box := startBox(t, b, &sandbox.Spec{}) // uses the spare with the default
		b.SetSpareIdle(100 * time.Millisecond)
		box.Close()
		pid := b.SparePID()
		waitUntil(t, "the spare ends", func() bool { return b.SparePID() == 0 && !isRunning(pid) })
		startBox(t, b, &sandbox.Spec{})
	})
	t.Run("on Close", func(t *testing.T) {
		b := sparing(t)
		pid := startSpare(t, b)
		b.Close()
		if isRunning(pid) {
			t.Error("the spare runs after Close")
		}
		startBox(t, b, &sandbox.Spec{}).Close()
		if pid := b.SparePID(); pid != 0 {
			t.Error("there is a new spare after Close")
		}
		b.Close()
	})
	for _, start := range []bool{true, false} {
		t.Run(fmt.Sprint("when mounts change, start ", start), func(t *testing.T) {
			b := sparing(t)
			b.EndSpare()
			list := filepath.Join(t.TempDir(), "mountinfo")
			if err := syscall.Mkfifo(list, 0o600); err != nil {
				t.Fatal(err)
			}
			f, err := os.OpenFile(list, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			b.SetMountInfo(list)
			pid := startSpare(t, b)
			f.Close() // readers see an event, as of the kernel's list
			if start && native.StagePID(startBox(t, b, &sandbox.Spec{})) == pid {
				t.Error("a spare with old mounts was used")
			}
			waitUntil(t, "the spare ends", func() bool { return !isRunning(pid) })
		})
	}
	t.Run("when it is killed", func(t *testing.T) {
		b := sparing(t)
		pid := startSpare(t, b)
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		startBox(t, b, &sandbox.Spec{}) // whether or not it has been noticed
	})
	t.Run("with a spec that cannot start", func(t *testing.T) {
		b := sparing(t)
		pid := startSpare(t, b)
		_, err := b.Start(t.Context(), &sandbox.Spec{Mounts: []sandbox.Mount{{Host: filepath.Join(t.TempDir(), "none"), Path: "/workspace"}}})
		if _, ok := errors.AsType[*sandbox.UnavailableError](err); !ok {
			t.Errorf("started with %v", err)
		}
		if isRunning(pid) {
			t.Error("the spare runs after it was used")
		}
	})
}

// Neither goroutines nor processes are left after Close, whatever happens at
// the same time.
func TestSparesConcurrently(t *testing.T) {
	backend(t)
	before := goleak.IgnoreCurrent()
	b := native.New(&native.Options{Stage: stagePath, Spare: true})
	b.SetSpareIdle(5 * time.Millisecond)
	var mu sync.Mutex
	pids := map[int]int{}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 8 {
				box, err := b.Start(context.Background(), &sandbox.Spec{})
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				pids[native.StagePID(box)]++
				mu.Unlock()
				box.Close()
			}
		})
	}
	all.Wait()
	b.Close()
	for pid, n := range pids {
		if isRunning(pid) {
			t.Errorf("%d runs after Close, used %d times", pid, n)
		}
	}
	goleak.VerifyNone(t, before)
}

const spareVariable = "LOADOUT_TEST_SPARE"

// A spare ends when this program ends, even if it is killed.
func TestSpareOfKilledProgram(t *testing.T) {
	if os.Getenv(spareVariable) != "" {
		fmt.Printf("\nSPARE %d\n", startSpare(t, sparing(t)))
		time.Sleep(time.Minute) // until it is killed
		return
	}
	backend(t)
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+regexp.QuoteMeta(t.Name())+"$")
	cmd.Env = append(os.Environ(), spareVariable+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := 0
	for in := bufio.NewScanner(out); pid == 0 && in.Scan(); {
		fmt.Sscanf(in.Text(), "SPARE %d", &pid)
	}
	if pid == 0 || !isRunning(pid) {
		t.Fatalf("no spare is running: %d", pid)
	}
	cmd.Process.Kill()
	io.Copy(io.Discard, out)
	cmd.Wait()
	waitUntil(t, "the spare ends", func() bool { return !isRunning(pid) })
}

const mountVariable = "LOADOUT_TEST_MOUNT"

// A spare ends when a file system of the host is replaced by another one at the
// same place, even if the list of mounts is the same.
func TestSpareOfReplacedMount(t *testing.T) {
	if dir := os.Getenv(mountVariable); dir != "" {
		mount := func() {
			if err := syscall.Mount("none", dir, "tmpfs", 0, ""); err != nil {
				t.Fatal(err)
			}
		}
		mount()
		b := sparing(t)
		pid := startSpare(t, b)
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Fatal(err)
		}
		mount()
		if got := native.StagePID(startBox(t, b, &sandbox.Spec{})); got == pid {
			t.Error("a spare with an old mount was used")
		}
		waitUntil(t, "the spare ends", func() bool { return !isRunning(pid) })
		return
	}
	backend(t)
	if os.Geteuid() != 0 {
		t.Skip("only root can mount file systems")
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+regexp.QuoteMeta(t.Name())+"$")
	cmd.Env = append(os.Environ(), mountVariable+"="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS} // with private mounts
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// spareOnly is a backend whose sandboxes all start in spares.
type spareOnly struct {
	*native.Backend
	t *testing.T
}

func (b spareOnly) Start(ctx context.Context, spec *sandbox.Spec) (sandbox.Sandbox, error) {
	pid := startSpare(b.t, b.Backend)
	box, err := b.Backend.Start(ctx, spec)
	if err == nil && native.StagePID(box) != pid && !spec.Network.Host {
		b.t.Errorf("the sandbox did not use the spare")
	}
	return box, err
}

// Each attack is repeated in the same process, with the spare that was started
// after the first.
func TestAttackWithSpare(t *testing.T) {
	if sandboxtest.AsUser(t) {
		return
	}
	attackWithSpare(t)
}

func TestAttackWithSpareAsRoot(t *testing.T) {
	if sandboxtest.InTerminal(t) {
		return
	}
	attackWithSpare(t)
}

func attackWithSpare(t *testing.T) {
	sandboxtest.TestAttacks(t, spareOnly{sparing(t), t}, sandboxtest.Options{MayBreach: []string{"E14"}, RequireExtra: true, Twice: true})
}

func TestBehavesWithSpare(t *testing.T) { sandboxtest.TestBackend(t, spareOnly{sparing(t), t}) }

// countingSpares waits for a spare that is being launched, and counts the sandboxes
// that used one.
type countingSpares struct {
	*native.Backend
	used *atomic.Int64
}

func (b countingSpares) Start(ctx context.Context, spec *sandbox.Spec) (sandbox.Sandbox, error) {
	pid := b.SparePID()
	box, err := b.Backend.Start(ctx, spec)
	if err == nil && native.StagePID(box) == pid {
		b.used.Add(1)
	}
	return box, err
}

// A spare leaves nothing behind, however its sandbox ends, even while it is
// configured.
func TestResidueWithSpare(t *testing.T) {
	b := sparing(t)
	b.EndSpare()
	b.SetSpareIdle(500 * time.Millisecond) // the last one ends too
	const n = 60
	counting := countingSpares{b, new(atomic.Int64)}
	sandboxtest.TestResidue(t, counting, n)
	if used := counting.used.Load(); used < n/4 {
		t.Errorf("%d of %d runs used a spare", used, n)
	}
}
