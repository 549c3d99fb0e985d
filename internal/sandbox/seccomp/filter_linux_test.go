package seccomp_test

import (
	"encoding/binary"
	"testing"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/abi/linux"
	"gvisor.dev/gvisor/pkg/bpf"
	"gvisor.dev/gvisor/pkg/seccomp"

	filter "github.com/loadout-dev/loadout/internal/sandbox/seccomp"
)

const allowed = uint32(linux.SECCOMP_RET_ALLOW)

func refused(e unix.Errno) uint32 { return uint32(linux.SECCOMP_RET_ERRNO) | uint32(e) }

// run asks a program for its verdict, by the interpreter of another library
// than the kernel.
func run(t *testing.T, program []byte, nr uintptr, arch uint32, args ...uint64) uint32 {
	t.Helper()
	insns := make([]bpf.Instruction, len(program)/8)
	for i := range insns {
		b := program[8*i:]
		insns[i] = bpf.Instruction{OpCode: binary.NativeEndian.Uint16(b), JumpIfTrue: b[2], JumpIfFalse: b[3], K: binary.NativeEndian.Uint32(b[4:])}
	}
	p, err := bpf.Compile(insns, false)
	if err != nil {
		t.Fatal(err)
	}
	data := linux.SeccompData{Nr: int32(nr), Arch: arch}
	copy(data.Args[:], args)
	got, err := bpf.Exec[bpf.NativeEndian](p, seccomp.DataAsBPFInput(&data, make([]byte, 64)))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestVerdicts(t *testing.T) {
	isolated, err := filter.Isolated()
	if err != nil {
		t.Fatal(err)
	}
	shared, err := filter.HostNamespaces()
	if err != nil {
		t.Fatal(err)
	}
	const here = seccomp.LINUX_AUDIT_ARCH
	high := uint64(1) << 32 // the kernel does not look at the upper half of these
	for _, tt := range []struct {
		what             string
		nr               uintptr
		args             []uint64
		isolated, shared uint32
	}{
		{"read", unix.SYS_READ, nil, allowed, allowed},
		{"execve", unix.SYS_EXECVE, nil, allowed, allowed},
		{"a thread", unix.SYS_CLONE, []uint64{unix.CLONE_VM | unix.CLONE_THREAD | unix.CLONE_SIGHAND}, allowed, allowed},
		{"a process", unix.SYS_CLONE, []uint64{uint64(unix.SIGCHLD)}, allowed, allowed},
		{"a user namespace", unix.SYS_CLONE, []uint64{unix.CLONE_NEWUSER | uint64(unix.SIGCHLD)}, refused(unix.EPERM), refused(unix.EPERM)},
		{"unshare a mount namespace", unix.SYS_UNSHARE, []uint64{unix.CLONE_NEWNS}, refused(unix.EPERM), refused(unix.EPERM)},
		{"clone3", unix.SYS_CLONE3, nil, refused(unix.ENOSYS), refused(unix.ENOSYS)},
		{"TIOCSTI", unix.SYS_IOCTL, []uint64{0, unix.TIOCSTI}, refused(unix.EPERM), refused(unix.EPERM)},
		{"TIOCSTI with noise above", unix.SYS_IOCTL, []uint64{0, unix.TIOCSTI | high}, refused(unix.EPERM), refused(unix.EPERM)},
		{"TCGETS", unix.SYS_IOCTL, []uint64{0, unix.TCGETS}, allowed, allowed},
		{"a socket of the internet", unix.SYS_SOCKET, []uint64{unix.AF_INET}, allowed, refused(unix.EAFNOSUPPORT)},
		{"a Unix socket", unix.SYS_SOCKET, []uint64{unix.AF_UNIX}, allowed, refused(unix.EAFNOSUPPORT)},
		{"a pair of Unix sockets", unix.SYS_SOCKETPAIR, []uint64{unix.AF_UNIX}, allowed, allowed},
		{"netlink", unix.SYS_SOCKET, []uint64{unix.AF_NETLINK}, refused(unix.EAFNOSUPPORT), refused(unix.EAFNOSUPPORT)},
		{"vsock", unix.SYS_SOCKET, []uint64{unix.AF_VSOCK}, refused(unix.EAFNOSUPPORT), refused(unix.EAFNOSUPPORT)},
		{"vsock with noise above", unix.SYS_SOCKET, []uint64{unix.AF_VSOCK | high}, refused(unix.EAFNOSUPPORT), refused(unix.EAFNOSUPPORT)},
		{"a family that is not known yet", unix.SYS_SOCKET, []uint64{63}, refused(unix.EAFNOSUPPORT), refused(unix.EAFNOSUPPORT)},
		{"io_uring", unix.SYS_IO_URING_SETUP, nil, refused(unix.EPERM), refused(unix.EPERM)},
		{"ptrace", unix.SYS_PTRACE, nil, refused(unix.EPERM), refused(unix.EPERM)},
		{"mount", unix.SYS_MOUNT, nil, refused(unix.EPERM), refused(unix.EPERM)},
		{"keyctl", unix.SYS_KEYCTL, nil, refused(unix.EPERM), refused(unix.EPERM)},
		{"memfd_create", unix.SYS_MEMFD_CREATE, nil, refused(unix.ENOSYS), refused(unix.ENOSYS)},
		{"a shared segment", unix.SYS_SHMGET, nil, refused(unix.ENOSYS), refused(unix.ENOSYS)},
		{"a shared segment of another program", unix.SYS_SHMAT, nil, refused(unix.ENOSYS), refused(unix.ENOSYS)},
		{"a message queue", unix.SYS_MSGGET, nil, refused(unix.ENOSYS), refused(unix.ENOSYS)},
		{"semaphores", unix.SYS_SEMGET, nil, refused(unix.ENOSYS), refused(unix.ENOSYS)},
		{"vmsplice", unix.SYS_VMSPLICE, nil, refused(unix.ENOSYS), refused(unix.ENOSYS)},
		{"splice", unix.SYS_SPLICE, nil, refused(unix.EINVAL), refused(unix.EINVAL)},
		{"tee", unix.SYS_TEE, nil, refused(unix.EINVAL), refused(unix.EINVAL)},
		{"sendfile", unix.SYS_SENDFILE, nil, refused(unix.EINVAL), refused(unix.EINVAL)},
		{"private memory", unix.SYS_MMAP, []uint64{0, 4096, 3, unix.MAP_PRIVATE | unix.MAP_ANONYMOUS}, allowed, allowed},
		{"a shared file", unix.SYS_MMAP, []uint64{0, 4096, 3, unix.MAP_SHARED}, allowed, allowed},
		{"shared memory", unix.SYS_MMAP, []uint64{0, 4096, 3, unix.MAP_SHARED | unix.MAP_ANONYMOUS | unix.MAP_NORESERVE}, refused(unix.EPERM), refused(unix.EPERM)},
		{"shared memory, validated", unix.SYS_MMAP, []uint64{0, 4096, 3, unix.MAP_SHARED_VALIDATE | unix.MAP_ANONYMOUS}, refused(unix.EPERM), refused(unix.EPERM)},
		{"a large send buffer", unix.SYS_SETSOCKOPT, []uint64{3, unix.SOL_SOCKET, unix.SO_SNDBUF}, refused(0), refused(0)},
		{"a large receive buffer", unix.SYS_SETSOCKOPT, []uint64{3, unix.SOL_SOCKET | high, unix.SO_RCVBUF | high}, refused(0), refused(0)},
		{"keep-alive", unix.SYS_SETSOCKOPT, []uint64{3, unix.SOL_SOCKET, unix.SO_KEEPALIVE}, allowed, allowed},
		{"an option of TCP", unix.SYS_SETSOCKOPT, []uint64{3, unix.IPPROTO_TCP, unix.SO_SNDBUF}, allowed, allowed},
		{"the default personality", unix.SYS_PERSONALITY, []uint64{0}, allowed, allowed},
		{"the current personality", unix.SYS_PERSONALITY, []uint64{0xffffffff}, allowed, allowed},
		{"READ_IMPLIES_EXEC", unix.SYS_PERSONALITY, []uint64{0x400000}, refused(unix.EPERM), refused(unix.EPERM)},
		{"one's own limits", unix.SYS_PRLIMIT64, []uint64{0}, allowed, allowed},
		{"limits of another", unix.SYS_PRLIMIT64, []uint64{1}, refused(unix.EPERM), refused(unix.EPERM)},
		{"the priority of another", unix.SYS_SETPRIORITY, []uint64{unix.PRIO_PROCESS, 1}, refused(unix.EPERM), refused(unix.EPERM)},
		{"the priority of all of the user", unix.SYS_SETPRIORITY, []uint64{unix.PRIO_USER, 0}, refused(unix.EPERM), refused(unix.EPERM)},
		{"one's own priority", unix.SYS_SETPRIORITY, []uint64{unix.PRIO_PROCESS, 0}, allowed, allowed},
		{"the processors of a thread", unix.SYS_SCHED_SETAFFINITY, []uint64{7}, allowed, refused(unix.EPERM)},
		{"a mode", unix.SYS_FCHMODAT, []uint64{0, 0, 0o755}, allowed, allowed},
		{"setuid", unix.SYS_FCHMODAT, []uint64{0, 0, 0o4755}, refused(unix.EPERM), refused(unix.EPERM)},
		{"setgid from the start", unix.SYS_OPENAT, []uint64{0, 0, unix.O_CREAT, 0o2644}, refused(unix.EPERM), refused(unix.EPERM)},
		{"openat2", unix.SYS_OPENAT2, nil, refused(unix.ENOSYS), refused(unix.ENOSYS)},
	} {
		if got := run(t, isolated, tt.nr, here, tt.args...); got != tt.isolated {
			t.Errorf("%s, isolated: %#x, want %#x", tt.what, got, tt.isolated)
		}
		if got := run(t, shared, tt.nr, here, tt.args...); got != tt.shared {
			t.Errorf("%s, shared: %#x, want %#x", tt.what, got, tt.shared)
		}
	}
	visited, err := filter.IsolatedNoUnix()
	if err != nil {
		t.Fatal(err)
	}
	for nr, want := range map[uintptr]uint32{unix.SYS_SOCKET: refused(unix.EAFNOSUPPORT), unix.SYS_SOCKETPAIR: allowed} {
		if got := run(t, visited, nr, here, unix.AF_UNIX); got != want {
			t.Errorf("call %d for a Unix socket where the user's directory is: %#x, want %#x", nr, got, want)
		}
	}
	owner, err := filter.HostUser()
	if err != nil {
		t.Fatal(err)
	}
	if got := run(t, owner, unix.SYS_FCHMODAT, here, 0, 0, 0o755); got != refused(unix.EPERM) {
		t.Errorf("a mode of a file of the user: %#x", got)
	}
	const i386 = 0x40000003
	if got := run(t, isolated, unix.SYS_READ, i386); got != uint32(linux.SECCOMP_RET_KILL_PROCESS) {
		t.Errorf("another architecture: %#x", got)
	}
}
