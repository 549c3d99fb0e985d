// Package cgroup limits the memory, processes and CPU share of a sandbox with
// control groups. It requires permission to create control groups: root, or a
// delegated subtree, such as one made by systemd-run -p Delegate=yes. It supports versions 1 and 2. Sandboxes also work without
// control groups.
package cgroup

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/loadout-dev/loadout/internal/kernelfile"
)

// Limits holds the resource limits to set on a group.
type Limits struct {
	Memory    int64 // bytes
	Processes int
	Cores     float64
}

// Group is a set of control groups, one per hierarchy. The caller must call
// Remove when done.
type Group struct {
	dirs    map[string]string // directories by controller; "" is version 2
	unified bool
	oom     int
}

const prefix = "loadout-"

var (
	swept      sync.Once
	groupPaths = sync.OnceValue(func() map[string]string { return findGroups("/proc/self/mountinfo", "/proc/self/cgroup") })
)

// controllers lists the version 1 controllers in use.
var controllers = []string{"memory", "pids", "cpu"}

// New creates a group. If control groups are unavailable, the error says why.
func New(l Limits) (*Group, error) {
	return newGroup(groupPaths(), l)
}

func newGroup(at map[string]string, l Limits) (*Group, error) {
	swept.Do(func() { sweep(at) })
	g := &Group{dirs: map[string]string{}}
	// Another PID namespace may have a process with the same ID.
	name := fmt.Sprintf("%s%d-%s", prefix, os.Getpid(), rand.Text())
	var reason error = errors.New("no control groups found")
	for _, c := range controllers {
		if at[c] == "" {
			continue
		}
		dir := filepath.Join(at[c], name)
		if reason = os.Mkdir(dir, 0o755); reason != nil {
			continue
		}
		g.dirs[c] = dir
		if err := g.setLimits(c, dir, l); err != nil {
			g.Remove()
			return nil, err
		}
	}
	if len(g.dirs) == 0 && at[""] != "" {
		reason = g.makeUnified(filepath.Join(delegatedGroup(at[""]), name), l)
	}
	if len(g.dirs) == 0 {
		return nil, reason
	}
	g.oom = g.countOOMKills()
	return g, nil
}

// SetLimits changes the limits of the group.
func (g *Group) SetLimits(l Limits) error {
	if g.unified {
		dir := g.distinctDirs()[0]
		return g.setUnified(dir, g.Controllers(), l)
	}
	for _, c := range g.Controllers() {
		if err := g.setLimits(c, g.dirs[c], l); err != nil {
			return err
		}
	}
	return nil
}

// setLimits sets the limits of a version 1 controller.
func (g *Group) setLimits(controller, dir string, l Limits) error {
	switch controller {
	case "memory":
		return setMemory(dir, strconv.FormatInt(l.Memory, 10))
	case "pids":
		return writeValue(dir, "pids.max", strconv.Itoa(l.Processes))
	}
	if err := writeValue(dir, "cpu.cfs_period_us", "100000"); err != nil {
		return err
	}
	return writeValue(dir, "cpu.cfs_quota_us", strconv.Itoa(int(l.Cores*100000)))
}

// setMemory sets the memory limit of a version 1 group. The limit includes swap
// if the kernel accounts for swap. The limit without swap must never exceed the
// other one, so a higher limit is set in the opposite order.
func setMemory(dir, limit string) error {
	err := writeValue(dir, "memory.limit_in_bytes", limit)
	raised := errors.Is(err, syscall.EINVAL)
	if err != nil && !raised {
		return err
	}
	if err := writeValue(dir, "memory.memsw.limit_in_bytes", limit); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if raised {
		return writeValue(dir, "memory.limit_in_bytes", limit)
	}
	return nil
}

// makeUnified creates a version 2 group with the available controllers.
func (g *Group) makeUnified(dir string, l Limits) error {
	enableControllers(filepath.Dir(dir), controllers) // errors are ignored, because the controllers of the group are checked below
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	have, err := kernelfile.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err == nil {
		err = g.setUnified(dir, strings.Fields(string(have)), l)
	}
	if err == nil && len(g.dirs) == 0 {
		err = errors.New("no control group controller is delegated")
	}
	if err != nil {
		os.Remove(dir)
		clear(g.dirs)
		return err
	}
	g.unified = true
	return nil
}

// setUnified sets the limits of the named controllers of a version 2 group, and
// records them as the controllers of g.
func (g *Group) setUnified(dir string, names []string, l Limits) error {
	for c, v := range map[string][2]string{
		"memory": {"memory.max", strconv.FormatInt(l.Memory, 10)},
		"pids":   {"pids.max", strconv.Itoa(l.Processes)},
		"cpu":    {"cpu.max", strconv.Itoa(int(l.Cores*100000)) + " 100000"},
	} {
		if !slices.Contains(names, c) {
			continue
		}
		if err := writeValue(dir, v[0], v[1]); err != nil {
			return err
		}
		g.dirs[c] = dir
	}
	if slices.Contains(names, "memory") {
		writeValue(dir, "memory.swap.max", "0") // not supported everywhere
	}
	return nil
}

