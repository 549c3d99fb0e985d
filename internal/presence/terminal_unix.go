//go:build unix

package presence

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// OpenTerminal opens the controlling terminal, regardless of standard input and
// output. It returns an error if the program runs in the background, because
// the system would stop the program as soon as it reads. in and out may be the
// same file; the caller must close both.
func OpenTerminal() (in, out *os.File, err error) {
	f, err := openTerminal()
	if err != nil {
		return nil, nil, err
	}
	if group, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP); err == nil && group != unix.Getpgrp() {
		f.Close()
		return nil, nil, errors.New("the program is running in the background")
	}
	return f, f, nil
}

func openTerminal() (*os.File, error) {
	return os.OpenFile("/dev/tty", os.O_RDWR|unix.O_NOCTTY, 0)
}

// controllingTerminal returns the name of the controlling terminal, or
// "/dev/tty" if the system does not show the name.
func controllingTerminal() string {
	f, err := openTerminal()
	if err != nil {
		return ""
	}
	f.Close()
	if name := terminalName(); name != "" {
		return name
	}
	return "/dev/tty"
}
