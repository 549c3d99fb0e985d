//go:build unix

package bundle

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Reachable says why another user, who is in no group, cannot reach path, or
// could put something else there. It is nil if all is well.
func Reachable(path string, uid int) error {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	if fi, err := os.Stat(path); err == nil && !fi.IsDir() {
		path = filepath.Dir(path)
	}
	for dir := path; ; dir = filepath.Dir(dir) {
		fi, err := os.Lstat(dir)
		if err != nil {
			return err
		}
		st, ok := fi.Sys().(*syscall.Stat_t)
		switch {
		case !ok || int(st.Uid) == uid:
			return fmt.Errorf("%s belongs to user %d", dir, uid)
		case fi.Mode()&0o001 == 0:
			return fmt.Errorf("%s is closed to others", dir)
		case fi.Mode()&0o002 != 0 && fi.Mode()&os.ModeSticky == 0:
			return fmt.Errorf("%s can be changed by everyone", dir)
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}

// Searchable says why another user, who is in no group, cannot get to path. It is
// nil if all is well.
func Searchable(path string, uid int) error {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	for dir := path; dir != filepath.Dir(dir); {
		dir = filepath.Dir(dir)
		fi, err := os.Stat(dir)
		if err != nil {
			return err
		}
		bit := os.FileMode(0o001)
		if st, ok := fi.Sys().(*syscall.Stat_t); ok && int(st.Uid) == uid {
			bit = 0o100
		}
		if fi.Mode()&bit == 0 {
			return fmt.Errorf("%s is closed to it", dir)
		}
	}
	return nil
}
