//go:build unix

package spawn_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/loadout-dev/loadout/internal/limittest"
	"github.com/loadout-dev/loadout/internal/spawn"
	"github.com/loadout-dev/loadout/internal/upstream"
)

// childVariable selects the program that the test binary acts as.
const childVariable = "LOADOUT_TEST_SPAWN"

func TestMain(m *testing.M) {
	switch os.Getenv(childVariable) {
	case "parent":
		parent()
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		fmt.Println(os.Getpid())
		time.Sleep(time.Hour) // without cgo, the runtime would end a select{} as a deadlock
	}
	goleak.VerifyTestMain(m)
}

// family is a shell with children in its group, one of which waits independently of us.
// It prints all their PIDs.
const family = `sleep 1000 & a=$!; sh -c 'trap "" TERM; sleep 1000' & b=$!; echo "$$ $a $b"; cat >/dev/null`

// parent is a program that starts servers, prints their numbers, and is killed.
func parent() {
	s := spawn.New(nil)
	for range 3 {
		p, err := s.Start(context.Background(), &upstream.Config{Name: "family", Command: "sh", Args: []string{"-c", family}})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		line, _ := bufio.NewReader(p).ReadString('\n')
		fmt.Print(line)
	}
	select {}
}

func start(t *testing.T, s *spawn.Spawner, c *upstream.Config) upstream.Process {
	t.Helper()
	p, err := s.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func numbers(t *testing.T, line string) []int {
	t.Helper()
	var all []int
	for _, f := range strings.Fields(line) {
		n, err := strconv.Atoi(f)
		if err != nil {
			t.Fatalf("not a number: %q", line)
		}
		all = append(all, n)
	}
	return all
}

// gone waits until none of the processes runs. It polls, because the end of a process
// that is not a child causes no notification.
func gone(t *testing.T, pids []int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		left := slices.DeleteFunc(slices.Clone(pids), func(pid int) bool { return !runs(pid) })
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d processes are left: %v", len(left), len(pids), left)
		}
	}
}

// runs says whether a process is there, and more than an entry for its parent.
func runs(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return !os.IsNotExist(err) || !isDir("/proc/self")
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}

func isDir(p string) bool {
	i, err := os.Stat(p)
	return err == nil && i.IsDir()
}

func TestL8NoProcessesLeftAfterCycles(t *testing.T) {
	s := spawn.New(&spawn.Options{Grace: 50 * time.Millisecond})
	var pids []int
	for i := range 100 {
		p, err := s.Start(t.Context(), &upstream.Config{Name: "family", Command: "sh", Args: []string{"-c", family}})
		if err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(p).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		members := numbers(t, line)
		pids = append(pids, members...)
		if i%2 == 1 { // it dies by itself
			syscall.Kill(members[0], syscall.SIGKILL)
			io.Copy(io.Discard, p)
		}
		p.Close()
	}
	gone(t, pids)
}

func TestL8NoProcessesLeftAfterKill(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for range 10 {
		cmd := exec.Command(exe)
		cmd.Env = append(os.Environ(), childVariable+"=parent")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		r := bufio.NewReader(out)
		for range 3 {
			line, err := r.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, numbers(t, line)...)
		}
		cmd.Process.Kill()
		cmd.Wait()
	}
	gone(t, pids)
}

func TestStopLadder(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := spawn.New(&spawn.Options{Grace: 50 * time.Millisecond})
	for _, tt := range []struct {
		name string
		c    *upstream.Config
		want string
	}{
		{"ends with its input", &upstream.Config{Command: "sh", Args: []string{"-c", "echo $$; cat; exit 5"}}, "ended: exit status 5"},
		{"ends at the signal", &upstream.Config{Command: "sh", Args: []string{"-c", "trap 'exit 6' TERM; echo $$; while :; do sleep 0.01; done"}}, "ended: exit status 6"},
		{"is killed", &upstream.Config{Command: exe, Env: map[string]string{childVariable: "stubborn"}}, "ended: signal: killed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := start(t, s, tt.c)
			line, _ := bufio.NewReader(p).ReadString('\n')
			p.Close()
			p.Close()
			gone(t, numbers(t, line))
			if got := p.(interface{ Exited() string }).Exited(); got != tt.want {
				t.Errorf("it %s, want %s", got, tt.want)
			}
			if _, err := p.Write([]byte("x")); err == nil {
				t.Error("written to a process that has ended")
			}
		})
	}
}

