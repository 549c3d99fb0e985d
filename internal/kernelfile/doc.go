// Package kernelfile reads and writes files of the Linux kernel: those in /proc
// and /sys, and those of control groups.
//
// Package os registers most of them with the network poller, because the kernel
// can report their changes. Each open file then wakes another thread, and takes
// several times as long as reading it.
package kernelfile
