//go:build linux

package staged

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/sandbox/internal/cgroup"
)

// Group adds control groups to the configuration. It returns nil where there may
// be none; what then is not enforced is told by [Enforce]. files is the size of
// the file systems in memory, which count too. The caller removes the group in
// Closed.
func (c *Config) Group(l sandbox.Limits, files int64) *cgroup.Group {
	g, err := cgroup.New(cgroup.Limits{Memory: l.Memory + files, Processes: l.Processes + SpareThreads, Cores: l.Cores})
	if err != nil {
		return nil
	}
	c.Attach = g.Attach
	if c.Graceful {
		c.Attach = func(pid int) error { return attachTree(g, pid) }
	}
	c.Lost = func() (sandbox.Reason, string) {
		if g.OOM() {
			return sandbox.OOM, "it used more than " + strconv.FormatInt(l.Memory>>20, 10) + " MiB of memory"
		}
		return "", ""
	}
	return g
}

// attachTree attaches a process and what it has started meanwhile: a guard has
// started the stage, which starts nothing before it is sealed. What a process
// starts after it was attached is in the group by itself.
func attachTree(g *cgroup.Group, pid int) error {
	if err := g.Attach(pid); err != nil {
		return err
	}
	threads, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
	if err == nil && len(threads) == 0 {
		err = errors.New("the kernel does not tell the children of a process")
		if syscall.Kill(pid, 0) == syscall.ESRCH {
			err = nil // it has ended, and says why elsewhere
		}
	}
	if err != nil {
		return fmt.Errorf("attach to control group: %w", err)
	}
	for _, t := range threads {
		b, _ := os.ReadFile(t) // of a thread that has ended meanwhile, another has the children
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

// Enforce adds to what a sandbox enforces what its control groups do.
func Enforce(e map[string]string, g *cgroup.Group) {
	if g == nil {
		return
	}
	have := g.Controllers()
	for controller, limit := range map[string]string{"memory": "memory", "pids": "processes"} {
		if slices.Contains(have, controller) {
			e[limit] = strings.TrimSuffix("control group, "+e[limit], ", ")
		}
	}
	if slices.Contains(have, "cpu") {
		e["cores"] = "control group"
	}
}
