//go:build unix && !linux && !darwin

package plain

// rssUnit is the unit of the memory in what a process has used.
const rssUnit = 1024
