package cgroup

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// write creates files in a directory that stands for a control group.
func write(t *testing.T, dir string, files map[string]string) string {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestGroup(t *testing.T) {
	g, err := New(Limits{Memory: 64 << 20, Processes: 20, Cores: 1.5})
	if err != nil {
		t.Skip("no control groups: ", err)
	}
	defer g.Remove()
	read := func(controller string, files ...string) string {
		for _, name := range files {
			if b, err := os.ReadFile(filepath.Join(g.dirs[controller], name)); err == nil {
				return strings.TrimSpace(string(b))
			}
		}
		return "missing"
	}
	want := map[string][2][]string{ // files and values of versions 1 and 2
		"memory": {{"memory.limit_in_bytes", "memory.max"}, {"67108864"}},
		"pids":   {{"pids.max"}, {"20"}},
		"cpu":    {{"cpu.cfs_quota_us", "cpu.max"}, {"150000", "150000 100000"}},
	}
	wantLimits := func() {
		t.Helper()
		for _, c := range g.Controllers() {
			if got := read(c, want[c][0]...); !slices.Contains(want[c][1], got) {
				t.Errorf("limit of %s is %q", c, got)
			}
		}
	}
	wantLimits()
	for _, mib := range []int64{128, 32, 64} { // up and down
		if err := g.SetLimits(Limits{Memory: mib << 20, Processes: int(mib), Cores: float64(mib) / 64}); err != nil {
			t.Fatal(err)
		}
		want["memory"] = [2][]string{want["memory"][0], {strconv.FormatInt(mib<<20, 10)}}
		want["pids"] = [2][]string{want["pids"][0], {strconv.FormatInt(mib, 10)}}
		quota := strconv.FormatInt(mib*100000/64, 10)
		want["cpu"] = [2][]string{want["cpu"][0], {quota, quota + " 100000"}}
		wantLimits()
	}
	if dir, err := g.Open(); (err == nil) != g.unified {
		t.Errorf("open the group: %v, %v", dir, err)
	} else if err == nil {
		dir.Close()
	}
	if len(g.Controllers()) == 0 || g.OOM() {
		t.Errorf("controllers %v, out of memory %t", g.Controllers(), g.OOM())
	}
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := g.Attach(cmd.Process.Pid); err != nil {
		t.Error(err)
	}
	for _, dir := range g.distinctDirs() {
		if pids, err := processesIn(dir); !slices.Equal(pids, []int{cmd.Process.Pid}) {
			t.Errorf("processes %v in %s, %v", pids, dir, err)
		}
	}
	cmd.Process.Kill()
	cmd.Wait()
	g.Remove()
	for _, dir := range g.distinctDirs() {
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("left %s: %v", dir, err)
		}
	}
	if err := g.Attach(os.Getpid()); err == nil {
		t.Error("attached to a removed group")
	}
}

