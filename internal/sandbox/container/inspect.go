package container

import (
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/sandbox"
)

// look unpacks files and tells what the container is like from inside, for
// [read]. The number of a process of the host is its argument. It uses what the
// shell has itself. Of control groups all above count, as a limit may be at any.
const look = `tar -x -f - -C / || exit
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

// facts are what a container is like from inside.
type facts struct {
	status  map[string]string    // of a command
	limits  map[string]int64     // of a command, by name
	groups  map[string][]float64 // limits of control groups, by file
	mounts  map[string][2]string // type and options, by path
	devices []string             // of the network
	routes  []string             // devices that there are routes for
	net     bool                 // the two before are known
	version string               // of the kernel
	host    string               // what there is about a process with a number of one of the host's
}

// read reads what look has told.
func read(said string) *facts {
	f := &facts{status: map[string]string{}, limits: map[string]int64{}, groups: map[string][]float64{}, mounts: map[string][2]string{}}
	file, dev, route := "", false, false
	for line := range strings.Lines(said) {
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
					if n, err := strconv.ParseInt(soft, 10, 64); err == nil { // or unlimited
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
				if n, err := strconv.ParseFloat(words[1], 64); err == nil && n >= 0 { // or max
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

// asleep are devices that the kernel itself puts into each network namespace.
var asleep = []string{"lo", "tunl0", "gre0", "gretap0", "erspan0", "ip_vti0", "ip6_vti0", "sit0", "ip6tnl0", "ip6gre0"}

// network says what network there is besides the loopback interface, "" if none.
func (f *facts) network() string {
	for _, d := range f.devices {
		if !slices.Contains(asleep, d) {
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

// least is the lowest of the limits in control groups.
func (f *facts) least(files ...string) float64 {
	least := math.Inf(1)
	for _, file := range files {
		for _, n := range f.groups[file] {
			least = min(least, n)
		}
	}
	return least
}

// own reports whether the container has a kernel that is not this machine's.
func (f *facts) own() bool {
	b, _ := os.ReadFile("/proc/version")
	return f.version != "" && f.version != strings.TrimSpace(string(b))
}

// faults are why the container does not isolate.
func (b *Backend) faults(f *facts, spec *sandbox.Spec) []string {
	var out []string
	virtual := b.virtual(f)
	if b.Tier() == sandbox.Virtual && !virtual {
		out = append(out, "the runtime "+b.opts.Runtime+" is not in use: its kernel is this machine's")
	}
	if f.status["Seccomp"] != "2" && !virtual {
		out = append(out, "no seccomp filter is in force")
	}
	for _, set := range []string{"CapEff", "CapPrm", "CapAmb"} {
		have, told := f.status[set]
		if !told && set == "CapAmb" && virtual { // some kernels have none
			continue
		}
		if !told || strings.Trim(have, "0") != "" {
			out = append(out, "capabilities are left: "+set+" "+have)
			break
		}
	}
	if have, told := f.status["NoNewPrivs"]; have != "1" && (told || !virtual) {
		out = append(out, "privileges can be had by programs that give them")
	}
	if have := f.network(); spec.Network.Mode != sandbox.HostNetwork && have != "" {
		out = append(out, "there is a network: "+have)
	} else if spec.Network.Mode != sandbox.HostNetwork && !f.net {
		out = append(out, "what network there is cannot be seen")
	}
	if started := startOf(f.host); started != "" && started == startOf(self()) {
		out = append(out, "processes of the host can be seen")
	}
	return out
}

// virtual reports whether a runtime is in use that has a kernel of its own.
func (b *Backend) virtual(f *facts) bool {
	return b.opts.Runtime != "" && b.opts.Runtime != "runc" && b.opts.Runtime != "crun" && f.own()
}

func self() string {
	b, _ := os.ReadFile("/proc/self/stat")
	return string(b)
}

// startOf is when a process started, by its stat.
func startOf(stat string) string {
	_, rest, _ := strings.Cut(stat, ") ")
	if f := strings.Fields(rest); len(f) > 19 {
		return f[19]
	}
	return ""
}

// enforced tells each limit and layer with what enforces it, as it was seen.
func (b *Backend) enforced(e *engine, f *facts, spec *sandbox.Spec) map[string]string {
	l := spec.Limits.WithDefaults()
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
		for _, dir := range []string{sandbox.WorkDir, sandbox.TmpDir, "/dev/shm"} {
			if m := f.mounts[dir]; m[0] != "tmpfs" || !strings.Contains(m[1], ","+option+"=") {
				return option == "nr_inodes" && dir == "/dev/shm" && m[0] == "tmpfs" // which cannot be asked for
			}
		}
		return true
	}
	syscalls := e.kind + "'s seccomp profile"
	if f.status["Seccomp"] != "2" {
		syscalls = seen(b.virtual(f), b.opts.Runtime)
	}
	return map[string]string{
		"filesystem":        seen(strings.HasPrefix(f.mounts["/"][1], ",ro,"), e.kind+": read-only root"),
		"processes_visible": "process namespace", "syscalls": syscalls, "privileges": "no capabilities, no new privileges",
		"network": seen(spec.Network.Mode != sandbox.HostNetwork, "network namespace"), "kill": e.kind,
		"memory":     seen(f.least("memory.max", "memory.limit_in_bytes") <= float64(memory(l)), "control group"),
		"processes":  seen(f.least("pids.max") <= float64(l.Processes+idleProcesses), "control group"),
		"cores":      seen(f.least("cpu.max", "cpu.cfs_quota_us") <= l.Cores*1.01, "control group"),
		"cpu":        seen(limit("Max cpu time", int64((l.CPU+time.Second-1)/time.Second)), "RLIMIT_CPU"),
		"file_size":  seen(limit("Max file size", l.FileSize), "RLIMIT_FSIZE"),
		"open_files": seen(limit("Max open files", int64(l.OpenFiles)), "RLIMIT_NOFILE"),
		"disk":       seen(sized("size"), "sized tmpfs"), "inodes": seen(e.kind == "docker" && sized("nr_inodes"), "sized tmpfs"), "wall": "timer",
	}
}
