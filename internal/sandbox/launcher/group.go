//go:build linux

package launcher

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/loadout-dev/loadout/internal/kernelfile"
	"github.com/loadout-dev/loadout/internal/sandbox/cgroup"
	"github.com/loadout-dev/loadout/sandbox"
)

// Group creates control groups for the sandbox and adds them to the
// configuration. It returns nil if control groups are unavailable;
// [AddEnforced] then reports what is not enforced. files is the size of the
// in-memory file systems, which count as memory. The caller must remove the
// group in OnClose.
func (c *Config) Group(l sandbox.Limits, files int64) *cgroup.Group {
	g, err := cgroup.New(groupLimits(l, files))
	if err != nil {
		return nil
	}
	c.CloneInto, c.Attach = g.Open, g.Attach
	if c.Graceful {
		c.Attach = func(pid int) error { return attachTree(g, pid) }
	}
	c.explainEnd(g, l)
	return g
}

// Regroup sets the limits of the control group that c.Stage is in, and adds the
// group to the configuration. The arguments are those of [Config.Group].
func (c *Config) Regroup(g *cgroup.Group, l sandbox.Limits, files int64) error {
	c.explainEnd(g, l)
	return g.SetLimits(groupLimits(l, files))
}

func groupLimits(l sandbox.Limits, files int64) cgroup.Limits {
	return cgroup.Limits{Memory: l.Memory + files, Processes: l.Processes + SpareThreads, Cores: l.Cores}
}

// explainEnd makes the sandbox report that the group was out of memory.
func (c *Config) explainEnd(g *cgroup.Group, l sandbox.Limits) {
	c.EndReason = func() (sandbox.Reason, string) {
		if g.OOM() {
			return sandbox.OOM, "memory limit exceeded (" + strconv.FormatInt(l.Memory>>20, 10) + " MiB)"
		}
		return "", ""
	}
}

// attachTree attaches a process and its children to a group, because a guard
// may already have started the stage. No command is sent to the stage before it
// is attached. Children started later join the group automatically.
func attachTree(g *cgroup.Group, pid int) error {
	if err := g.Attach(pid); err != nil {
		return err
	}
	threads, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
	if err == nil && len(threads) == 0 {
		err = errors.New("kernel does not support listing child processes")
		if syscall.Kill(pid, 0) == syscall.ESRCH {
			err = nil // the process has exited; the reason is reported elsewhere
		}
	}
	if err != nil {
		return fmt.Errorf("attach to control group: %w", err)
	}
	for _, t := range threads {
		b, _ := kernelfile.ReadFile(t) // when a thread exits, its children move to another thread
		for word := range strings.FieldsSeq(string(b)) {
			child, err := strconv.Atoi(word)
			if err == nil {
				err = attachTree(g, child)
			}
			if err != nil && !errors.Is(err, syscall.ESRCH) {
				return err
			}
		}
	}
	return nil
}

// MemoryWatch describes how a stage limits memory without a control group, and
// what it does not limit.
const MemoryWatch = "RLIMIT_DATA, seccomp, check every 2 to 50 ms" + memoryGap

const memoryGap = " of pages, page tables and sockets, not of small kernel objects, with bursts of several processes until the next check"

// AddEnforced adds to e the limits that control groups enforce.
func AddEnforced(e map[string]string, g *cgroup.Group) {
	if g == nil {
		return
	}
	have := g.Controllers()
	for controller, limit := range map[string]string{"memory": "memory", "pids": "processes"} {
		if slices.Contains(have, controller) {
			e[limit] = strings.TrimSuffix("control group, "+strings.TrimSuffix(e[limit], memoryGap), ", ")
		}
	}
	if slices.Contains(have, "cpu") {
		e["cores"] = "control group"
	}
}
