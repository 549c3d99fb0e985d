package launcher

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/sandbox"
)

// A stage that fails is reported with what it printed first, and nothing of it is
// left.
func TestStageEndsDuringSetup(t *testing.T) {
	closed := 0
	_, err := Start(t.Context(), &sandbox.Spec{}, &Config{Backend: "test", Command: exec.Command("sh", "-c", "echo no luck >&2; exit 3"), OnClose: func() { closed++ }})
	e, ok := errors.AsType[*sandbox.UnavailableError](err)
	if !ok || e.Backend != "test" || e.Err == nil || e.Err.Error() != "no luck" {
		t.Errorf("error is %v", err)
	}
	if closed != 1 {
		t.Errorf("OnClose was called %d times", closed)
	}
}

func TestStageCannotStart(t *testing.T) {
	closed := 0
	_, err := Start(t.Context(), &sandbox.Spec{}, &Config{Backend: "test", Command: exec.Command("/does/not/exist"), OnClose: func() { closed++ }})
	if e, ok := errors.AsType[*sandbox.UnavailableError](err); !ok || !strings.Contains(e.Missing, "start") {
		t.Errorf("error is %v", err)
	}
	if closed != 1 {
		t.Errorf("OnClose was called %d times", closed)
	}
}

// A stage that does not respond is killed if the caller gives up, or if what must
// happen before the setup fails.
func TestSilentStage(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := exec.Command("sleep", "1000")
	_, err := Start(ctx, &sandbox.Spec{}, &Config{Command: c, Attach: func(int) error { cancel(); return nil }})
	if !errors.Is(err, context.Canceled) || c.ProcessState == nil {
		t.Errorf("error is %v, process state %v", err, c.ProcessState)
	}
}

func TestAttachFails(t *testing.T) {
	want := errors.New("no group")
	c := exec.Command("sh", "-c", "cat <&3 >/dev/null") // ends when the socket is closed
	_, err := Start(t.Context(), &sandbox.Spec{}, &Config{Command: c, Attach: func(pid int) error {
		if pid != c.Process.Pid {
			t.Errorf("pid is %d, want %d", pid, c.Process.Pid)
		}
		return want
	}})
	if !errors.Is(err, want) || c.ProcessState == nil {
		t.Errorf("error is %v, process state %v", err, c.ProcessState)
	}
}

// unifiedGroup returns a new control group of version 2.
func unifiedGroup(t *testing.T) string {
	t.Helper()
	b, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(b)) {
		before, after, _ := strings.Cut(line, " - ")
		if f := strings.Fields(before); strings.HasPrefix(after, "cgroup2 ") && len(f) > 4 {
			dir := filepath.Join(f[4], "loadout-test-"+strconv.Itoa(os.Getpid()))
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Skip("no groups: ", err)
			}
			t.Cleanup(func() { syscall.Rmdir(dir) })
			return dir
		}
	}
	t.Skip("no control groups of version 2")
	return ""
}

// A stage starts in its group if the kernel can do that, and is attached
// otherwise.
func TestStageStartsInGroup(t *testing.T) {
	group := unifiedGroup(t)
	for name, tt := range map[string]struct {
		open     func() (*os.File, error)
		attached int
	}{
		"version 2":   {func() (*os.File, error) { return os.Open(group) }, 0},
		"version 1":   {func() (*os.File, error) { return nil, errors.ErrUnsupported }, 1},
		"not a group": {func() (*os.File, error) { return os.Open("/") }, 1},
		"none":        {nil, 1},
	} {
		attached := 0
		p, err := Launch(&Config{Command: exec.Command("sleep", "1000"), CloneInto: tt.open, Attach: func(int) error { attached++; return nil }})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		in, err := os.ReadFile("/proc/" + strconv.Itoa(p.PID()) + "/cgroup")
		if err != nil || attached != tt.attached || strings.Contains(string(in), filepath.Base(group)) != (attached == 0) {
			t.Errorf("%s: attached %d times, in %s, %v", name, attached, in, err)
		}
		p.Close()
		if syscall.Kill(p.PID(), 0) == nil {
			t.Errorf("%s: runs after Close", name)
		}
	}
	want := errors.New("no group")
	if _, err := Launch(&Config{Command: exec.Command("sleep", "1000"), Attach: func(int) error { return want }}); !errors.Is(err, want) {
		t.Errorf("a stage that cannot be attached: %v", err)
	}
}

// The command that starts in a group has all settings of the original.
func TestCopyCommand(t *testing.T) {
	c := &exec.Cmd{
		Path: "/bin/x", Args: []string{"x", "y"}, Env: []string{"A=b"}, Dir: "/", Stdin: strings.NewReader("in"), Stdout: &strings.Builder{}, Stderr: &strings.Builder{},
		ExtraFiles: []*os.File{os.Stdin}, SysProcAttr: &syscall.SysProcAttr{Setsid: true}, WaitDelay: time.Second, Err: errors.New("not found"),
	}
	got, want := reflect.ValueOf(copyCommand(c)).Elem(), reflect.ValueOf(c).Elem()
	for i := range want.NumField() {
		switch f := want.Type().Field(i); {
		case !f.IsExported(), f.Name == "Cancel", f.Name == "Process", f.Name == "ProcessState": // only for contexts, or set by Start
		case want.Field(i).IsZero():
			t.Errorf("the test does not set %s", f.Name)
		case !reflect.DeepEqual(got.Field(i).Interface(), want.Field(i).Interface()):
			t.Errorf("%s is %v, want %v", f.Name, got.Field(i), want.Field(i))
		}
	}
}

// A process is started again without the group only if the error may be due to it.
func TestIsGroupError(t *testing.T) {
	for err, want := range map[error]bool{
		syscall.ENOSYS: true, &os.PathError{Op: "fork/exec", Err: syscall.EOPNOTSUPP}: true,
		syscall.EAGAIN: false, syscall.ENOMEM: false, syscall.ENOEXEC: false, exec.ErrNotFound: false,
	} {
		if got := isGroupError(err); got != want {
			t.Errorf("%v: %v, want %v", err, got, want)
		}
	}
}