// The groups of a process with the same ID, in another PID namespace or before a
// restart, do not prevent new ones.
func TestGroupNamesAreUnique(t *testing.T) {
	g, err := New(Limits{Memory: 64 << 20, Processes: 20, Cores: 1})
	if err != nil {
		t.Skip("no control groups: ", err)
	}
	defer g.Remove()
	own := prefix + strconv.Itoa(os.Getpid()) + "-"
	for _, dir := range g.distinctDirs() {
		if !strings.HasPrefix(filepath.Base(dir), own) {
			t.Errorf("the group %s does not name its process", dir)
		}
		for i := range 100 {
			other := filepath.Join(filepath.Dir(dir), own+strconv.Itoa(i))
			if err := os.Mkdir(other, 0o755); err == nil {
				defer syscall.Rmdir(other)
			}
		}
	}
	second, err := New(Limits{Memory: 64 << 20, Processes: 20, Cores: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer second.Remove()
	if !slices.Equal(second.Controllers(), g.Controllers()) {
		t.Errorf("the second group has %v, the first %v", second.Controllers(), g.Controllers())
	}
}

// A command that uses more memory than its group may have is killed, and the group
// reports it.
func TestOutOfMemory(t *testing.T) {
	g, err := New(Limits{Memory: 8 << 20, Processes: 20, Cores: 1})
	if err != nil || !slices.Contains(g.Controllers(), "memory") {
		t.Skip("no control group for memory: ", err)
	}
	defer g.Remove()
	cmd := exec.Command("sh", "-c", "read go; head -c 64M /dev/zero | tail -c 64M >/dev/null; echo done")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := g.Attach(cmd.Process.Pid); err != nil {
		t.Error(err)
	}
	in.Write([]byte("\n"))
	in.Close()
	cmd.Wait()
	if !g.OOM() {
		t.Error("the kernel killed no process of the group")
	}
}

func TestOOMKillsAreCounted(t *testing.T) {
	for name, tt := range map[string]struct {
		unified bool
		files   map[string]string
		want    int
	}{
		"version 1":     {false, map[string]string{"memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n", "memory.events": "oom_kill 9\n"}, 3},
		"version 2":     {true, map[string]string{"memory.events": "oom 7\noom_kill 2\noom_group_kill 8\n", "memory.oom_control": "oom_kill 9\n"}, 2},
		"not supported": {false, map[string]string{"memory.oom_control": "under_oom 1\n"}, 0},
		"no file":       {true, nil, 0},
	} {
		g := &Group{dirs: map[string]string{"memory": write(t, t.TempDir(), tt.files)}, unified: tt.unified}
		if got := g.countOOMKills(); got != tt.want || g.OOM() != (got > 0) {
			t.Errorf("%s: %d, out of memory %t", name, got, g.OOM())
		}
		if g.oom = tt.want; g.OOM() {
			t.Errorf("%s: kills before the sandbox count", name)
		}
	}
	t.Chdir(write(t, t.TempDir(), map[string]string{"memory.oom_control": "oom_kill 3\n"}))
	if g := (&Group{dirs: map[string]string{"pids": "."}}); g.OOM() {
		t.Error("a group without memory has a file of the current directory")
	}
}

// A group that cannot be limited is an error, and nothing of it is left.
func TestNoGroup(t *testing.T) {
	memory, unified := t.TempDir(), write(t, t.TempDir(), map[string]string{"cgroup.controllers": "", "cgroup.subtree_control": ""})
	for name, at := range map[string]map[string]string{
		"none":                     {},
		"files are missing":        {"memory": memory},
		"the process limit fails":  {"pids": memory},
		"the CPU limit fails":      {"cpu": memory},
		"the directory is missing": {"memory": filepath.Join(memory, "none")},
		"no controllers":           {"": unified},
		"no version 2":             {"": filepath.Join(unified, "none")},
	} {
		if g, err := newGroup(at, Limits{Memory: 1 << 30, Processes: 1, Cores: 1}); g != nil || err == nil {
			t.Errorf("%s: %+v, %v", name, g, err)
		}
	}
	for _, dir := range []string{memory, unified} {
		if left, _ := filepath.Glob(filepath.Join(dir, prefix+"*")); len(left) > 0 {
			t.Errorf("left %v", left)
		}
	}
}

// Only the groups of programs that have ended are removed.
func TestSweep(t *testing.T) {
	dir, unified := t.TempDir(), t.TempDir()
	cmd := exec.Command("true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	ended, own := strconv.Itoa(cmd.Process.Pid), strconv.Itoa(os.Getpid())
	names := map[string]bool{ // whether they stay
		prefix + ended + "-1": false, prefix + own + "-1": false, prefix + strconv.Itoa(os.Getppid()) + "-1": true,
		prefix + "x-1": true, prefix + "0-1": true, prefix + "1-1": true, prefix + "-1": true, leafName: true, "other-" + ended + "-1": true, prefix + ended + "-2": true,
	}
	for _, d := range []string{dir, unified} {
		for name := range names {
			write(t, filepath.Join(d, name), nil)
		}
		write(t, filepath.Join(d, prefix+ended+"-2"), map[string]string{"busy": ""})
		for name := range names {
			if err := os.Chtimes(filepath.Join(d, name), time.Time{}, time.Now().Add(-2*sweepAge)); err != nil {
				t.Fatal(err)
			}
		}
		write(t, filepath.Join(d, prefix+ended+"-3"), nil) // new
	}
	names[prefix+ended+"-3"] = true
	sweep(map[string]string{"memory": dir, "": filepath.Join(unified, leafName)})
	for _, d := range []string{dir, unified} {
		for name, stays := range names {
			if _, err := os.Stat(filepath.Join(d, name)); (err == nil) != stays {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestGroupPath(t *testing.T) {
	for _, tt := range []struct{ mount, root, group, want string }{
		{"/cg", "/", "/user", "/cg/user"}, {"/cg", "/docker/1", "/docker/1/x", "/cg/x"}, {"/cg", "/docker/1", "/docker/1", "/cg"}, {"/cg", "/docker/1", "/other", "/cg/other"},
	} {
		if got := groupPath(tt.mount, tt.root, tt.group); got != tt.want {
			t.Errorf("%s of %s at %s is %s, want %s", tt.group, tt.root, tt.mount, got, tt.want)
		}
	}
}

func TestProcessesInGroup(t *testing.T) {
	dir := write(t, t.TempDir(), map[string]string{"cgroup.procs": "1\n22\n"})
	if pids, err := processesIn(dir); err != nil || !slices.Equal(pids, []int{1, 22}) {
		t.Errorf("%v, %v", pids, err)
	}
	if isDelegated(dir) {
		t.Error("a group with process 1 is delegated")
	}
	write(t, dir, map[string]string{"cgroup.procs": "1\nx\n"})
	if pids, err := processesIn(dir); err == nil {
		t.Errorf("a damaged list has %v", pids)
	}
	if pids, err := processesIn(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing group has %v, %v", pids, err)
	}
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for pid, want := range map[int]bool{os.Getpid(): true, cmd.Process.Pid: true, os.Getppid(): false, 1: false, 1 << 30: true} {
		if got := isOurs(pid); got != want {
			t.Errorf("process %d is ours: %t", pid, got)
		}
	}
	cmd.Process.Kill()
	cmd.Wait()
}

func TestControllersAreEnabled(t *testing.T) {
	dir := write(t, t.TempDir(), map[string]string{"cgroup.controllers": "cpu memory", "cgroup.subtree_control": "cpu"})
	read := func() string {
		b, _ := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
		return string(b)
	}
	if err := enableControllers(dir, []string{"cpu", "pids"}); err != nil || read() != "cpu" {
		t.Errorf("wrote %q, %v", read(), err)
	}
	if err := enableControllers(dir, []string{"memory", "cpu"}); err != nil || read() != "+memory" {
		t.Errorf("wrote %q, %v", read(), err)
	}
	for _, name := range []string{"cgroup.subtree_control", "cgroup.controllers"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		if err := enableControllers(dir, []string{"memory"}); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("without %s: %v", name, err)
		}
	}
}

func TestMoveToLeaf(t *testing.T) {
	dir := write(t, t.TempDir(), map[string]string{"cgroup.procs": ""})
	leaf := filepath.Join(dir, leafName)
	if err := moveToLeaf(dir); err != nil {
		t.Error(err)
	}
	write(t, leaf, map[string]string{"cgroup.procs": ""})
	write(t, dir, map[string]string{"cgroup.procs": "7\n"})
	if err := moveToLeaf(dir); !errors.Is(err, syscall.EBUSY) { // nothing moves files
		t.Errorf("processes that stay: %v", err)
	}
	if b, _ := os.ReadFile(leaf + "/cgroup.procs"); string(b) != "7" {
		t.Errorf("wrote %q", b)
	}
	if err := os.Remove(leaf + "/cgroup.procs"); err != nil {
		t.Fatal(err)
	}
	if err := moveToLeaf(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a leaf without processes: %v", err)
	}
	if err := moveToLeaf(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing group: %v", err)
	}
}
