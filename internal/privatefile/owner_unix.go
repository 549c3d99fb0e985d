//go:build unix

package privatefile

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// unsafeReason returns the reason why other users could have written the file,
// or "" if they could not.
func unsafeReason(info fs.FileInfo) string {
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Geteuid() {
		return "owned by another user"
	}
	if m := info.Mode().Perm(); m&0o022 != 0 {
		return fmt.Sprintf("writable by others (mode %04o)", m)
	}
	return ""
}

// SyncDir syncs the entries of a directory.
func SyncDir(root *os.Root) error {
	d, err := root.Open(".")
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
