package container

import (
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/procstat"
	"github.com/loadout-dev/loadout/internal/sandbox/mountpoint"
	"github.com/loadout-dev/loadout/internal/sandbox/prepare"
	"github.com/loadout-dev/loadout/sandbox"
)

// inspectScript unpacks an archive and prints the properties of the container
// for [parseFacts]. Its argument is the PID of a host process. It uses only
// shell built-ins. It also reads the control groups of all ancestors, because
// each can set a limit.
const inspectScript = `tar -x -f - -C / || exit
for f in /proc/self/status /proc/self/limits /proc/self/mountinfo /proc/net/dev /proc/net/route /proc/net/ipv6_route /proc/version "/proc/$0/stat"; do
[ -r "$f" ] || continue
printf '= %s\n' "$f"
while IFS= read -r l; do printf '%s\n' "$l"; done <"$f"
done 2>/dev/null
up() {
p=${2%/}
while :; do
[ -r "$1$p/$3" ] && read -r v <"$1$p/$3" && printf '%s %s\n' "$3" "$v"
[ -n "$p" ] || break
p=${p%/*}
done
}
echo '= groups'
while IFS=: read -r n c q; do
case ",$c," in
,,) for f in memory.max pids.max cpu.max; do up /sys/fs/cgroup "$q" "$f"; done;;
*,memory,*) up /sys/fs/cgroup/memory "$q" memory.limit_in_bytes;;
*,pids,*) up /sys/fs/cgroup/pids "$q" pids.max;;
*,cpu,*) up /sys/fs/cgroup/cpu "$q" cpu.cfs_quota_us;;
esac
done </proc/self/cgroup 2>/dev/null
exit 0`

// facts holds the properties of a container as seen from inside.
type facts struct {
	status  map[string]string    // process status of a command
	limits  map[string]int64     // resource limits of a command, by name
	groups  map[string][]float64 // control group limits by file
	mounts  map[string][2]string // type and options by path
	devices []string             // network devices
	routes  []string             // devices with routes
	net     bool                 // whether devices and routes are known
	version string               // kernel version
	host    string               // stat of the process in the container that has the PID of the host process
}

// parseFacts parses the output of inspectScript.
func parseFacts(output string) *facts {
	f := &facts{status: map[string]string{}, limits: map[string]int64{}, groups: map[string][]float64{}, mounts: map[string][2]string{}}
	file, dev, route := "", false, false
	for line := range strings.Lines(output) {
		line = strings.TrimSuffix(line, "\n")
		words := strings.Fields(line)
		if name, ok := strings.CutPrefix(line, "= "); ok {
			file = name
			dev, route = dev || file == "/proc/net/dev", route || file == "/proc/net/route"
			continue
		}
		if len(words) == 0 {
			continue
		}
		switch file {
		case "/proc/self/status":
			name, value, _ := strings.Cut(line, ":")
			f.status[name] = strings.TrimSpace(value)
		case "/proc/self/limits":
			for _, name := range []string{"Max cpu time", "Max file size", "Max open files"} {
				if rest, ok := strings.CutPrefix(line, name+" "); ok {
					soft, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
					if n, err := strconv.ParseInt(soft, 10, 64); err == nil { // else unlimited
						f.limits[name] = n
					}
				}
			}
		case "/proc/self/mountinfo":
			left, right, ok := strings.Cut(line, " - ")
			l, r := strings.Fields(left), strings.Fields(right)
			if ok && len(l) > 5 && len(r) > 2 {
				f.mounts[l[4]] = [2]string{r[0], "," + l[5] + "," + r[2] + ","}
			}
		case "/proc/net/dev":
			if name, _, ok := strings.Cut(line, ":"); ok {
				f.devices = append(f.devices, strings.TrimSpace(name))
			}
		case "/proc/net/route":
			if words[0] != "Iface" {
				f.routes = append(f.routes, words[0])
			}
		case "/proc/net/ipv6_route":
			f.routes = append(f.routes, words[len(words)-1])
		case "/proc/version":
			f.version = line
		case "groups":
			if len(words) > 1 {
				if n, err := strconv.ParseFloat(words[1], 64); err == nil && n >= 0 { // else the value is max
					if words[0] == "cpu.cfs_quota_us" {
						n /= 100_000 // engines set this period
					} else if period, err := strconv.ParseFloat(words[len(words)-1], 64); words[0] == "cpu.max" && err == nil {
						n /= period
					}
					f.groups[words[0]] = append(f.groups[words[0]], n)
				}
			}
		default:
			f.host = line
		}
	}
	f.net = dev && route
	return f
}

// inactiveDevices are the network devices that the kernel creates in every
// network namespace.
var inactiveDevices = []string{"lo", "tunl0", "gre0", "gretap0", "erspan0", "ip_vti0", "ip6_vti0", "sit0", "ip6tnl0", "ip6gre0"}

