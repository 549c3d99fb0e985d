//go:build linux

package sandboxtest

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// hostAttacks returns the attacks on other processes and on the kernel.
func hostAttacks() []attack {
	view, filter := []string{"processes_visible", "syscalls"}, []string{"syscalls"}
	return []attack{
		{"D01", "signal the hub", view, nil, signalsVictim("D01", "usr1")},
		{"D02", "kill(-1)", view, nil, signalsVictim("D02", "winch")},
		{"D03", "ptrace the hub", view, []need{needOpenProc}, reportsVictimBreach("D03")},
		{"D04", "the hub's memory", view, []need{needOpenProc}, func(x *trial) bool {
			res, _ := x.attack("D04", x.pid(), x.victim.Addr, strconv.Itoa(x.victim.Len))
			return x.outputHasSecret(res, "memory")
		}},
		{"D05", "pidfd_getfd of the hub's files", view, []need{needOpenProc}, func(x *trial) bool {
			res, _ := x.attack("D05", x.pid(), strconv.Itoa(x.victim.FD))
			return x.outputHasSecret(res, "config")
		}},
		{"D06", "prlimit on the hub", view, nil, changesVictim("D06", func(pid int) string {
			var l unix.Rlimit
			unix.Prlimit(pid, unix.RLIMIT_MSGQUEUE, nil, &l)
			return fmt.Sprint(l.Cur)
		})},
		{"D07", "a setuid program gains privileges", []string{"privileges"}, []need{needSetuid}, func(x *trial) bool { return reportsBreach("D07", x.setuid)(x) }},
		{"D08", "mount", []string{"privileges", "syscalls"}, nil, reportsBreach("D08")},
		{"D09", "new user namespace", filter, []need{needFeature("userns")}, reportsBreach("D09")},
		{"D10", "chroot", []string{"privileges", "syscalls"}, nil, reportsBreach("D10")},
		{"D11", "bpf, perf_event_open, userfaultfd", filter, []need{needFeature("surface")}, reportsBreach("D11")},
		{"D12", "type into the terminal (TIOCSTI)", []string{"terminal", "syscalls"}, []need{needTTY, needTIOCSTI}, injectsInput},
		{"D13", "open /dev/tty", []string{"terminal", "filesystem"}, []need{needTTY}, reportsBreach("D13")},
		{"D14", "setns into the hub's namespaces", view, nil, reportsVictimBreach("D14")},
		{"D15", "renice the hub", view, nil, changesVictim("D15", func(pid int) string {
			n, _ := unix.Getpriority(unix.PRIO_PROCESS, pid)
			return fmt.Sprint(n)
		})},
		{"D16", "pin the hub to one processor", view, []need{needCores}, changesVictim("D16", func(pid int) string {
			var set unix.CPUSet
			unix.SchedGetaffinity(pid, &set)
			return fmt.Sprint(set.Count())
		})},
		{"D17", "i386 and x32 system calls", filter, []need{needFeature("abi")}, reportsBreach("D17")},
		{"D18", "write /proc/sys, sysrq-trigger, oom_score_adj", []string{"filesystem"}, nil, reportsVictimBreach("D18")},
	}
}

// reportsVictimBreach is like reportsBreach, but passes the victim's PID to the
// attack.
func reportsVictimBreach(id string) func(*trial) bool {
	return func(x *trial) bool { return reportsBreach(id, x.pid())(x) }
}

func signalsVictim(id, counter string) func(*trial) bool {
	return func(x *trial) bool {
		before := x.victim.readCounters(x.t)
		_, sent := x.attack(id, x.pid())
		return x.victim.counterGrew(x.t, before, sent, counter)
	}
}

// changesVictim runs an attack and reports whether a property of the victim
// changed.
func changesVictim(id string, property func(pid int) string) func(*trial) bool {
	return func(x *trial) bool {
		before := property(x.victim.PID)
		x.attack(id, x.pid())
		after := property(x.victim.PID)
		if before != after {
			x.note(before + " became " + after)
		}
		return before != after
	}
}

func needSetuid(s *scene) string {
	if s.setuid == "" {
		return "no working setuid program: run as root with AsUser"
	}
	return ""
}

func needCores(*scene) string {
	if cores() < 2 {
		return "only one processor"
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
		return "the kernel refuses TIOCSTI to every process (legacy_tiocsti 0)"
	}
	return ""
}

// injectsInput runs the attack and reports whether input was added to the
// test's terminal.
func injectsInput(x *trial) bool {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	requireNoError(x.t, err)
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
