// Package seccomp builds the seccomp programs of the Linux backends. The
// programs deny system calls that scripts do not need and that were used to
// attack kernels and other processes, and allow all others. A call for a
// foreign architecture kills the process, because its number has a different
// meaning.
package seccomp

import (
	"bytes"
	"encoding/binary"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/seccomp"

	"github.com/loadout-dev/loadout/internal/sandbox/mountpoint"
	"github.com/loadout-dev/loadout/sandbox"
)

// Isolated returns the seccomp program for code in its own namespaces. The
// program allows internet and Unix sockets, which reach nothing outside the
// sandbox.
var Isolated = sync.OnceValues(func() ([]byte, error) { return program(kind{isolated: true, unix: true}) })

// IsolatedNoUnix is like Isolated, but for code with access to the user's
// directory, which may contain other programs' sockets. The program allows only
// pairs of connected Unix sockets.
var IsolatedNoUnix = sync.OnceValues(func() ([]byte, error) { return program(kind{isolated: true}) })

// HostNamespaces returns the seccomp program for code in the namespaces of the
// host. The program denies sockets and calls that affect other processes.
var HostNamespaces = sync.OnceValues(func() ([]byte, error) { return program(kind{}) })

// HostUser is like HostNamespaces, but for code that runs as a user who owns
// files. The program also denies changing modes, owners and attributes by name,
// which Landlock does not restrict.
var HostUser = sync.OnceValues(func() ([]byte, error) { return program(kind{more: slices.Concat(changeByName, byNameHere)}) })

// IsolatedFor returns IsolatedNoUnix if the spec mounts the user's directory,
// and Isolated otherwise.
func IsolatedFor(spec *sandbox.Spec) func() ([]byte, error) {
	for _, m := range spec.Mounts {
		if m.Path == mountpoint.Workspace {
			return IsolatedNoUnix
		}
	}
	return Isolated
}

// kind selects the program to build.
type kind struct {
	isolated bool // code runs in its own namespaces
	unix     bool // code may open Unix sockets
	more     []uintptr
}

func program(k kind) ([]byte, error) {
	errno := func(e unix.Errno) seccomp.Action { return seccomp.ReturnError.Code(uint16(e)) }
	deny := seccomp.NewSyscallRules()
	for _, nr := range slices.Concat(forbiddenCalls, neverHere, k.more) {
		deny.Set(nr, seccomp.MatchAll{})
	}
	deny.Set(unix.SYS_CLONE, anyFlag(0, namespaces))
	deny.Set(unix.SYS_UNSHARE, anyFlag(0, namespaces))
	deny.Set(unix.SYS_IOCTL, seccomp.Or{argument(1, unix.TIOCSTI), argument(1, unix.TIOCLINUX), argument(1, unix.TIOCSETD)})
	for nr, arg := range modeArgument {
		if !deny.Has(nr) {
			deny.Set(nr, anyFlag(arg, unix.S_ISUID|unix.S_ISGID))
		}
	}
	permitted := seccomp.NewSyscallRules()
	permitted.Set(unix.SYS_PERSONALITY, seccomp.Or{argument(0, linuxPersonality), argument(0, queryPersonality)})
	if k.isolated {
		families := seccomp.Or{argument(0, unix.AF_INET), argument(0, unix.AF_INET6)}
		if k.unix {
			families = append(families, argument(0, unix.AF_UNIX))
		}
		permitted.Set(unix.SYS_SOCKET, families)
	}
	permitted.Set(unix.SYS_SOCKETPAIR, argument(0, unix.AF_UNIX))
	noSockets := seccomp.NewSyscallRules()
	noSockets.Set(unix.SYS_SOCKET, seccomp.MatchAll{})
	noSockets.Set(unix.SYS_SOCKETPAIR, seccomp.MatchAll{})
	for nr, arg := range processArgument {
		other := seccomp.PerArg{}
		other[arg] = seccomp.NotEqual(0)
		rule := seccomp.Or{other}
		if nr == unix.SYS_SETPRIORITY {
			rule = append(rule, argument(0, unix.PRIO_USER)) // affects all processes of the user
		}
		deny.Set(nr, rule)
	}
	if !k.isolated {
		affinity := seccomp.PerArg{seccomp.NotEqual(0)} // libraries use 0 to bind their own threads
		deny.Set(unix.SYS_SCHED_SETAFFINITY, affinity)
		for _, nr := range forbiddenShared {
			deny.Set(nr, seccomp.MatchAll{})
		}
	}
	unknown := seccomp.NewSyscallRules()
	unknown.Set(unix.SYS_CLONE3, seccomp.MatchAll{}) // a filter cannot check its flags; libraries fall back to clone
	for _, nr := range unboundedMemory {
		unknown.Set(nr, seccomp.MatchAll{})
	}
	unsupported := seccomp.NewSyscallRules()
	for _, nr := range wholePages {
		unsupported.Set(nr, seccomp.MatchAll{})
	}
	deny.Set(unix.SYS_MMAP, sharedAnonymous)
	ignored := seccomp.NewSyscallRules()
	ignored.Set(unix.SYS_SETSOCKOPT, bufferSizes)
	unknown.Set(unix.SYS_OPENAT2, seccomp.MatchAll{}) // a filter cannot check its mode; see modes
	p := seccomp.Program{
		RuleSets: []seccomp.RuleSet{
			{Rules: unknown, Action: errno(unix.ENOSYS)},
			{Rules: unsupported, Action: errno(unix.EINVAL)},
			{Rules: ignored, Action: errno(0)},
			{Rules: permitted, Action: seccomp.Allow},
			{Rules: noSockets, Action: errno(unix.EAFNOSUPPORT)},
			{Rules: deny, Action: errno(unix.EPERM)},
		},
		Options: seccomp.ProgramOptions{
			DefaultAction: seccomp.Allow,
			BadArchAction: seccomp.KillProcess,
		},
	}
	insns, _, err := p.Build()
	if err != nil {
		return nil, err
	}
	insns = append(prologue(), insns...)
	var b bytes.Buffer
	err = binary.Write(&b, binary.NativeEndian, insns)
	return b.Bytes(), err
}

const namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// argument matches the low 32 bits of an argument. The kernel ignores the other
// bits.
func argument(n int, value uint32) seccomp.PerArg {
	rule := seccomp.PerArg{}
	rule[n] = seccomp.MaskedEqual(0xffffffff, uintptr(value))
	return rule
}

// anyFlag matches an argument that has at least one of the flags set.
func anyFlag(n int, flags uintptr) seccomp.Or {
	var or seccomp.Or
	for bit := uintptr(1); bit <= flags; bit <<= 1 {
		if flags&bit != 0 {
			rule := seccomp.PerArg{}
			rule[n] = seccomp.MaskedEqual(bit, bit)
			or = append(or, rule)
		}
	}
	return or
}

// forbiddenCalls lists calls that are always denied.
var forbiddenCalls = []uintptr{
	// access to other processes
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_KCMP, unix.SYS_PIDFD_GETFD, unix.SYS_PROCESS_MADVISE,
	// file systems and namespaces
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_SETNS, unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT,
	unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_NAME_TO_HANDLE_AT,
	unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_FANOTIFY_INIT, unix.SYS_ACCT,
	// keys, and large parts of the kernel
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, unix.SYS_MEMFD_SECRET, unix.SYS_LOOKUP_DCOOKIE,
	// control of the machine
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_REBOOT,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME, unix.SYS_ADJTIMEX, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
	unix.SYS_SYSLOG, unix.SYS_VHANGUP, unix.SYS_NFSSERVCTL, unix.SYS_PERSONALITY,
}

// forbiddenShared lists calls that are also denied if other processes are
// visible.
var forbiddenShared = []uintptr{unix.SYS_MIGRATE_PAGES, unix.SYS_MOVE_PAGES, unix.SYS_PIDFD_OPEN, unix.SYS_PIDFD_SEND_SIGNAL, unix.SYS_PROCESS_MRELEASE}

// changeByName lists calls that change modes, owners or attributes of files by name.
var changeByName = []uintptr{unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_FCHOWNAT, unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, 463, 466} // the last two are setxattrat and removexattrat

// processArgument maps a call to the index of the argument that identifies a process; 0
// means the caller. These calls must not affect the stage, which runs as the
// same user.
var processArgument = map[uintptr]int{
	unix.SYS_PRLIMIT64: 0, unix.SYS_SCHED_SETSCHEDULER: 0, unix.SYS_SCHED_SETPARAM: 0,
	unix.SYS_SCHED_SETATTR: 0, unix.SYS_SETPRIORITY: 1, unix.SYS_IOPRIO_SET: 1,
}

// modeArgument maps a call to the index of its mode argument, which must not contain
// setuid or setgid bits.
var modeArgument = func() map[uintptr]int {
	m := map[uintptr]int{unix.SYS_FCHMOD: 1, unix.SYS_FCHMODAT: 2, unix.SYS_FCHMODAT2: 2, unix.SYS_OPENAT: 3, unix.SYS_MKDIRAT: 2, unix.SYS_MKNODAT: 2}
	for nr, arg := range modesHere {
		m[nr] = arg
	}
	return m
}()
