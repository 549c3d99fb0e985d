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

	"github.com/loadout-dev/loadout/sandbox"
)

// Users in a container: it idles as one, commands are the other.
const (
	idler = "65532:65532"
	user  = "1000:1000"
)

// stateDir is where a container keeps the numbers of its commands.
const stateDir = "/run/loadout"

// label marks our containers.
const label = "dev.loadout"

// bind is a directory of the host in a container.
type bind struct {
	host, path string
	writable   bool
}

// creation are the arguments that create a container.
func (b *Backend) creation(e *engine, name string, spec *sandbox.Spec, binds []bind) []string {
	l := spec.Limits.WithDefaults()
	memory := strconv.FormatInt(memory(l), 10)
	cpu := int64((l.CPU + time.Second - 1) / time.Second)
	same := func(name string, n int64) string {
		return name + "=" + strconv.FormatInt(n, 10) + ":" + strconv.FormatInt(n, 10)
	}
	network := "none"
	if spec.Network.Mode == sandbox.HostNetwork {
		network = "host"
	}
	args := []string{
		"create", "--name", name, "--label", label, "--hostname", "loadout", "--network", network, "--pull", "never", "--init", "--log-driver", "none",
		"--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--user", idler, "--workdir", "/",
		"--pids-limit", strconv.Itoa(l.Processes + idleProcesses), "--memory", memory, "--memory-swap", memory, "--cpus", strconv.FormatFloat(l.Cores, 'f', -1, 64),
		"--ulimit", "cpu=" + strconv.FormatInt(cpu, 10) + ":" + strconv.FormatInt(cpu+1, 10), "--ulimit", same("fsize", l.FileSize), "--ulimit", same("nofile", int64(l.OpenFiles)), "--ulimit", "core=0:0",
		"--shm-size", strconv.FormatInt(l.Shm, 10),
		"--tmpfs", b.tmpfs(e, sandbox.WorkDir, workSize(spec, l), l.Inodes), "--tmpfs", b.tmpfs(e, sandbox.TmpDir, l.Tmp, l.Inodes), "--tmpfs", b.tmpfs(e, stateDir, 1<<20, 1024),
	}
	if len(spec.Secrets) > 0 {
		args = append(args, "--tmpfs", b.tmpfs(e, sandbox.SecretsDir, 1<<20, 256))
	}
	if b.opts.Runtime != "" {
		args = append(args, "--runtime", b.opts.Runtime)
	}
	for _, m := range binds {
		args = append(args, "--mount", m.String())
	}
	return append(args, "--entrypoint", "sleep", b.opts.Image, "2147483647")
}

// memory is the limit of memory of a container: what is there as files counts too.
func memory(l sandbox.Limits) int64 { return l.Memory + l.Work + l.Tmp + l.Shm }

// idleProcesses are those of a container itself and of calls into it.
const idleProcesses = 8

// tmpfs is a file system in memory that the users of the container share.
func (b *Backend) tmpfs(e *engine, path string, size int64, inodes int) string {
	s := path + ":rw,exec,nosuid,nodev,mode=1777,size=" + strconv.FormatInt(size, 10)
	if e.kind == "docker" { // Podman knows no such option
		s += ",nr_inodes=" + strconv.Itoa(inodes)
	}
	return s
}

func workSize(spec *sandbox.Spec, l sandbox.Limits) int64 {
	size := l.Work
	for _, t := range spec.Trees {
		for _, f := range t.Files {
			if t.Writable() {
				size += f.Size + 4096
			}
		}
	}
	return size
}

// String is the bind as a value of --mount, which engines read as CSV.
func (m bind) String() string {
	fields := []string{"type=bind", "source=" + m.host, "target=" + m.path}
	if !m.writable {
		fields = append(fields, "readonly")
	}
	var s strings.Builder
	w := csv.NewWriter(&s)
	w.Write(fields) // to memory
	w.Flush()
	return strings.TrimSuffix(s.String(), "\n")
}

// hostMark tells the containers of this machine from those of others that use
// the same engine.
func hostMark() string {
	name, _ := os.Hostname()
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:4])
}

// newName names a container after whoever made it.
func newName() string {
	return "loadout-" + hostMark() + "-" + strconv.Itoa(os.Getpid()) + "-" + strings.ToLower(rand.Text()[:12])
}

// ownerOf is the process of this machine that made a container, 0 if it is not
// of this machine.
func ownerOf(name string) int {
	rest, ok := strings.CutPrefix(name, "loadout-"+hostMark()+"-")
	if !ok {
		return 0
	}
	pid, _, _ := strings.Cut(rest, "-")
	n, _ := strconv.Atoi(pid)
	return n
}
