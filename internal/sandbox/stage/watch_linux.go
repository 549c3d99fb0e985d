package stage

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// interval is how often memory is looked at.
const interval = 50 * time.Millisecond

// watch ends all commands when they hold more memory together than they may, or
// have made more files. It is what there is without a control group for memory,
// and where file systems in memory have no limit of files.
func (s *stage) watch() {
	for wait := interval; ; {
		time.Sleep(wait)
		var room int64
		if room = s.room(); room < 0 {
			s.endAll(func(c *command) { c.full = true })
		}
		wait = max(interval/25, min(interval, time.Duration(room)*time.Second/filesPerSecond))
		s.mu.Lock()
		n := len(s.running)
		s.mu.Unlock()
		if n == 0 {
			continue
		}
		if s.within() {
			continue
		}
		s.endAll(func(c *command) { c.oom = true })
	}
}

// within reports whether memory is within its limit. Where that cannot be seen,
// it is not.
func (s *stage) within() bool {
	pids, err := family()
	if err != nil {
		return false
	}
	buffers := socketBuffers()
	n, err := resident(pids)
	if err == nil && n+buffers > s.seal.Memory {
		n, err = proportional(pids)
	}
	return err == nil && n+buffers <= s.seal.Memory
}

// socketBuffers is what the sockets of the sandbox may hold, but for those that
// any program has: their memory is nobody's.
func socketBuffers() int64 {
	const usual, most = 128, 416 << 10 // sockets; bytes that one may have waiting
	if !first() {
		return 0 // those of the whole machine are counted together
	}
	b, err := os.ReadFile("/proc/net/sockstat")
	if err != nil {
		return 0 // not every kernel tells
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "sockets: used "); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(rest), 10, 64)
			return max(n-usual, 0) * most
		}
	}
	return 0
}

// filesPerSecond is more than can be made.
const filesPerSecond = 200_000

// room is how many files more the fullest of the counted file systems may have.
func (s *stage) room() int64 {
	room := int64(filesPerSecond)
	for _, p := range s.seal.Counted {
		var st syscall.Statfs_t
		if syscall.Statfs(p, &st) == nil {
			room = min(room, s.seal.Inodes-int64(st.Files-st.Ffree))
		}
	}
	return room
}

// endAll ends all commands for a reason.
func (s *stage) endAll(mark func(*command)) {
	s.mu.Lock()
	for _, c := range s.running {
		mark(c)
	}
	s.mu.Unlock()
	s.killAll()
}

// resident sums up what processes hold in memory. What they share counts for
// each, so that it may be too much.
func resident(pids []int) (n int64, err error) {
	page := int64(os.Getpagesize())
	for _, pid := range pids {
		b, err := readProc(pid, "statm")
		if gone(err) {
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

// gone reports whether an error says that a process has ended.
func gone(err error) bool {
	return errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ESRCH)
}

// proportional sums up what is theirs and not a file's, with what is shared
// divided among those who share it, which takes longer to find out. Memory that
// was mapped to be shared is not anonymous for the kernel, but counts.
func proportional(pids []int) (n int64, err error) {
	for _, pid := range pids {
		b, err := readProc(pid, "smaps_rollup")
		if err != nil {
			more, err := resident([]int{pid})
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

// first reports whether the stage is the first process of a namespace, whose
// end is the end of all others.
func first() bool { return os.Getpid() == 1 }

// family lists the processes that commands have come to be.
func family() ([]int, error) {
	if !first() {
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

// descendants appends the children of a process and theirs.
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

// kill ends a command: its process group, and everything where it runs alone.
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

// killAll ends all commands and what they left.
func (s *stage) killAll() {
	if first() {
		syscall.Kill(-1, syscall.SIGKILL)
		return
	}
	killDescendants()
}

// killDescendants ends whatever comes from this process.
func killDescendants() {
	// Others may be born between a look and the signals: look until nobody
	// new is there. What is dead but not reaped stays in the list for a while.
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
