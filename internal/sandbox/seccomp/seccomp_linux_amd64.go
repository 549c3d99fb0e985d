package seccomp

import "golang.org/x/sys/unix"

const arch = unix.AUDIT_ARCH_X86_64

var neverHere = []uintptr{unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT, unix.SYS_USELIB, unix.SYS_USTAT, unix.SYS_SYSFS, unix.SYS__SYSCTL, unix.SYS_CREATE_MODULE}

// foreignCalls returns instructions that reject x32 ABI calls, which have the same
// architecture but different numbers.
func foreignCalls() []instruction {
	const x32 = 0x40000000
	return []instruction{{Code: jumpAbove, Jf: 1, K: x32}, {Code: ret, K: fail(unix.EPERM)}}
}

var byNameHere = []uintptr{unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN}

var modesHere = map[uintptr]int{unix.SYS_CHMOD: 1, unix.SYS_OPEN: 2, unix.SYS_CREAT: 1, unix.SYS_MKDIR: 1, unix.SYS_MKNOD: 1}
