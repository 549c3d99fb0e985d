package presence

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TestMain runs TestTerminal's program in a session of its own.
func TestMain(m *testing.M) {
	switch os.Getenv("PRESENCE_TEST") {
	case "":
		os.Exit(m.Run())
	case "leader": // of the session, which leaves the foreground to itself
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "PRESENCE_TEST=background")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.Stdout = os.Stdout
		if err := cmd.Run(); err != nil {
			fmt.Println(err)
		}
		return
	}
	in, out, err := OpenTerminal()
	fmt.Printf("%q %t %v\n", Detect(Options{Self: os.Getpid()}).Terminal, in != nil && out != nil, err)
}

// A program without a controlling terminal has none, and one with a terminal
// finds it, whatever its standard streams are.
func TestTerminal(t *testing.T) {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer master.Close()
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	unlock := 0
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, master.Fd(), unix.TIOCSPTLCK, uintptr(unsafe.Pointer(&unlock))); err != nil || e != 0 {
		t.Skip(err, e)
	}
	name := fmt.Sprintf("/dev/pts/%d", n)
	terminal, err := os.OpenFile(name, os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer terminal.Close()
	run := func(mode string, attr *syscall.SysProcAttr) string {
		t.Helper()
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "PRESENCE_TEST="+mode)
		cmd.SysProcAttr, cmd.Stdin = attr, terminal
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(out))
	}
	if got, want := run("foreground", &syscall.SysProcAttr{Setsid: true, Setctty: true}), fmt.Sprintf("%q true <nil>", name); got != want {
		t.Errorf("with a terminal: %s, want %s", got, want)
	}
	if got, want := run("leader", &syscall.SysProcAttr{Setsid: true, Setctty: true}), fmt.Sprintf("%q false the program is running in the background", name); got != want {
		t.Errorf("in the background: %s, want %s", got, want)
	}
	if got := run("foreground", &syscall.SysProcAttr{Setsid: true}); !strings.HasPrefix(got, `"" false open /dev/tty: `) {
		t.Errorf("without a terminal: %s", got)
	}
}
