//go:build linux

package sandboxtest

import (
	"os"
	"strconv"
)

// reportsBreach runs an attack and reports whether the payload reported a
// breach.
func reportsBreach(id string, args ...string) func(*trial) bool {
	return func(x *trial) bool {
		_, breach := x.attack(id, args...)
		return breach
	}
}

// readAttacks returns the attacks that read protected data.
func readAttacks() []attack {
	view := []string{"filesystem", "processes_visible"}
	return []attack{
		{"A01", "read /etc/shadow", view, []need{needFile("/etc/shadow")}, reportsBreach("A01", "/etc/shadow")},
		{"A02", "read ~/.ssh/id_rsa", view, nil, func(x *trial) bool {
			res, _ := x.attack("A02", x.key)
			return x.outputHasSecret(res, "key")
		}},
		{"A03", "read the hub's configuration, other skills", view, nil, func(x *trial) bool {
			res, _ := x.attack("A03", x.config, x.other)
			return x.outputHasSecret(res, "config", "other")
		}},
		{"A04", "secrets in the inherited environment", []string{"environment"}, nil, func(x *trial) bool {
			res, _ := x.attack("A04")
			return x.outputHasSecret(res, "env")
		}},
		{"A05", "/proc/HUB/environ", view, []need{needOpenProc}, func(x *trial) bool {
			res, _ := x.attack("A05", x.pid())
			return x.outputHasSecret(res, "hubenv")
		}},
		{"A06", "list processes of the host", view, nil, func(x *trial) bool {
			res, _ := x.attack("A06")
			return x.outputHasText(res, x.victim.mark)
		}},
		{"A07", "../../.. and /proc/PID/root", view, nil, func(x *trial) bool {
			res, _ := x.attack("A07", x.key, x.pid())
			return x.outputHasSecret(res, "key")
		}},
		{"A08", "an inherited descriptor of a secret file", []string{"descriptors"}, nil, func(x *trial) bool {
			res, _ := x.attack("A08")
			return x.outputHasSecret(res, "fd")
		}},
		{"A09", "kernel log", []string{"syscalls"}, nil, reportsBreach("A09")},
		{"A10", "the hub's key in the user's keyring", []string{"syscalls"}, []need{needKeyring}, func(x *trial) bool {
			res, _ := x.attack("A10", x.victim.Key)
			return x.outputHasSecret(res, "memory")
		}},
	}
}

func (x *trial) pid() string { return strconv.Itoa(x.victim.PID) }

func needFile(path string) need {
	return func(*scene) string {
		if _, err := os.Stat(path); err != nil {
			return err.Error()
		}
		return ""
	}
}

func needKeyring(s *scene) string {
	if s.victim.Key == "" {
		return "no user keyring: " + s.victim.NoKey
	}
	return ""
}

// needOpenProc returns the reason why ptrace access is impossible on this
// machine, or "" if it is possible. On some machines, the Yama security module
// denies it to all processes, even outside a sandbox.
func needOpenProc(s *scene) string {
	b, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope")
	if err == nil && len(b) > 0 && b[0] != '0' && os.Getuid() != 0 {
		return "Yama forbids it to all processes (ptrace_scope " + string(b[:1]) + ")"
	}
	return ""
}
