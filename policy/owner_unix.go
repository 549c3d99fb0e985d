//go:build unix

package policy

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// exposed says how others could have written what info is of, "" where they
// could not.
func exposed(info fs.FileInfo) string {
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Geteuid() {
		return "it belongs to another user"
	}
	if m := info.Mode().Perm(); m&0o022 != 0 {
		return fmt.Sprintf("others can write it (mode %04o)", m)
	}
	return ""
}

// syncDir makes names that were added or removed last.
func syncDir(root *os.Root) error {
	d, err := root.Open(".")
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
