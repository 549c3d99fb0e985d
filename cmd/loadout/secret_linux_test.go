package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/loadout-dev/loadout/internal/exit"
)

func TestSecretInputIsNotEchoed(t *testing.T) {
	for _, keys := range []string{"s3cr3t\r", "s3c\x03"} {
		c := openConsole(t, 80, nil, "secret", "set", "API_KEY")
		c.await(t, "Value of API_KEY (hidden): ")
		awaitEcho(t, c, false)
		c.types(t, keys)
		<-c.ended
		awaitEcho(t, c, true)
		if strings.Contains(c.output(), "s3c") {
			t.Errorf("it shows:\n%s", c.output())
		}
		b, err := os.ReadFile(filepath.Join(c.Dir, ".local", "state", "loadout", "secrets"))
		if typed := strings.HasSuffix(keys, "\r"); typed != strings.Contains(string(b), `"s3cr3t"`) || typed != (err == nil) {
			t.Errorf("after %q there is %s %v", keys, b, err)
		}
		if want := map[bool]int{true: exit.OK, false: exit.Interrupted}[strings.HasSuffix(keys, "\r")]; c.ProcessState.ExitCode() != want {
			t.Errorf("after %q the exit code is %d, want %d", keys, c.ProcessState.ExitCode(), want)
		}
	}
}

// awaitEcho waits until the terminal's echo is on or off.
func awaitEcho(t *testing.T, c *terminalUser, want bool) {
	t.Helper()
	for range 3000 {
		conn, err := c.master.SyscallConn() // Fd would make it block
		if err != nil {
			t.Fatal(err)
		}
		var state *unix.Termios
		var failed error
		if err := conn.Control(func(fd uintptr) { state, failed = unix.IoctlGetTermios(int(fd), unix.TCGETS) }); err != nil || failed != nil {
			t.Fatal(err, failed)
		}
		if state.Lflag&unix.ECHO != 0 == want {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("the echo is not %v", want)
}
