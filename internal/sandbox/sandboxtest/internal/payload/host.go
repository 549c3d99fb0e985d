//go:build linux

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

func (t *tally) pid() int {
	n, err := strconv.Atoi(t.args[0])
	if err != nil || n <= 1 {
		panic("victim has no PID")
	}
	return n
}

func signalVictim(t *tally) {
	signal.Ignore(unix.SIGUSR1) // the PID may be that of this process in its namespace
	t.try("kill", unix.Kill(t.pid(), unix.SIGUSR1))
}

// signalAll sends a harmless signal to all processes.
func signalAll(t *tally) { t.try("kill -1", unix.Kill(-1, unix.SIGWINCH)) }

func errnoError(e unix.Errno) error {
	if e == 0 {
		return nil
	}
	return e
}

func trace(t *tally) {
	_, _, e := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(t.pid()), 0, 0, 0, 0)
	t.try("PTRACE_SEIZE", errnoError(e))
}

func limitVictim(t *tally) {
	var old unix.Rlimit
	err := unix.Prlimit(t.pid(), unix.RLIMIT_MSGQUEUE, nil, &old)
	if err == nil {
		old.Cur -= 4096
		err = unix.Prlimit(t.pid(), unix.RLIMIT_MSGQUEUE, &old, nil)
	}
	t.try("prlimit", err)
}

// limitFirst reads the resource limits of process 1, which watches commands in
// a sandbox. A process that may read limits may also change them. limitFirst
// does not change any limit, because without a sandbox process 1 is the host's
// init.
func limitFirst(t *tally) {
	var old unix.Rlimit
	t.try("prlimit of process 1", unix.Prlimit(1, unix.RLIMIT_NOFILE, nil, &old))
}

func reniceVictim(t *tally) {
	before, _ := unix.Getpriority(unix.PRIO_PROCESS, t.pid()) // 20 minus the nice value
	t.try("setpriority", unix.Setpriority(unix.PRIO_PROCESS, t.pid(), 20-before+7))
}

func pinVictim(t *tally) {
	var set unix.CPUSet
	set.Set(0)
	t.try("sched_setaffinity", unix.SchedSetaffinity(t.pid(), &set))
}

// gainRoot runs a setuid copy of this program, if it exists.
func gainRoot(t *tally) {
	if t.args[0] != "" {
		b, err := exec.Command(t.args[0]).Output()
		if err == nil && strings.TrimSpace(string(b)) != "euid 0" {
			err = errors.New("setuid program gained no privileges")
		}
		t.try("setuid copy", err)
	}
	for _, p := range []string{"/usr/bin/su", "/bin/su"} {
		if _, err := os.Stat(p); err == nil {
			t.try(p, runSetuid(p))
		}
	}
}

// runSetuid starts a setuid program that waits for input, and returns an error
// unless it gained privileges.
func runSetuid(p string) error {
	cmd := exec.Command(p)
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() { in.Close(); cmd.Process.Kill(); cmd.Wait() }()
	for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(b)) {
			if f := strings.Fields(line); len(f) > 2 && f[0] == "Uid:" && f[2] == "0" {
				return nil
			}
		}
	}
	return errors.New("setuid program gained no privileges")
}

func mountTmpfs(t *tally) {
	dir := filepath.Join(workDir(), "mnt")
	os.Mkdir(dir, 0o755)
	err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=4096")
	if err == nil {
		unix.Unmount(dir, 0)
	}
	t.try("mount", err)
	fd, err := unix.Fsopen("tmpfs", 0)
	if err == nil {
		unix.Close(fd)
	}
	t.try("fsopen", err)
}

func newUserNamespace(t *tally) {
	t.try("clone", childSyscall(unix.CLONE_NEWUSER, noCall, 0, 0))
	t.try("unshare", childSyscall(0, unix.SYS_UNSHARE, unix.CLONE_NEWUSER, 0))
	t.try("clone3", clone3(unix.CLONE_NEWUSER))
}

func changeRoot(t *tally) {
	dir, _ := unix.BytePtrFromString(workDir())
	t.try("chroot", childSyscall(0, unix.SYS_CHROOT, uintptr(unsafe.Pointer(dir)), 0))
	runtime.KeepAlive(dir)
}

