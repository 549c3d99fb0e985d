package stage

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// usedMemory returns the memory used by all commands: the memory of their
// processes, their page tables, and the maximum size of their socket buffers.
// Seccomp denies other memory that belongs to no process. The result is an
// upper bound. It is exact only near the limit, because an exact count takes
// longer.
func (s *stage) usedMemory() (int64, error) {
	pids, err := commandProcesses()
	if err != nil {
		return 0, err
	}
	var all usage
	live := make([]usage, 0, len(pids))
	for _, pid := range pids {
		u, err := readUsage(pid)
		if processEnded(err) {
			continue
		}
		if err != nil {
			return 0, err
		}
		all.pages, all.tables, live = all.pages+u.pages, all.tables+u.tables, append(live, u)
	}
	kernel := all.tables + s.socketMemory(live, s.seal.Memory-all.tables-all.pages)
	// Walking large page tables takes so long that a program could take much
	// more memory meanwhile.
	if all.pages+kernel > s.seal.Memory && kernel <= s.seal.Memory/8 {
		all.pages = proportionalMemory(live)
	}
	return all.pages + kernel, nil
}

// usage holds how much memory a process uses, in bytes.
type usage struct {
	pages  int64 // anonymous and shared pages, resident or swapped
	tables int64 // page tables
	slots  int64 // size of the descriptor table
	id     int   // process or thread whose files in /proc describe the memory
}

// readUsage returns the memory usage of a process. If its first thread has
// ended, the kernel shows the usage only for the other threads.
func readUsage(pid int) (usage, error) {
	u, threads, err := readStatus(pid)
	if err != nil || u.pages > 0 || threads < 2 {
		return u, err
	}
	entries, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/task")
	if err != nil {
		return u, unwrapPath(err)
	}
	for _, e := range entries {
		if id, err := strconv.Atoi(e.Name()); err == nil && id != pid {
			if of, _, err := readStatus(id); err == nil && of.pages > 0 {
				return of, nil
			}
		}
	}
	return u, nil
}

// unwrapPath returns the [syscall.Errno] that an error of package os wraps, or
// err if it wraps none.
func unwrapPath(err error) error {
	var n syscall.Errno
	if errors.As(err, &n) {
		return n
	}
	return err
}

// readStatus returns the memory usage of a process or thread, and the number of
// threads of the process.
func readStatus(id int) (u usage, threads int, err error) {
	b, err := readProc(strconv.Itoa(id), "status")
	if err != nil {
		return u, 0, err
	}
	u, threads = parseStatus(b)
	u.id = id
	return u, threads, nil
}

func parseStatus(b []byte) (u usage, threads int) {
	for line := range strings.Lines(string(b)) {
		name, rest, _ := strings.Cut(line, ":")
		field, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			continue
		}
		switch name {
		case "RssAnon", "RssShmem", "VmSwap", "HugetlbPages":
			u.pages += n << 10
		case "VmPTE":
			u.tables = n << 10
		case "FDSize":
			u.slots = n
		case "Threads":
			threads = int(n)
		}
	}
	return u, threads
}

// socketMemory returns how much memory the sockets of processes may hold beyond
// normal use. This memory belongs to no process. If the result is at most room,
// it may be too high, because an exact count takes longer.
func (s *stage) socketMemory(processes []usage, room int64) int64 {
	const usual = 32 // sockets
	memory := func(sockets int64) int64 { return max(sockets-usual, 0) * s.seal.Socket }
	if !s.seal.NetShared {
		if b, err := readProc("net", "sockstat"); err == nil {
			all := parseSockets(b)
			n := memory(all.used)
			if s.seal.GrowingTCP && all.tcp > 0 {
				n += max(all.tcpMemory-s.tcpBefore, 0)
			}
			return n
		}
	}
	if n := memory(countDescriptors(processes)); n <= room {
		return n
	}
	return memory(countSockets(processes))
}

// countDescriptors returns an upper bound of the number of descriptors that
// processes have open.
func countDescriptors(processes []usage) (n int64) {
	for _, u := range processes {
		var st syscall.Stat_t
		if syscall.Stat("/proc/"+strconv.Itoa(u.id)+"/fd", &st) == nil && st.Size > 0 {
			n += st.Size // since Linux 6.2
		} else {
			n += u.slots
		}
	}
	return n
}

// countSockets returns the number of sockets that processes have open. If the
// descriptors of a process cannot be read, all of them count as sockets.
func countSockets(processes []usage) (n int64) {
	sockets := map[string]bool{} // a socket can be open in several processes
	for _, u := range processes {
		dir := "/proc/" + strconv.Itoa(u.id) + "/fd"
		entries, err := os.ReadDir(dir)
		if err != nil && !processEnded(unwrapPath(err)) {
			n += u.slots
		}
		for _, e := range entries {
			if to, err := os.Readlink(dir + "/" + e.Name()); err == nil && strings.HasPrefix(to, "socket:") {
				sockets[to] = true
			}
		}
	}
	return n + int64(len(sockets))
}

// sockets describes the sockets of a network namespace.
type sockets struct {
	used      int64 // all sockets
	tcp       int64 // TCP sockets
	tcpMemory int64 // bytes in buffers of all TCP sockets of the machine
}

// parseSockets parses /proc/net/sockstat.
func parseSockets(b []byte) (s sockets) {
	for line := range strings.Lines(string(b)) {
		kind, rest, _ := strings.Cut(line, ": ")
		f := strings.Fields(rest) // names and values
		for i := 0; i+1 < len(f); i += 2 {
			n, _ := strconv.ParseInt(f[i+1], 10, 64)
			switch kind + " " + f[i] {
			case "sockets used":
				s.used = n
			case "TCP inuse":
				s.tcp = n
			case "TCP mem": // in pages
				s.tcpMemory = n * int64(os.Getpagesize())
			}
		}
	}
	return s
}

// processEnded reports whether err means that a process has exited.
func processEnded(err error) bool {
	return errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ESRCH)
}

// proportionalMemory returns the anonymous memory of processes in bytes, with
// the size of each shared page divided by the number of processes that share
// it. It also counts shared mappings, which the kernel does not report as
// anonymous. It is slower than [readUsage].
func proportionalMemory(processes []usage) (n int64) {
	for _, u := range processes {
		b, err := readProc(strconv.Itoa(u.id), "smaps_rollup")
		if processEnded(err) {
			continue
		}
		if err != nil { // the process hides its mappings
			n += u.pages
			continue
		}
		for line := range strings.Lines(string(b)) {
			name, rest, _ := strings.Cut(line, ":")
			switch name {
			case "Pss_Anon", "Pss_Shmem", "SwapPss", "Private_Hugetlb", "Shared_Hugetlb":
				kb, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
				n += kb << 10
			}
		}
	}
	return n
}
