//go:build linux

package launcher

import (
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/loadout-dev/loadout/internal/kernelfile"
	"github.com/loadout-dev/loadout/internal/sandbox/stage"
	"github.com/loadout-dev/loadout/sandbox"
)

// SpareThreads is the number of threads reserved for a stage. It is added to
// the sandbox's process limit, because the threads count towards the limit.
const SpareThreads = 12

// IdleThreads is the number of threads that a stage creates before commands
// start, for reaping, watching and collecting. Creating a thread takes 0.2 ms.
const IdleThreads = 3

// Environment returns the environment of a stage. It makes the Go runtime
// collect garbage early, because the stage shares the memory limit of the
// sandbox and must not exceed it.
func Environment() []string {
	return []string{"GOMAXPROCS=1", "GOGC=off", "GOMEMLIMIT=24MiB", "GOTRACEBACK=single"}
}

// Rlimits returns the resource limits of commands, which also apply to the
// stage. If processes is false, it omits the process limit, which would also
// count the user's processes outside the sandbox.
func Rlimits(l sandbox.Limits, processes bool) []stage.Rlimit {
	same := func(resource int, n int64) stage.Rlimit {
		return stage.Rlimit{Resource: resource, Soft: uint64(n), Hard: uint64(n)}
	}
	cpu := int64((l.CPU + time.Second - 1) / time.Second)
	out := []stage.Rlimit{
		{Resource: unix.RLIMIT_CPU, Soft: uint64(cpu), Hard: uint64(cpu + 1)},
		same(unix.RLIMIT_DATA, l.Memory),
		same(unix.RLIMIT_FSIZE, l.FileSize),
		same(unix.RLIMIT_NOFILE, int64(l.OpenFiles)),
		same(unix.RLIMIT_CORE, 0),
		same(unix.RLIMIT_MSGQUEUE, 0),
		same(unix.RLIMIT_MEMLOCK, 64<<10),
	}
	if processes {
		out = append(out, same(unix.RLIMIT_NPROC, int64(l.Processes+SpareThreads)))
	}
	return out
}

// SocketSize returns the maximum number of bytes that a socket can hold in its
// buffers and options. Seccomp keeps code from changing the default sizes of
// the buffers. On the host's network, TCP connections can hold more.
func SocketSize() int64 {
	const usual = 208 << 10 // the kernel's default
	var n int64
	for name, missing := range map[string]int64{"rmem_default": usual, "wmem_default": usual, "optmem_max": 128 << 10} {
		b, err := kernelfile.ReadFile("/proc/sys/net/core/" + name)
		size, _ := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
		if err != nil || size <= 0 {
			size = missing
		}
		n += size
	}
	return n
}

// TreeSize returns the size and the number of inodes required to store a tree.
func TreeSize(t *sandbox.Tree) (size int64, inodes int) {
	const page = 4096
	size = 1 << 20
	inodes = 64
	for _, f := range t.Files {
		size += (f.Size + 2*page - 1) / page * page
		inodes += 2
		for i := range f.Path {
			if f.Path[i] == '/' {
				inodes++
			}
		}
	}
	return size, inodes
}
