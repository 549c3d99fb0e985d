package seccomp

import (
	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/abi/linux"
	"gvisor.dev/gvisor/pkg/bpf"
)

var neverHere = []uintptr{unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT, unix.SYS_USELIB, unix.SYS_USTAT, unix.SYS_SYSFS, unix.SYS__SYSCTL, unix.SYS_CREATE_MODULE}

// prologue returns instructions that reject x32 ABI calls, which have the same
// architecture but different numbers.
func prologue() []bpf.Instruction {
	const x32 = 0x40000000
	return []bpf.Instruction{
		bpf.Stmt(bpf.Ld|bpf.Abs|bpf.W, 0), // system call number
		bpf.Jump(bpf.Jmp|bpf.Jge|bpf.K, x32, 0, 1),
		bpf.Stmt(bpf.Ret|bpf.K, uint32(linux.SECCOMP_RET_ERRNO)|uint32(unix.EPERM)),
	}
}

var byNameHere = []uintptr{unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN}

var modesHere = map[uintptr]int{unix.SYS_CHMOD: 1, unix.SYS_OPEN: 2, unix.SYS_CREAT: 1, unix.SYS_MKDIR: 1, unix.SYS_MKNOD: 1}
