package launcher

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"

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
