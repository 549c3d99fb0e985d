package console

import (
	"os"

	"golang.org/x/sys/unix"
)

// discardInput discards what was typed at a terminal and not yet read.
func discardInput(f *os.File) {
	_ = unix.IoctlSetInt(int(f.Fd()), unix.TCFLSH, unix.TCIFLUSH) // no terminal, nothing typed
}
