//go:build linux

package sandboxtest

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// hosts are the attacks on other processes and on the kernel.
func hosts() []attack {
	view, filter := []string{"processes_visible", "syscalls"}, []string{"syscalls"}
	return []attack{
		{"D01", "signal the hub", view, nil, signals("D01", "usr1")},
		{"D02", "kill(-1)", view, nil, signals("D02", "winch")},
		{"D03", "ptrace the hub", view, []need{needOpenProc}, toldOf("D03")},
		{"D04", "the hub's memory", view, []need{needOpenProc}, func(x *trial) bool {
			res, _ := x.attack("D04", x.pid(), x.victim.Addr, strconv.Itoa(x.victim.Len))
			return x.leaked(res, "memory")
		}},
		{"D05", "pidfd_getfd of the hub's files", view, []need{needOpenProc}, func(x *trial) bool {
			res, _ := x.attack("D05", x.pid(), strconv.Itoa(x.victim.FD))
			return x.leaked(res, "config")
		}},
		{"D06", "prlimit on the hub", view, nil, changesVictim("D06", func(pid int) string {
			var l unix.Rlimit
			unix.Prlimit(pid, unix.RLIMIT_MSGQUEUE, nil, &l)
			return fmt.Sprint(l.Cur)
		})},
		{"D07", "a setuid program gains rights", []string{"privileges"}, []need{needSetuid}, func(x *trial) bool { return told("D07", x.setuid)(x) }},
		{"D08", "mount", []string{"privileges", "syscalls"}, nil, told("D08")},
		{"D09", "new user namespace", filter, []need{needFeature("userns")}, told("D09")},
		{"D10", "chroot", []string{"privileges", "syscalls"}, nil, told("D10")},
		{"D11", "bpf, perf_event_open, userfaultfd", filter, []need{needFeature("surface")}, told("D11")},
		{"D12", "type into the terminal (TIOCSTI)", []string{"terminal", "syscalls"}, []need{needTTY, needTIOCSTI}, types},
		{"D13", "open /dev/tty", []string{"terminal", "filesystem"}, []need{needTTY}, told("D13")},
		{"D14", "setns into the hub's namespaces", view, nil, toldOf("D14")},
		{"D15", "renice the hub", view, nil, changesVictim("D15", func(pid int) string {
			n, _ := unix.Getpriority(unix.PRIO_PROCESS, pid)
			return fmt.Sprint(n)
		})},
		{"D16", "pin the hub to one processor", view, []need{needCores}, changesVictim("D16", func(pid int) string {
			var set unix.CPUSet
			unix.SchedGetaffinity(pid, &set)
			return fmt.Sprint(set.Count())
		})},
		{"D17", "i386 and x32 system calls", filter, []need{needFeature("abi")}, told("D17")},
		{"D18", "write /proc/sys, sysrq-trigger, oom_score_adj", []string{"filesystem"}, nil, toldOf("D18")},
	}
}

// toldOf is [told] for attacks that take the victim's pid.
func toldOf(id string) func(*trial) bool {
	return func(x *trial) bool { return told(id, x.pid())(x) }
}

func signals(id, counter string) func(*trial) bool {
	return func(x *trial) bool {
		before := x.victim.counts(x.t)
		_, sent := x.attack(id, x.pid())
		return x.victim.grew(x.t, before, sent, counter)
	}
}

// changesVictim is an attack that the host decides by what is true of the
// victim before and after.
func changesVictim(id string, of func(pid int) string) func(*trial) bool {
	return func(x *trial) bool {
		before := of(x.victim.PID)
		x.attack(id, x.pid())
		after := of(x.victim.PID)
		if before != after {
			x.note(before + " became " + after)
		}
		return before != after
	}
}

func needSetuid(s *scene) string {
	if s.setuid == "" {
		return "no setuid program that works: run as root with AsUser"
	}
	return ""
}

func needCores(*scene) string {
	if cores() < 2 {
		return "one processor only"
	}
	return ""
}

func needTTY(*scene) string {
	f, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return "the test has no terminal: " + err.Error() + " (see InTerminal)"
	}
	f.Close()
	return ""
}

func needTIOCSTI(*scene) string {
	b, err := os.ReadFile("/proc/sys/dev/tty/legacy_tiocsti")
	if err == nil && len(b) > 0 && b[0] == '0' {
		return "the kernel refuses TIOCSTI to all (legacy_tiocsti 0)"
	}
	return ""
}

// types is decided by what waits to be read from the test's own terminal.
func types(x *trial) bool {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	must(x.t, err)
	defer tty.Close()
	waiting := func() int {
		n, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCINQ)
		if err != nil {
			x.t.Errorf("terminal: %v", err)
		}
		return n
	}
	before := waiting()
	x.attack("D12")
	if waiting() == before {
		return false
	}
	unix.IoctlSetInt(int(tty.Fd()), unix.TCFLSH, unix.TCIFLUSH)
	return true
}
