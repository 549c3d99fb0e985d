//go:build amd64 || arm64 || riscv64

package catalog

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// fstatat is [unix.Fstatat] for a name that ends in a NUL. It does not allocate.
func fstatat(dir int, name []byte, st *unix.Stat_t, flags int) error {
	_, _, errno := unix.Syscall6(unix.SYS_NEWFSTATAT, uintptr(dir), uintptr(unsafe.Pointer(unsafe.SliceData(name))), uintptr(unsafe.Pointer(st)), uintptr(flags), 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
