//go:build !linux && !darwin

package hub

// diskFree is not known here.
func diskFree(string) (free uint64, known bool) { return 0, false }
