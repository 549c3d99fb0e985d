package presence

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
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

func TestParseStat(t *testing.T) {
	for stat, want := range map[string]Process{
		"7 (sh) S 5 7 7 0": {Name: "sh", Parent: 5},
		"7 (sh) S 5":       {Name: "sh", Parent: 5},
		"(a) (b)) S 1":     {Name: "a) (b)", Parent: 1},
		"7 () S 5":         {Name: "", Parent: 5},
		"":                 {}, "7 sh S 5": {}, ") S 5": {}, "7 )( S 5": {}, "7 (sh S 5": {}, "7 (sh)": {}, "7 (sh) S": {}, "7 (sh) S x": {},
	} {
		got, ok := parseStat([]byte(stat))
		if ok != (want.Parent != 0) || ok && (got.Name != want.Name || got.Parent != want.Parent) {
			t.Errorf("parseStat(%q) = %+v, %t", stat, got, ok)
		}
	}
}

// A process that has exited has no arguments until its parent waits for it.
func TestExitedProcessHasNoArguments(t *testing.T) {
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Skip(err)
	}
	defer cmd.Wait()
	in.Close()
	out.Read(make([]byte, 1))
	for {
		b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(cmd.Process.Pid), "cmdline"))
		if err != nil {
			t.Fatal(err)
		}
		if len(b) == 0 {
			break
		}
		runtime.Gosched()
	}
	if p, ok := lookupProcess(cmd.Process.Pid); !ok || p.Args != nil || p.Parent != os.Getpid() {
		t.Errorf("got %+v, %t", p, ok)
	}
}
