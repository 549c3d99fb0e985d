//go:build unix && !linux && !darwin

package direct

// rssUnit is the unit of Rusage.Maxrss in bytes.
const rssUnit = 1024
