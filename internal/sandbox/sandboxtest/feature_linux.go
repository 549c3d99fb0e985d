package sandboxtest

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/seccomp"
)

// Kernel features that [RunWithout] disables.
const (
	UserNamespaces = "user namespaces"
	Seccomp        = "seccomp"
	Landlock       = "Landlock"
)

// withoutVariable is the environment variable that names the feature disabled
// in a test process.
const withoutVariable = "LOADOUT_TEST_WITHOUT"

// RunWithout runs the calling test again in a process without a kernel feature,
// fails the test if it failed there, and returns false. In that process it
// returns true:
//
//	if !sandboxtest.RunWithout(t, sandboxtest.Landlock) {
//		return
//	}
func RunWithout(t *testing.T, feature string) bool {
	t.Helper()
	if os.Getenv(withoutVariable) == feature {
		if err := disableFeature(feature); err != nil {
			t.Fatalf("disable %s: %v", feature, err)
		}
		return true
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+strings.ReplaceAll(t.Name(), "/", "$/^")+"$", "-test.v")
	cmd.Env = append(os.Environ(), withoutVariable+"="+feature)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if !strings.Contains(string(out), "--- PASS: "+strings.Split(t.Name(), "/")[0]) {
		t.Errorf("the test did not run:\n%s", out)
	}
	return false
}

// disableFeature makes a feature's system calls fail, as in a kernel without
// the feature or without permission to use it.
func disableFeature(feature string) error {
	rules, errno := seccomp.NewSyscallRules(), unix.ENOSYS
	switch feature {
	case UserNamespaces:
		errno = unix.EPERM
		for _, nr := range []uintptr{unix.SYS_CLONE, unix.SYS_UNSHARE} {
			rules.Set(nr, seccomp.PerArg{seccomp.MaskedEqual(unix.CLONE_NEWUSER, unix.CLONE_NEWUSER)})
		}
		rules.Set(unix.SYS_CLONE3, seccomp.MatchAll{})
	case Seccomp:
		errno = unix.EINVAL
		rules.Set(unix.SYS_SECCOMP, seccomp.MatchAll{})
	case Landlock:
		rules.Set(unix.SYS_LANDLOCK_CREATE_RULESET, seccomp.MatchAll{})
	}
	p := seccomp.Program{
		RuleSets: []seccomp.RuleSet{{Rules: rules, Action: seccomp.ReturnError.Code(uint16(errno))}},
		Options:  seccomp.ProgramOptions{DefaultAction: seccomp.Allow, BadArchAction: seccomp.KillProcess},
	}
	insns, _, err := p.Build()
	if err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	return seccomp.SetFilter(insns)
}
