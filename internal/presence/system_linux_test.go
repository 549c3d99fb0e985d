package presence

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// The process table of the system shows names with any character, arguments, and
// the program, even after it was deleted.
func TestLookupOfPrograms(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Skip(err)
	}
	program, err := os.ReadFile(sleep)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "a) b (c")
	if err := os.WriteFile(path, program, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "3600")
	if err := cmd.Start(); err != nil {
		t.Skip(err) // files there cannot be run
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	p, ok := lookupProcess(cmd.Process.Pid)
	if !ok || p.PID != cmd.Process.Pid || p.Parent != os.Getpid() || p.Name != "a) b (c" || p.Path != path || !slices.Equal(p.Args, []string{path, "3600"}) {
		t.Errorf("got %+v, %t", p, ok)
	}
	if got := Callers(cmd.Process.Pid, nil); len(got) == 0 || got[0] != os.Getpid() {
		t.Errorf("callers %v, want this process first", got)
	}
	c := Detect(Options{Self: cmd.Process.Pid, Clients: []int{os.Getpid()}})
	if c.Agent != "an MCP client" {
		t.Errorf("a program started by this client has the caller %+v", c)
	}
}

func TestDeviceName(t *testing.T) {
	for device, want := range map[uint64]string{
		0: "", 136 << 8: "/dev/pts/0", 136<<8 | 7: "/dev/pts/7", 143<<8 | 1: "/dev/pts/7340033", 144 << 8: "", 135 << 8: "",
		136<<8 | 1<<20: "/dev/pts/256", // the minor is split
		4<<8 | 1:       "/dev/tty1", 4<<8 | 63: "/dev/tty63", 4<<8 | 64: "/dev/ttyS0", 5 << 8: "", 3 << 8: "",
	} {
		if got := deviceName(device); got != want {
			t.Errorf("deviceName(%#x) = %q, want %q", device, got, want)
		}
	}
}