func TestEnvironment(t *testing.T) {
	s := spawn.New(&spawn.Options{Environ: []string{
		"PATH=" + os.Getenv("PATH"), "HOME=/home/of/us", "LC_ALL=C", "XDG_DATA_HOME=/data", "ANTHROPIC_API_KEY=sk-1", "LD_PRELOAD=x", "TERM=dumb",
	}})
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := start(t, s, &upstream.Config{Command: "sh", Args: []string{"-c", "env; pwd"}, Dir: dir, Env: map[string]string{"TERM": "own", "TOKEN": "given"}})
	out, err := io.ReadAll(p)
	if err != nil {
		t.Fatal(err)
	}
	got := string(out)
	for _, want := range []string{"HOME=/home/of/us\n", "LC_ALL=C\n", "XDG_DATA_HOME=/data\n", "TERM=own\n", "TOKEN=given\n", dir + "\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %q", want, got)
		}
	}
	for _, bad := range []string{"sk-1", "LD_PRELOAD"} {
		if strings.Contains(got, bad) {
			t.Errorf("%q reached the process", bad)
		}
	}
}

func TestStderrKeepsTheLastLines(t *testing.T) {
	s := spawn.New(nil)
	p := start(t, s, &upstream.Config{Command: "sh", Args: []string{"-c", `i=0; while [ $i -lt 3000 ]; do echo "a line of standard error, number $i" >&2; i=$((i+1)); done; echo last >&2`}})
	io.Copy(io.Discard, p)
	p.Close()
	got := p.Stderr()
	if len(got) != 64<<10 || !strings.HasSuffix(got, "number 2999\nlast\n") {
		t.Errorf("%d bytes that end in %q", len(got), got[max(0, len(got)-30):])
	}
}

func TestStartFails(t *testing.T) {
	s := spawn.New(nil)
	dir := t.TempDir()
	for _, tt := range []struct {
		c    upstream.Config
		want string
	}{
		{upstream.Config{Command: "no-such-command-of-ours"}, "install it"},
		{upstream.Config{Command: "./absent", Dir: dir}, `command "./absent" not found`},
		{upstream.Config{Command: "sh", Dir: filepath.Join(dir, "absent")}, "is not a directory"},
	} {
		if _, err := s.Start(t.Context(), &tt.c); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error = %v, want %q in it", tt.c.Command, err, tt.want)
		}
	}
}

// openFiles returns the number of open files of this process.
func openFiles(t *testing.T) int {
	t.Helper()
	files, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Skip(err)
	}
	return len(files)
}

// A start that fails leaves no open files.
func TestStartWithinLimits(t *testing.T) {
	s := spawn.New(nil)
	before := openFiles(t)
	unchanged := func(err error) {
		t.Helper()
		if n := openFiles(t); n != before {
			t.Errorf("%d open files after %v, before %d", n, err, before)
		}
	}
	var p upstream.Process
	limittest.EachOpen(t, func() (err error) {
		p, err = s.Start(t.Context(), &upstream.Config{Command: "cat"})
		return err
	}, unchanged)
	p.Close()
	unchanged(nil)
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("no program"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := s.Start(t.Context(), &upstream.Config{Command: script})
	if err == nil || err.Error() != fmt.Sprintf("start command %q: exec format error", script) {
		t.Errorf("a file that is no program: %v", err)
	}
	unchanged(err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Start(ctx, &upstream.Config{Command: "cat"}); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v", err)
	}
	if _, err := s.Start(t.Context(), &upstream.Config{Command: "/no/such/command"}); err == nil || err.Error() != `command "/no/such/command" not found: `+syscall.ENOENT.Error() {
		t.Errorf("a missing path: %v", err)
	}
}

type exited interface{ Exited() string }

func TestExited(t *testing.T) {
	s := spawn.New(&spawn.Options{Grace: time.Hour})
	for command, want := range map[string]string{"exit 0": "ended (status 0)", "exit 3": "ended: exit status 3", "kill -9 $$": "ended: signal: killed"} {
		p := start(t, s, &upstream.Config{Command: "sh", Args: []string{"-c", "read x; " + command}})
		if got := p.(exited).Exited(); got != "" {
			t.Errorf("while it runs: %q", got)
		}
		p.Close()
		if got := p.(exited).Exited(); got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
		if _, err := p.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("%s: a closed process reads %v", command, err)
		}
	}
}
