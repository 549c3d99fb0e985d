//go:build unix

package presence

import (
	"os"

	"golang.org/x/sys/unix"
)

// OpenTerminal opens the controlling terminal, whatever standard input and
// output are. in and out may be the same file; the caller must close both.
func OpenTerminal() (in, out *os.File, err error) {
	f, err := os.OpenFile("/dev/tty", os.O_RDWR|unix.O_NOCTTY, 0)
	return f, f, err
}

// controllingTerminal returns the name of the controlling terminal, or
// "/dev/tty" if the system does not show the name.
func controllingTerminal() string {
	f, _, err := OpenTerminal()
	if err != nil {
		return ""
	}
	f.Close()
	if name := terminalName(); name != "" {
		return name
	}
	return "/dev/tty"
}
