//go:build unix

package operator

import (
	"fmt"
	"io/fs"
	"runtime"
	"syscall"
)

// systemDir returns the directory for machine-wide configuration.
func systemDir() string {
	if runtime.GOOS == "darwin" {
		return "/private/etc" // /etc is a symlink
	}
	return "/etc"
}

// checkedFrom returns the topmost directory to check before the configuration
// file is trusted.
func checkedFrom() string { return "/" }

// topCheckedDir returns the topmost directory to check before a directory
// of a search path is trusted.
func topCheckedDir(string) string { return "/" }

// unsafeReason returns the reason why a user other than root could have written
// the file, or "" if none could.
func unsafeReason(_ string, info fs.FileInfo) string {
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || st.Uid != 0 {
		return "not owned by root"
	}
	if m := info.Mode().Perm(); m&0o022 != 0 { // the group's bits include access control lists
		return fmt.Sprintf("writable by others (mode %04o)", m)
	}
	return ""
}

func repair(path string) string { return "chown root " + path + " && chmod go-w " + path }
