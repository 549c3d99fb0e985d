package spawn_test

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/spawn"
	"github.com/loadout-dev/loadout/internal/upstream"
)

// A line is written completely or not at all, and TryWrite does not wait for a
// process that does not read.
func TestTryWrite(t *testing.T) {
	p := start(t, spawn.New(nil), &upstream.Config{Name: "stopped", Command: "sh", Args: []string{"-c", "echo $$; kill -STOP $$; exec cat"}})
	w := p.(interface {
		TryWrite([]byte) (bool, error)
	})
	out := bufio.NewReader(p)
	first, err := out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid := numbers(t, first)[0]
	if ok, err := w.TryWrite([]byte(strings.Repeat("x", 4096) + "\n")); ok || err != nil {
		t.Errorf("a long line: got %v, %v, want false", ok, err)
	}
	line := strings.Repeat("x", 2999) + "\n"
	n := 0
	for {
		ok, err := w.TryWrite([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
		n++
	}
	if n == 0 {
		t.Fatal("nothing was written to an empty pipe")
	}
	for !isStopped(t, pid) { // SIGCONT would be lost before that
		time.Sleep(time.Millisecond)
	}
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if got, err := out.ReadString('\n'); err != nil || got != line {
			t.Fatalf("line %d of %d: got %d bytes, %v, want %d", i, n, len(got), err, len(line))
		}
	}
	if ok, err := w.TryWrite([]byte("end\n")); !ok || err != nil {
		t.Errorf("after the process read: %v, %v", ok, err)
	}
	if got, err := out.ReadString('\n'); err != nil || got != "end\n" {
		t.Errorf("got %q, %v, want only the line that was written", got, err)
	}
	p.Close()
	if ok, err := w.TryWrite([]byte("late\n")); ok || err == nil {
		t.Errorf("after Close: got %v, %v, want an error", ok, err)
	}
}

// isStopped reports whether a signal has stopped a process.
func isStopped(t *testing.T, pid int) bool {
	t.Helper()
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(rest, "T")
}
