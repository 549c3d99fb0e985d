package stage

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// watchInterval is the time between memory checks.
const watchInterval = 50 * time.Millisecond

// watch kills all commands when they exceed the memory or inode limit together.
// It replaces a missing control group for memory, and missing file system
// limits for inodes.
func (s *stage) watch() {
	for wait := watchInterval; ; {
		time.Sleep(wait)
		var room int64
		if room = s.freeInodes(); room < 0 {
			s.killCommands(func(c *command) { c.full = true })
		}
		wait = max(watchInterval/25, min(watchInterval, time.Duration(room)*time.Second/filesPerSecond))
		s.mu.Lock()
		n := len(s.running)
		s.mu.Unlock()
		if n == 0 {
			continue
		}
		if s.withinMemoryLimit() {
			continue
		}
		s.killCommands(func(c *command) { c.oom = true })
	}
}

// withinMemoryLimit reports whether memory use is within the limit. It returns
// false if memory use cannot be measured.
func (s *stage) withinMemoryLimit() bool {
	pids, err := commandProcesses()
	if err != nil {
		return false
	}
	buffers := socketBuffers()
	n, err := residentMemory(pids)
	if err == nil && n+buffers > s.seal.Memory {
		n, err = proportionalMemory(pids)
	}
	return err == nil && n+buffers <= s.seal.Memory
}

// socketBuffers returns how much memory the sockets of the sandbox may hold
// beyond normal use. This memory belongs to no process.
func socketBuffers() int64 {
	const usual, most = 128, 416 << 10 // number of sockets; bytes that a socket can buffer
	if !isInit() {
		return 0 // the file counts the sockets of the whole machine
	}
	b, err := os.ReadFile("/proc/net/sockstat")
	if err != nil {
		return 0 // some kernels lack the file
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "sockets: used "); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(rest), 10, 64)
			return max(n-usual, 0) * most
		}
	}
	return 0
}

// filesPerSecond is an upper bound for the rate at which commands can create
// files.
const filesPerSecond = 200_000

// freeInodes returns how many more files can be created in the fullest file
// system in Counted.
func (s *stage) freeInodes() int64 {
	room := int64(filesPerSecond)
	for _, p := range s.seal.Counted {
		var st syscall.Statfs_t
		if syscall.Statfs(p, &st) == nil {
			room = min(room, s.seal.Inodes-int64(st.Files-st.Ffree))
		}
	}
	return room
}

// killCommands kills all commands. It calls mark on each to record the reason.
func (s *stage) killCommands(mark func(*command)) {
	s.mu.Lock()
	for _, c := range s.running {
		mark(c)
	}
	s.mu.Unlock()
	s.killAll()
}

// residentMemory returns the resident memory of processes in bytes. It is an
// upper bound, because shared pages are counted once per process.
func residentMemory(pids []int) (n int64, err error) {
	page := int64(os.Getpagesize())
	for _, pid := range pids {
		b, err := readProc(pid, "statm")
		if processEnded(err) {
			continue
		}
		if err != nil {
			return 0, err
		}
		if f := strings.Fields(string(b)); len(f) > 1 {
			all, _ := strconv.ParseInt(f[1], 10, 64)
			n += all * page
		}
	}
	return n, nil
}

// processEnded reports whether err means that a process has exited.
func processEnded(err error) bool {
	return errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ESRCH)
}

// proportionalMemory returns the anonymous memory of processes in bytes, with
// shared pages divided by the number of their users. It also counts shared
// mappings, which the kernel does not call anonymous. It is slower than
// residentMemory.
func proportionalMemory(pids []int) (n int64, err error) {
	for _, pid := range pids {
		b, err := readProc(pid, "smaps_rollup")
		if err != nil {
			more, err := residentMemory([]int{pid})
			if err != nil {
				return 0, err
			}
			n += more
			continue
		}
		for line := range strings.Lines(string(b)) {
			name, rest, _ := strings.Cut(line, ":")
			if name == "Pss_Anon" || name == "Pss_Shmem" {
				kb, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
				n += kb << 10
			}
		}
	}
	return n, nil
}

func readProc(pid int, name string) ([]byte, error) {
	fd, err := syscall.Open("/proc/"+strconv.Itoa(pid)+"/"+name, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer syscall.Close(fd)
	b := make([]byte, 4096)
	n, err := syscall.Read(fd, b)
	return b[:max(n, 0)], err
}

// isInit reports whether the stage is the init process of a PID namespace, so
// that the kernel kills all other processes when it exits.
func isInit() bool { return os.Getpid() == 1 }

// commandProcesses returns the PIDs of all processes started by commands.
func commandProcesses() ([]int, error) {
	if !isInit() {
		return descendants(os.Getpid(), nil), nil
	}
	var pids []int
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil && pid != 1 {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// descendants appends the PIDs of a process's direct and indirect children to
// the list.
func descendants(pid int, to []int) []int {
	dir := "/proc/" + strconv.Itoa(pid) + "/task"
	threads, _ := os.ReadDir(dir)
	for _, t := range threads {
		b, _ := os.ReadFile(dir + "/" + t.Name() + "/children")
		for word := range strings.FieldsSeq(string(b)) {
			if child, err := strconv.Atoi(word); err == nil {
				to = descendants(child, append(to, child))
			}
		}
	}
	return to
}

// kill kills the process group of a command. If no other command is running, it
// kills all processes.
func (s *stage) kill(id int) {
	s.mu.Lock()
	alone := len(s.running) == 1
	pid := 0
	for _, c := range s.running {
		if c.id == id {
			pid = c.pid
		}
	}
	s.mu.Unlock()
	switch {
	case pid == 0:
	case alone:
		s.killAll()
	default:
		for _, p := range descendants(pid, nil) {
			syscall.Kill(p, syscall.SIGKILL)
		}
		syscall.Kill(-pid, syscall.SIGKILL)
	}
}

// killAll kills all commands and their remaining processes.
func (s *stage) killAll() {
	if isInit() {
		syscall.Kill(-1, syscall.SIGKILL)
		return
	}
	killDescendants()
}

func killDescendants() {
	// New processes may appear between listing and killing, so repeat until
	// there are none. Dead processes are listed until they are reaped.
	signalled := map[int]bool{}
	for range 100 {
		fresh := false
		for _, pid := range descendants(os.Getpid(), nil) {
			fresh = fresh || !signalled[pid]
			signalled[pid] = true
			syscall.Kill(pid, syscall.SIGKILL)
		}
		if !fresh {
			return
		}
	}
}
