package container

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/sandbox/mountpoint"
	"github.com/loadout-dev/loadout/internal/sandbox/prepare"
	"github.com/loadout-dev/loadout/sandbox"
)

// User IDs in a container: one keeps the container running, the other runs
// commands.
const (
	idler = "65532:65532"
	user  = "1000:1000"
)

// stateDir is the directory in a container with the PIDs of its commands.
const stateDir = "/run/loadout"

// label marks containers that this program created.
const label = "dev.loadout"

// bind is a host directory that is mounted in a container.
type bind struct {
	host, path string
	writable   bool
}

// createArguments returns the arguments of the engine command that creates a
// container.
func (b *Backend) createArguments(e *engine, name string, spec *sandbox.Spec, binds []bind) []string {
	l := prepare.Limits(spec)
	memory := strconv.FormatInt(memoryLimit(l), 10)
	cpu := int64((l.CPU + time.Second - 1) / time.Second)
	same := func(name string, n int64) string {
		return name + "=" + strconv.FormatInt(n, 10) + ":" + strconv.FormatInt(n, 10)
	}
	network := "none"
	if spec.Network.Host {
		network = "host"
	}
	args := []string{
		"create", "--name", name, "--label", label, "--hostname", "loadout", "--network", network, "--pull", "never", "--init", "--log-driver", "none",
		"--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--user", idler, "--workdir", "/",
		"--pids-limit", strconv.Itoa(l.Processes + idleProcesses), "--memory", memory, "--memory-swap", memory, "--cpus", strconv.FormatFloat(l.Cores, 'f', -1, 64),
		"--ulimit", "cpu=" + strconv.FormatInt(cpu, 10) + ":" + strconv.FormatInt(cpu+1, 10), "--ulimit", same("fsize", l.FileSize), "--ulimit", same("nofile", int64(l.OpenFiles)), "--ulimit", "core=0:0",
		"--shm-size", strconv.FormatInt(l.Shm, 10),
		"--tmpfs", b.tmpfs(e, mountpoint.Work, workSize(spec, l), l.Inodes), "--tmpfs", b.tmpfs(e, mountpoint.Tmp, l.Tmp, l.Inodes), "--tmpfs", b.tmpfs(e, stateDir, 1<<20, 1024),
	}
	if len(spec.Secrets) > 0 {
		args = append(args, "--tmpfs", b.tmpfs(e, mountpoint.Secrets, 1<<20, 256))
	}
	if b.opts.Runtime != "" {
		args = append(args, "--runtime", b.opts.Runtime)
	}
	for _, m := range binds {
		args = append(args, "--mount", m.String())
	}
	return append(args, "--entrypoint", "sleep", b.opts.Image, "2147483647")
}

// memoryLimit returns the memory limit of a container. The limit includes
// in-memory file systems.
func memoryLimit(l sandbox.Limits) int64 { return l.Memory + l.Work + l.Tmp + l.Shm }

// idleProcesses is the number of processes that the container and exec sessions
// need when no command runs.
const idleProcesses = 8

// tmpfs returns the option for an in-memory file system to which all users of
// the container can write.
func (b *Backend) tmpfs(e *engine, path string, size int64, inodes int) string {
	s := path + ":rw,exec,nosuid,nodev,mode=1777,size=" + strconv.FormatInt(size, 10)
	if e.kind == "docker" { // Podman does not support it
		s += ",nr_inodes=" + strconv.Itoa(inodes)
	}
	return s
}

func workSize(spec *sandbox.Spec, l sandbox.Limits) int64 {
	size := l.Work
	for _, t := range spec.Trees {
		for _, f := range t.Files {
			if prepare.IsWritable(t.Path) {
				size += f.Size + 4096
			}
		}
	}
	return size
}

// String formats the bind as a --mount value, which engines parse as CSV.
func (m bind) String() string {
	fields := []string{"type=bind", "source=" + m.host, "target=" + m.path}
	if !m.writable {
		fields = append(fields, "readonly")
	}
	var s strings.Builder
	w := csv.NewWriter(&s)
	w.Write(fields) // never fails in memory
	w.Flush()
	return strings.TrimSuffix(s.String(), "\n")
}

// hostID returns an ID for this machine, because several machines can share an
// engine.
func hostID() string {
	name, _ := os.Hostname()
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:4])
}

// newName returns a container name that includes the machine ID and the PID of
// this process.
func newName() string {
	return "loadout-" + hostID() + "-" + strconv.Itoa(os.Getpid()) + "-" + strings.ToLower(rand.Text()[:12])
}

// ownerPID returns the PID of the process that created a container, or 0 if
// that process is on another machine.
func ownerPID(name string) int {
	rest, ok := strings.CutPrefix(name, "loadout-"+hostID()+"-")
	if !ok {
		return 0
	}
	pid, _, _ := strings.Cut(rest, "-")
	n, _ := strconv.Atoi(pid)
	return n
}
