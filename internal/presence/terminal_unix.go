//go:build unix

package presence

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// controllingTerminal opens the controlling terminal, whatever standard input
// and output are.
func controllingTerminal() string {
	f, err := os.OpenFile("/dev/tty", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return ""
	}
	f.Close()
	for _, fd := range []string{"0", "1", "2"} { // for the name only, where the system shows it
		if name, err := os.Readlink("/proc/self/fd/" + fd); err == nil && (strings.HasPrefix(name, "/dev/pts/") || strings.HasPrefix(name, "/dev/tty")) {
			return name
		}
	}
	return "/dev/tty"
}