// Open opens the directory of a version 2 group, so that a process can start in
// the group.
func (g *Group) Open() (*os.File, error) {
	if !g.unified {
		return nil, errors.ErrUnsupported
	}
	return os.Open(g.distinctDirs()[0])
}

func writeValue(dir, file, value string) error {
	return kernelfile.WriteFile(filepath.Join(dir, file), value)
}

// Controllers returns which of the memory, pids and cpu controllers the group
// has.
func (g *Group) Controllers() []string {
	var out []string
	for _, c := range controllers {
		if g.dirs[c] != "" {
			out = append(out, c)
		}
	}
	return out
}

// Attach adds a process to the group. Children that the process starts later
// also join the group.
func (g *Group) Attach(pid int) error {
	for _, dir := range g.distinctDirs() {
		if err := writeValue(dir, "cgroup.procs", strconv.Itoa(pid)); err != nil {
			return fmt.Errorf("attach to control group: %w", err)
		}
	}
	return nil
}

func (g *Group) distinctDirs() []string {
	var out []string
	for _, c := range controllers {
		if d := g.dirs[c]; d != "" && !slices.Contains(out, d) {
			out = append(out, d)
		}
	}
	return out
}

// OOM reports whether the kernel killed a process in the group because it was
// out of memory.
func (g *Group) OOM() bool { return g.countOOMKills() > g.oom }

func (g *Group) countOOMKills() int {
	file := "memory.oom_control"
	if g.unified {
		file = "memory.events"
	}
	b, err := kernelfile.ReadFile(filepath.Join(g.dirs["memory"], file))
	if g.dirs["memory"] == "" || err != nil {
		return 0
	}
	for line := range bytes.Lines(b) {
		if rest, ok := bytes.CutPrefix(line, []byte("oom_kill ")); ok {
			n, _ := strconv.Atoi(string(bytes.TrimSpace(rest)))
			return n
		}
	}
	return 0
}

// Remove removes the control groups. All processes in them must have exited.
func (g *Group) Remove() {
	for _, dir := range g.distinctDirs() {
		// The kernel may need a moment to release processes that have exited.
		for wait := time.Millisecond; wait < time.Second; wait *= 2 {
			if err := syscall.Rmdir(dir); err != syscall.EBUSY {
				break
			}
			time.Sleep(wait)
		}
	}
}

// sweepAge is the minimum age of a group to sweep. A younger one may belong to
// a program in another PID namespace, and be empty because its process has not
// joined it yet. The kernel may set the time of a group again, so that it is
// removed later.
const sweepAge = time.Minute

// sweep removes groups left behind by programs that were killed.
func sweep(at map[string]string) {
	for version, dir := range at {
		if version == "" {
			dir = delegatedGroup(dir)
		}
		left, _ := filepath.Glob(filepath.Join(dir, prefix+"*-*"))
		for _, d := range left {
			owner, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(d), prefix), "-")
			pid, err := strconv.Atoi(owner)
			info, statErr := os.Lstat(d)
			if statErr != nil || time.Since(info.ModTime()) < sweepAge {
				continue
			}
			if err == nil && pid > 0 && (syscall.Kill(pid, 0) == syscall.ESRCH || pid == os.Getpid()) {
				syscall.Rmdir(d) // fails if the group still has processes
			}
		}
	}
}

// findGroups returns the paths of this process's control groups by controller,
// with "" for version 2.
func findGroups(mountinfo, cgroup string) map[string]string {
	out := map[string]string{}
	own := map[string]string{}
	eachLine(cgroup, func(line string) {
		if f := strings.SplitN(line, ":", 3); len(f) == 3 {
			for c := range strings.SplitSeq(f[1], ",") {
				own[c] = f[2]
			}
		}
	})
	eachLine(mountinfo, func(line string) {
		before, after, ok := strings.Cut(line, " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if !ok || len(left) < 5 || len(right) < 3 {
			return
		}
		switch right[0] {
		case "cgroup2":
			if p, ok := own[""]; ok {
				out[""] = groupPath(left[4], left[3], p)
			}
		case "cgroup":
			for o := range strings.SplitSeq(right[2], ",") {
				if p, ok := own[o]; ok && slices.Contains(controllers, o) {
					out[o] = groupPath(left[4], left[3], p)
				}
			}
		}
	})
	return out
}

// Parents returns the directories in which [New] creates groups, in a fixed
// order. mountinfo and cgroup are these files of the process in /proc.
func Parents(mountinfo, cgroup string) []string {
	at := findGroups(mountinfo, cgroup)
	var out []string
	for _, c := range append([]string{""}, controllers...) {
		dir := at[c]
		if c == "" && dir != "" {
			dir = delegatedGroup(dir)
		}
		if dir != "" && !slices.Contains(out, dir) {
			out = append(out, dir)
		}
	}
	return out
}

// groupPath returns the directory of a group. The file system mounted at mount
// contains the part of the hierarchy below root.
func groupPath(mount, root, group string) string {
	if rest, ok := strings.CutPrefix(group, root); ok && root != "/" {
		group = rest
	}
	return filepath.Join(mount, group)
}

func eachLine(file string, do func(string)) {
	b, err := kernelfile.ReadFile(file)
	if err != nil {
		return
	}
	for line := range strings.Lines(string(b)) {
		do(strings.TrimSuffix(line, "\n"))
	}
}
