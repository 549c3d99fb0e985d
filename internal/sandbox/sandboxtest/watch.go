//go:build linux

package sandboxtest

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// maxLifetime is the maximum lifetime of a payload process. Tests must wait for a
// process to exit with a much shorter timeout.
const maxLifetime = 20 * time.Second

// poll calls ok until it returns true or d has passed.
func poll(d time.Duration, ok func() bool) bool {
	for end := time.Now().Add(d); ; time.Sleep(5 * time.Millisecond) {
		if ok() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}

// processesWithMark returns the PIDs of host processes that have mark as an
// argument.
func processesWithMark(mark string) []int {
	var pids []int
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, p := range all {
		b, err := os.ReadFile(p)
		if err != nil || !bytes.Contains(append([]byte{0}, b...), []byte("\x00"+mark+"\x00")) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(p))); err == nil && !isZombie(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func isZombie(pid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	i := bytes.LastIndexByte(b, ')')
	return err != nil || i < 0 || len(b) < i+3 || b[i+2] == 'Z' || b[i+2] == 'X'
}

// sweep kills the remaining processes of an attack and removes its files
// outside the sandbox.
func sweep(mark string) {
	poll(3*time.Second, func() bool {
		pids := processesWithMark(mark)
		for _, pid := range pids {
			unix.Kill(pid, unix.SIGKILL)
		}
		return len(pids) == 0
	})
	for _, dir := range []string{"/dev/shm", "/tmp", os.TempDir()} {
		all, _ := filepath.Glob(filepath.Join(dir, mark+"*"))
		for _, p := range all {
			os.Remove(p)
		}
	}
}

// rss returns this process's resident memory in bytes.
func rss() int64 { return statusField("self", "VmRSS:") << 10 }

// statusField returns a numeric field of a process's status, or -1.
func statusField(pid, field string) int64 {
	b, _ := os.ReadFile("/proc/" + pid + "/status")
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == field {
			n, err := strconv.ParseInt(f[1], 10, 64)
			if err == nil {
				return n
			}
		}
	}
	return -1
}

// traces holds what sandboxes may leave behind on a host.
type traces struct {
	mounts  int
	cgroups int
	fds     int
	files   []string
	marked  []int
}

func findTraces(tmp, mark string) traces {
	b, _ := os.ReadFile("/proc/self/mountinfo")
	fds, _ := os.ReadDir("/proc/self/fd")
	tr := traces{mounts: bytes.Count(b, []byte("\n")), fds: len(fds), cgroups: countCgroups(), marked: processesWithMark(mark)}
	tr.files, _ = filepath.Glob(tmp + "/*")
	return tr
}

// countCgroups counts the control groups whose name contains the PID of this
// process, because tests of other packages run concurrently.
func countCgroups() int {
	n, pid := 0, strconv.Itoa(os.Getpid())
	filepath.WalkDir("/sys/fs/cgroup", func(_ string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.Contains(d.Name(), pid) {
			n++
		}
		return nil
	})
	return n
}

func lines(b []byte) []string { return strings.Split(string(b), "\n") }
