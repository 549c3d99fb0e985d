package main

import "golang.org/x/sys/unix"

// int80 makes a system call with the 32-bit ABI.
func int80(nr, a, b, c uint32) (r int32)

// foreignABI makes system calls that a filter misinterprets if it does not
// check the ABI.
func foreignABI(t *tally) {
	const x32 = 0x40000000
	fd, _, e := unix.RawSyscall(x32|unix.SYS_SOCKET, unix.AF_NETLINK, unix.SOCK_RAW, 0)
	t.tryFD("x32 socket", fd, e)
	const socket32 = 359
	if r := int80(socket32, unix.AF_NETLINK, unix.SOCK_RAW, 0); r >= 0 {
		t.tryFD("i386 socket", uintptr(r), 0)
	} else {
		t.try("i386 socket", unix.Errno(-r))
	}
}