// networkAccess describes the network that the container can use besides
// loopback, or returns "".
func (f *facts) networkAccess() string {
	for _, d := range f.devices {
		if !slices.Contains(inactiveDevices, d) {
			return "the interface " + d
		}
	}
	for _, d := range f.routes {
		if d != "lo" {
			return "a route by " + d
		}
	}
	return ""
}

// minLimit returns the lowest control group limit in the given files.
func (f *facts) minLimit(files ...string) float64 {
	least := math.Inf(1)
	for _, file := range files {
		for _, n := range f.groups[file] {
			least = min(least, n)
		}
	}
	return least
}

// hasOwnKernel reports whether the container runs on a different kernel than
// this machine.
func (f *facts) hasOwnKernel() bool {
	b, _ := os.ReadFile("/proc/version")
	return f.version != "" && f.version != strings.TrimSpace(string(b))
}

// faults returns the reasons why the container does not isolate code.
func (b *Backend) faults(f *facts, spec *sandbox.Spec) []string {
	var out []string
	virtual := b.isVirtual(f)
	if b.Tier() == sandbox.Virtual && !virtual {
		out = append(out, "the runtime "+b.opts.Runtime+" is not active: the container runs on the kernel of this machine")
	}
	if f.status["Seccomp"] != "2" && !virtual {
		out = append(out, "seccomp filter is not active")
	}
	for _, set := range []string{"CapEff", "CapPrm", "CapAmb"} {
		have, reported := f.status[set]
		if !reported && set == "CapAmb" && virtual { // some kernels do not report it
			continue
		}
		if !reported || strings.Trim(have, "0") != "" {
			out = append(out, "remaining capabilities: "+set+" "+have)
			break
		}
	}
	if have, reported := f.status["NoNewPrivs"]; have != "1" && (reported || !virtual) {
		out = append(out, "setuid programs can gain privileges")
	}
	if have := f.networkAccess(); !spec.Network.Host && have != "" {
		out = append(out, "network access: "+have)
	} else if !spec.Network.Host && !f.net {
		out = append(out, "the network cannot be inspected")
	}
	if started := startTime(f.host); started != "" && started == startTime(readOwnStat()) {
		out = append(out, "host processes are visible")
	}
	return out
}

// isVirtual reports whether the container runtime provides its own kernel.
func (b *Backend) isVirtual(f *facts) bool {
	return b.opts.Runtime != "" && b.opts.Runtime != "runc" && b.opts.Runtime != "crun" && f.hasOwnKernel()
}

func readOwnStat() string {
	b, _ := os.ReadFile("/proc/self/stat")
	return string(b)
}

// startTime returns the start time in the content of a process's stat file.
func startTime(stat string) string {
	_, start := procstat.Parse(stat)
	return start
}

// enforcedLayers returns, for each limit and layer, the mechanism observed to enforce
// it.
func (b *Backend) enforcedLayers(e *engine, f *facts, spec *sandbox.Spec) map[string]string {
	l := prepare.Limits(spec)
	seen := func(is bool, by string) string {
		if !is {
			return ""
		}
		return by
	}
	limit := func(name string, most int64) bool {
		n, ok := f.limits[name]
		return ok && n <= most
	}
	sized := func(option string) bool {
		for _, dir := range []string{mountpoint.Work, mountpoint.Tmp, "/dev/shm"} {
			if m := f.mounts[dir]; m[0] != "tmpfs" || !strings.Contains(m[1], ","+option+"=") {
				return option == "nr_inodes" && dir == "/dev/shm" && m[0] == "tmpfs" // engines cannot set this option for /dev/shm
			}
		}
		return true
	}
	syscalls := e.kind + "'s seccomp profile"
	if f.status["Seccomp"] != "2" {
		syscalls = seen(b.isVirtual(f), b.opts.Runtime)
	}
	return map[string]string{
		"filesystem":        seen(strings.HasPrefix(f.mounts["/"][1], ",ro,"), e.kind+": read-only root"),
		"processes_visible": "process namespace", "syscalls": syscalls, "privileges": "no capabilities, no new privileges",
		"network": seen(!spec.Network.Host, "network namespace"), "kill": e.kind,
		"memory":     seen(f.minLimit("memory.max", "memory.limit_in_bytes") <= float64(memoryLimit(l)), "control group"),
		"processes":  seen(f.minLimit("pids.max") <= float64(l.Processes+idleProcesses), "control group"),
		"cores":      seen(f.minLimit("cpu.max", "cpu.cfs_quota_us") <= l.Cores*1.01, "control group"),
		"cpu":        seen(limit("Max cpu time", int64((l.CPU+time.Second-1)/time.Second)), "RLIMIT_CPU"),
		"file_size":  seen(limit("Max file size", l.FileSize), "RLIMIT_FSIZE"),
		"open_files": seen(limit("Max open files", int64(l.OpenFiles)), "RLIMIT_NOFILE"),
		"disk":       seen(sized("size"), "sized tmpfs"), "inodes": seen(e.kind == "docker" && sized("nr_inodes"), "sized tmpfs"), "wall": "timer",
	}
}
