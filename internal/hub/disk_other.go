//go:build !linux && !darwin

package hub

// diskFree is not implemented for this system.
func diskFree(string) (free uint64, known bool) { return 0, false }
