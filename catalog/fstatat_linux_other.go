//go:build linux && !amd64 && !arm64 && !riscv64

package catalog

import "golang.org/x/sys/unix"

// fstatat is [unix.Fstatat] for a name that ends in a NUL.
func fstatat(dir int, name []byte, st *unix.Stat_t, flags int) error {
	return unix.Fstatat(dir, string(name[:len(name)-1]), st, flags)
}
