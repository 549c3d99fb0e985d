package stage

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Bounds of the time between two checks.
const (
	minWatchInterval = 2 * time.Millisecond
	maxWatchInterval = 50 * time.Millisecond
)

// watch kills all commands when together they exceed the memory or inode limit.
// It is used for memory if there is no control group, and for inodes if file
// systems have no limit. The closer the commands are to a limit, the more often
// it checks.
func (s *stage) watch() {
	runtime.LockOSThread()
	preferThread()
	most := s.seal.Memory * 3 / 2 // until the next check, commands may exceed the limit by half
	wait := timeToUse(most, memoryPerSecond())
	for {
		s.mu.Lock()
		n := len(s.running)
		s.mu.Unlock()
		if n == 0 {
			<-s.busy
			wait = timeToUse(most, memoryPerSecond())
		}
		sleep(max(minWatchInterval, min(maxWatchInterval, wait)))
		start := threadTime()
		room := s.freeInodes()
		if room < 0 {
			s.killCommands(func(c *command) { c.full = true })
		}
		used, err := s.usedMemory()
		if err != nil || used > s.seal.Memory {
			s.killCommands(func(c *command) { c.oom = true })
		}
		wait = min(timeToUse(room, filesPerSecond), timeToUse(most-used, memoryPerSecond()))
		wait = max(wait, 4*(threadTime()-start)) // a check of many processes takes long
	}
}

// sleep blocks this thread. Unlike [time.Sleep], it does not need another
// thread to wake it.
func sleep(d time.Duration) {
	ts := syscall.NsecToTimespec(int64(d))
	syscall.Nanosleep(&ts, nil) // a signal only makes the next check early
}

// threadTime returns the CPU time that this thread has used.
func threadTime() time.Duration {
	const ofThread = 1
	var u syscall.Rusage
	syscall.Getrusage(ofThread, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// timeToUse returns how long it takes to use n more units of a resource at the
// given rate.
func timeToUse(n, perSecond int64) time.Duration {
	return time.Duration(float64(n) / float64(perSecond) * float64(time.Second))
}

// memoryPerSecond returns an upper bound for the rate at which commands can
// take memory.
func memoryPerSecond() int64 { return int64(min(runtime.NumCPU(), 8)) * (4 << 30) }

// filesPerSecond is an upper bound for the rate at which commands can create
// files.
const filesPerSecond = 200_000

// freeInodes returns the smallest number of free inodes among the file systems in
// Counted, but no more than filesPerSecond.
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

// readProc returns the content of a file in a directory of /proc. It makes fewer
// system calls than [os.ReadFile].
func readProc(dir, name string) ([]byte, error) {
	fd, err := syscall.Open("/proc/"+dir+"/"+name, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer syscall.Close(fd)
	b := make([]byte, 4096)
	for size := 0; ; {
		n, err := syscall.Read(fd, b[size:])
		if err != nil || n <= 0 {
			return b[:size], err
		}
		if size += n; size == len(b) {
			b = append(b, make([]byte, len(b))...)
		}
	}
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
// pids and returns the result.
func descendants(pid int, pids []int) []int {
	dir := "/proc/" + strconv.Itoa(pid) + "/task"
	threads, _ := os.ReadDir(dir)
	for _, t := range threads {
		b, _ := readProc(strconv.Itoa(pid)+"/task/"+t.Name(), "children")
		for word := range strings.FieldsSeq(string(b)) {
			if child, err := strconv.Atoi(word); err == nil {
				pids = descendants(child, append(pids, child))
			}
		}
	}
	return pids
}

// kill kills a command's process group and descendants. If no other command is
// running, it kills all processes that commands have started.
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
