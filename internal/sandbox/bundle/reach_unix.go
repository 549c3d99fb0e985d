//go:build unix

package bundle

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Reachable returns an error if the user uid, without any groups, cannot access
// path or could replace it.
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
			return fmt.Errorf("%s is owned by user %d, who could change the file permissions", dir, uid)
		case fi.Mode()&0o001 == 0:
			return fmt.Errorf("%s is not accessible to other users", dir)
		case fi.Mode()&0o002 != 0 && fi.Mode()&os.ModeSticky == 0:
			return fmt.Errorf("%s is writable by everyone", dir)
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}

// Searchable returns an error if the user uid, without any groups, cannot
// access path.
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
			return fmt.Errorf("no permission to search directory %s", dir)
		}
	}
	return nil
}
