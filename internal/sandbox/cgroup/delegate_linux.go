package cgroup

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/loadout-dev/loadout/internal/kernelfile"
	"github.com/loadout-dev/loadout/internal/procstat"
)

// leafName is the name of the child group to which the processes of a delegated
// group are moved. The children of a group can have controllers only if the
// group itself contains no processes.
const leafName = prefix + "self"

// delegatedGroup returns the delegated group. own is the group of this process.
// If an earlier call of [enableControllers] moved the process, the delegated
// group is the parent of own; otherwise, it is own.
func delegatedGroup(own string) string {
	if filepath.Base(own) == leafName {
		return filepath.Dir(own)
	}
	return own
}

// enableControllers enables the named controllers for the children of a version
// 2 group. It skips controllers that the group does not have. The kernel
// refuses to enable controllers while processes are in the group. If the group
// was delegated, enableControllers then moves them to a child.
func enableControllers(dir string, names []string) error {
	err := writeControllers(dir, names)
	if !errors.Is(err, syscall.EBUSY) || !isDelegated(dir) {
		return err
	}
	if err := moveToLeaf(dir); err != nil {
		return err
	}
	return writeControllers(dir, names)
}

func writeControllers(dir string, names []string) error {
	have, err := kernelfile.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return err
	}
	enabled, err := kernelfile.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
	if err != nil {
		return err
	}
	for _, c := range names {
		if slices.Contains(strings.Fields(string(have)), c) && !slices.Contains(strings.Fields(string(enabled)), c) {
			err = errors.Join(err, writeValue(dir, "cgroup.subtree_control", "+"+c))
		}
	}
	return err
}

// isDelegated reports whether programs may create groups in a group: systemd
// marked it as delegated or, without systemd, only this process and its
// descendants are in it.
func isDelegated(dir string) bool {
	for _, name := range []string{"user.delegate", "trusted.delegate"} {
		value := make([]byte, 8)
		if n, err := unix.Getxattr(dir, name, value); err == nil && string(value[:n]) == "1" {
			return true
		}
	}
	if _, err := os.Stat("/run/systemd/system"); err == nil {
		return false
	}
	pids, err := processesIn(dir)
	return err == nil && !slices.ContainsFunc(pids, func(pid int) bool { return !isOurs(pid) })
}

// isOurs reports whether a process is this process or one of its descendants,
// or has exited.
func isOurs(pid int) bool {
	for pid > 1 && pid != os.Getpid() {
		b, err := kernelfile.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil {
			return true
		}
		f := procstat.Fields(string(b)) // state, parent
		if len(f) < 2 {
			return false
		}
		if pid, err = strconv.Atoi(f[1]); err != nil {
			return false
		}
	}
	return pid == os.Getpid()
}

// moveToLeaf moves all processes in a group to a child.
func moveToLeaf(dir string) error {
	leaf := filepath.Join(dir, leafName)
	if err := os.Mkdir(leaf, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	for range 10 { // processes may start others meanwhile
		pids, err := processesIn(dir)
		if err != nil || len(pids) == 0 {
			return err
		}
		for _, pid := range pids {
			if err := writeValue(leaf, "cgroup.procs", strconv.Itoa(pid)); err != nil && !errors.Is(err, syscall.ESRCH) {
				return err
			}
		}
	}
	return syscall.EBUSY
}

func processesIn(dir string) ([]int, error) {
	b, err := kernelfile.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return nil, err
	}
	var pids []int
	for word := range strings.FieldsSeq(string(b)) {
		pid, err := strconv.Atoi(word)
		if err != nil {
			return nil, err
		}
		pids = append(pids, pid)
	}
	return pids, nil
}