func kernelSurface(t *tally) {
	attr := struct{ kind, key, value, max uint32 }{2, 4, 4, 1} // BPF_MAP_TYPE_ARRAY
	fd, _, e := unix.Syscall(unix.SYS_BPF, 0, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	t.tryFD("bpf", fd, e)
	perf := unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_TASK_CLOCK, Bits: unix.PerfBitDisabled | unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv}
	perf.Size = uint32(unsafe.Sizeof(perf))
	fd, _, e = unix.Syscall6(unix.SYS_PERF_EVENT_OPEN, uintptr(unsafe.Pointer(&perf)), 0, ^uintptr(0), ^uintptr(0), 0, 0)
	t.tryFD("perf_event_open", fd, e)
	fd, _, e = unix.Syscall(unix.SYS_USERFAULTFD, 1 /* user mode only */, 0, 0)
	t.tryFD("userfaultfd", fd, e)
}

// selectPersonality tries to make readable mappings executable with
// personality(2), restores the default, and tries to create a semaphore.
func selectPersonality(t *tally) {
	const readImpliesExec = 0x0400000
	_, _, e := unix.Syscall(unix.SYS_PERSONALITY, readImpliesExec, 0, 0)
	t.try("READ_IMPLIES_EXEC", errnoError(e))
	if _, _, e := unix.Syscall(unix.SYS_PERSONALITY, 0, 0, 0); e != 0 {
		t.try("semaphores", nil) // programs may select the default
	}
	_, _, e = unix.Syscall(unix.SYS_SEMGET, unix.IPC_PRIVATE, 1, 0o600)
	t.try("semget", errnoError(e))
}

func (t *tally) tryFD(what string, fd uintptr, e unix.Errno) {
	if e == 0 {
		unix.Close(int(fd))
	}
	t.try(what, errnoError(e))
}

// injectInput writes a line to the terminal input of the process that started
// the sandbox.
func injectInput(t *tally) {
	fds := map[string]int{"stdin": 0, "stdout": 1, "stderr": 2}
	if fd, err := unix.Open("/dev/tty", unix.O_RDWR, 0); err == nil {
		fds["/dev/tty"] = fd
	}
	for what, fd := range fds {
		var err error
		for _, c := range []byte("# " + t.mark + "\n") {
			if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCSTI, uintptr(unsafe.Pointer(&c))); e != 0 {
				err = e
				break
			}
		}
		t.try("TIOCSTI on "+what, err)
	}
}

func openTTY(t *tally) {
	fd, err := unix.Open("/dev/tty", unix.O_RDWR, 0)
	if err == nil {
		unix.Close(fd)
	}
	t.try("/dev/tty", err)
}

func enterNamespace(t *tally) {
	for _, ns := range []string{"mnt", "pid", "net", "user"} {
		fd, err := unix.Open(fmt.Sprintf("/proc/%d/ns/%s", t.pid(), ns), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err == nil {
			err = childSyscall(0, unix.SYS_SETNS, uintptr(fd), 0)
		}
		t.try("setns "+ns, err)
	}
	pidfd, err := unix.PidfdOpen(t.pid(), 0)
	if err == nil {
		err = childSyscall(0, unix.SYS_SETNS, uintptr(pidfd), unix.CLONE_NEWNS)
	}
	t.try("setns pidfd", err)
}

// writeProc opens protected files for writing, but does not write to them.
func writeProc(t *tally) {
	for _, p := range []string{"/proc/sys/kernel/core_pattern", "/proc/sys/vm/overcommit_memory", "/proc/sys/kernel/hostname", "/proc/sysrq-trigger", "/proc/irq/default_smp_affinity"} {
		fd, err := unix.Open(p, unix.O_WRONLY|unix.O_CLOEXEC, 0)
		if err == nil {
			unix.Close(fd)
		}
		t.try(p, err)
	}
	for _, pid := range []string{"self", t.args[0]} {
		t.try("oom_score_adj of "+pid, os.WriteFile("/proc/"+pid+"/oom_score_adj", []byte("-1000"), 0))
	}
	err := filepath.WalkDir("/sys/kernel", func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && unix.Access(p, unix.W_OK) == nil {
			t.try(p, nil)
			return fs.SkipAll
		}
		if err == nil && d.IsDir() && strings.Count(p, "/") > 3 {
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		t.try("/sys", err)
	}
}
