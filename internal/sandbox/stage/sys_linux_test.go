package stage

import (
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// A package that was initialised before the stage may have opened a file.
func TestGoRuntimeKeepsItsPoller(t *testing.T) {
	const child = "LOADOUT_TEST_CLOSE_INHERITED"
	if os.Getenv(child) == "" {
		inherited, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		defer inherited.Close()
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), child+"=1")
		cmd.ExtraFiles = []*os.File{inherited, inherited, inherited} // 3, 4 and 5
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %.300s", err, out)
		}
		return
	}
	f, err := os.Open(os.Args[0]) // the runtime makes its epoll instance
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(io.Discard, f, 1); err != nil {
		t.Fatal(err)
	}
	closeInherited()
	for _, fd := range []int{4, 5, int(f.Fd())} {
		var st syscall.Stat_t
		if err := syscall.Fstat(fd, &st); err != syscall.EBADF {
			t.Errorf("%d is open: %v", fd, err)
		}
	}
	for range 20 { // the runtime polls when it has not for ten milliseconds
		time.Sleep(2 * time.Millisecond)
		for start := time.Now(); time.Since(start) < 10*time.Millisecond; {
			runtime.Gosched()
		}
	}
	os.Exit(0) // without descriptors that the test's flags closed
}
