//go:build linux || darwin

package hub

import "golang.org/x/sys/unix"

// diskFree returns the free bytes on the disk of a directory, if the system
// reports them.
func diskFree(dir string) (free uint64, known bool) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, false
	}
	return st.Bavail * uint64(st.Bsize), true
}
