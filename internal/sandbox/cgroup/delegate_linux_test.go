package cgroup

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// unifiedMount returns the mount point of version 2, whose root has a
// controller for the test, and the controller.
func unifiedMount(t *testing.T) (dir, controller string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can delegate a group")
	}
	b, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(b)) {
		before, after, _ := strings.Cut(line, " - ")
		if f := strings.Fields(before); strings.HasPrefix(after, "cgroup2 ") && len(f) > 4 {
			dir = f[4]
		}
	}
	have, _ := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	names := strings.Fields(string(have))
	if dir == "" || len(names) == 0 {
		t.Skip("no control groups of version 2 with controllers")
	}
	return dir, names[0]
}

// delegate creates a group for a user with a child of this process in it, as
// systemd-run -p Delegate=yes does.
func delegate(t *testing.T, uid int, mark bool) (dir, controller string) {
	t.Helper()
	mount, controller := unifiedMount(t)
	if err := writeControllers(mount, []string{controller}); err != nil {
		t.Skip("no controllers for groups: ", err)
	}
	dir = filepath.Join(mount, "loadout-test-"+strconv.Itoa(os.Getpid())+"-"+strings.ReplaceAll(t.Name(), "/", "-"))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skip("no groups: ", err)
	}
	t.Cleanup(func() {
		for _, d := range []string{filepath.Join(dir, leafName), filepath.Join(dir, "other"), dir} {
			syscall.Rmdir(d)
		}
	})
	for _, name := range []string{"", "cgroup.procs", "cgroup.subtree_control"} {
		if err := os.Chown(filepath.Join(dir, name), uid, uid); err != nil {
			t.Fatal(err)
		}
	}
	if mark {
		if err := unix.Setxattr(dir, "user.delegate", []byte("1"), 0); err != nil {
			t.Skip("the kernel cannot mark groups: ", err)
		}
	}
	return dir, controller
}

const helperVariable = "LOADOUT_TEST_GROUP"

// runInGroup runs this test again as a user in a group.
func runInGroup(t *testing.T, uid int, dir, controller string) {
	t.Helper()
	exe := filepath.Join(t.TempDir(), "test")
	for d := filepath.Dir(exe); d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		os.Chmod(d, 0o755)
	}
	b, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(exe, b, 0o755); err != nil {
		t.Fatal(err)
	}
	group, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer group.Close()
	cmd := exec.Command(exe, "-test.run=^TestInGroup$", "-test.v")
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), helperVariable+"="+dir+":"+controller)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}, UseCgroupFD: true, CgroupFD: int(group.Fd())}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestInGroup") {
		t.Errorf("in the group: %v\n%s", err, out)
	}
}

// A user's process in a delegated group moves itself to a child, so that its
// sandboxes get controllers.
func TestDelegatedGroup(t *testing.T) {
	const uid = 60597
	dir, controller := delegate(t, uid, true)
	runInGroup(t, uid, dir, controller)
}

// TestInGroup runs in the process that [TestDelegatedGroup] starts.
func TestInGroup(t *testing.T) {
	dir, controller, ok := strings.Cut(os.Getenv(helperVariable), ":")
	if !ok {
		t.Skip("see TestDelegatedGroup")
	}
	if err := writeControllers(dir, []string{controller}); err == nil {
		t.Error("the group has processes and controllers")
	}
	if err := enableControllers(dir, []string{controller, "unknown"}); err != nil {
		t.Fatal(err)
	}
	leaf := filepath.Join(dir, leafName)
	if pids, err := processesIn(leaf); err != nil || !slices.Contains(pids, os.Getpid()) {
		t.Errorf("%v in the leaf, %v", pids, err)
	}
	other := filepath.Join(dir, "other")
	if err := os.Mkdir(other, 0o755); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(other, "cgroup.controllers")); !strings.Contains(string(b), controller) {
		t.Errorf("controllers %q, %v", b, err)
	}
	sleep := exec.Command("sleep", "60")
	if err := sleep.Start(); err != nil {
		t.Fatal(err)
	}
	g := &Group{dirs: map[string]string{"memory": other}, unified: true}
	if err := g.Attach(sleep.Process.Pid); err != nil {
		t.Error(err)
	}
	if pids, _ := processesIn(other); !slices.Contains(pids, sleep.Process.Pid) {
		t.Errorf("%v in the group of the sandbox", pids)
	}
	sleep.Process.Kill()
	sleep.Wait()
	if got := delegatedGroup(leaf); got != dir {
		t.Errorf("from the leaf: %s, want %s", got, dir)
	}
}

// The processes of others stay where they are.
func TestGroupOfOthersIsNotDelegated(t *testing.T) {
	dir, _ := delegate(t, 0, false)
	if isDelegated(dir) != !systemdRuns() {
		t.Error("an empty group")
	}
	sleep := exec.Command("setsid", "--fork", "sleep", "60") // its parent becomes another process
	group, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer group.Close()
	sleep.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(group.Fd())}
	if err := sleep.Run(); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		pids, _ := processesIn(dir)
		for _, pid := range pids {
			syscall.Kill(pid, syscall.SIGKILL)
		}
		for pids, _ := processesIn(dir); len(pids) > 0; pids, _ = processesIn(dir) {
		}
	})
	if isDelegated(dir) {
		t.Error("a group with a process of another program")
	}
}

func systemdRuns() bool {
	_, err := os.Stat("/run/systemd/system")
	return err == nil
}
