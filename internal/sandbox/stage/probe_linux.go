package stage

import (
	"encoding/json"
	"os"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"github.com/loadout-dev/loadout/internal/procstat"
)

// probe tries forbidden actions from inside a sandbox and prints a
// [ProbeResult] as JSON. It runs if the first argument of the process is
// [ProbeName]. arg is a [ProbeInput] as JSON. In the process that the probe
// leaves behind, it is a marker, and that process only sleeps.
func probe(arg string) {
	var in ProbeInput
	if json.Unmarshal([]byte(arg), &in) != nil {
		time.Sleep(time.Minute)
		return
	}
	out := ProbeResult{
		File:       canOpen(in.Canary),
		Process:    startTime(in.PID) == in.Started && in.Started != "",
		Network:    canConnect(in.Port),
		Namespaces: unshareUser() == nil,
		Mount:      syscall.Mount("tmpfs", "/", "tmpfs", 0, "") == nil,
		Privileges: isPrivileged(),
		Seccomp:    prctlValue(21) == 2,
	}
	exe, err := os.Executable()
	if err != nil {
		exe = os.Args[0]
	}
	_, err = syscall.ForkExec(exe, []string{exe, ProbeName, in.Marker}, &syscall.ProcAttr{
		Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setsid: true}})
	out.LeftBehind = err == nil
	json.NewEncoder(os.Stdout).Encode(out)
}

func canOpen(path string) bool {
	fd, err := syscall.Open(path, syscall.O_RDONLY, 0)
	if err == nil {
		syscall.Close(fd)
	}
	return err == nil
}

// startTime returns the start time of a process in ticks since boot. A PID and
// start time together identify a process.
func startTime(pid int) string {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	_, start := procstat.Parse(string(b))
	return start
}

// StartTime returns the start time of this process, for [ProbeInput].
func StartTime() string { return startTime(os.Getpid()) }

func canConnect(port int) bool {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer syscall.Close(fd)
	return syscall.Connect(fd, &syscall.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}) == nil
}

func unshareUser() error {
	_, _, e := syscall.RawSyscall(syscall.SYS_UNSHARE, syscall.CLONE_NEWUSER, 0, 0)
	if e == syscall.EINVAL {
		return nil // the filter allowed the call, which failed only because this process has several threads
	}
	return errnoError(e)
}

// isPrivileged reports whether the process has a capability or could regain
// one.
func isPrivileged() bool {
	header := struct {
		version uint32
		pid     int32
	}{version: 0x20080522}
	var have [2]struct{ effective, permitted, inheritable uint32 }
	_, _, e := syscall.RawSyscall(syscall.SYS_CAPGET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&have[0])), 0)
	return e != 0 || have[0].permitted|have[1].permitted != 0 || prctlValue(39) != 1
}

func prctlValue(op uintptr) int {
	v, _, e := syscall.RawSyscall6(syscall.SYS_PRCTL, op, 0, 0, 0, 0, 0)
	if e != 0 {
		return -1
	}
	return int(v)
}
