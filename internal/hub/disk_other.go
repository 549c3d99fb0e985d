//go:build !linux && !darwin

package hub

// diskFree reports that the free space is unknown on this system.
func diskFree(string) (free uint64, known bool) { return 0, false }
