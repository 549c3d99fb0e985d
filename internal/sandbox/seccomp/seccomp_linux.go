// Package seccomp builds the seccomp programs of the Linux backends. The
// programs deny system calls that scripts do not need and that were used to
// attack kernels and other processes, and allow all others. A call for a
// foreign architecture kills the process, because its number has a different
// meaning.
package seccomp

import (
	"slices"
	"sync"

	"golang.org/x/sys/unix"

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

func program(k kind) ([]byte, error) { return newRules(k).compile() }

// newRules returns the rules of a program. The order counts for calls with several
// rules.
func newRules(k kind) ruleSet {
	s := ruleSet{}
	s.add(fail(unix.ENOSYS), unix.SYS_CLONE3)  // a filter cannot check its flags; libraries fall back to clone
	s.add(fail(unix.ENOSYS), unix.SYS_OPENAT2) // a filter cannot check its mode; see modeArgument
	s.addAll(fail(unix.ENOSYS), unboundedMemory)
	s.addAll(fail(unix.EINVAL), wholePages)
	for _, option := range bufferSizes {
		s.add(fail(0), unix.SYS_SETSOCKOPT, equals(1, unix.SOL_SOCKET), equals(2, option))
	}
	s.add(allow, unix.SYS_PERSONALITY, equals(0, linuxPersonality))
	s.add(allow, unix.SYS_PERSONALITY, equals(0, queryPersonality))
	if k.isolated {
		s.add(allow, unix.SYS_SOCKET, equals(0, unix.AF_INET))
		s.add(allow, unix.SYS_SOCKET, equals(0, unix.AF_INET6))
	}
	if k.isolated && k.unix {
		s.add(allow, unix.SYS_SOCKET, equals(0, unix.AF_UNIX))
	}
	s.add(fail(unix.EAFNOSUPPORT), unix.SYS_SOCKET)
	s.add(allow, unix.SYS_SOCKETPAIR, equals(0, unix.AF_UNIX))
	s.add(fail(unix.EAFNOSUPPORT), unix.SYS_SOCKETPAIR)
	s.addDenied(k)
	return s
}

// addDenied adds the rules of calls that fail with EPERM.
func (s ruleSet) addDenied(k kind) {
	denied := fail(unix.EPERM)
	s.addAll(denied, forbiddenCalls)
	s.addAll(denied, neverHere)
	s.addAll(denied, k.more)
	s.add(denied, unix.SYS_CLONE, anyFlag(0, namespaces))
	s.add(denied, unix.SYS_UNSHARE, anyFlag(0, namespaces))
	for _, request := range []uint32{unix.TIOCSTI, unix.TIOCLINUX, unix.TIOCSETD} {
		s.add(denied, unix.SYS_IOCTL, equals(1, request))
	}
	for nr, arg := range modeArgument {
		s.add(denied, nr, anyFlag(arg, unix.S_ISUID|unix.S_ISGID))
	}
	for nr, arg := range processArgument {
		s.add(denied, nr, notZero(arg))
	}
	s.add(denied, unix.SYS_SETPRIORITY, equals(0, unix.PRIO_USER)) // affects all processes of the user
	if !k.isolated {
		s.add(denied, unix.SYS_SCHED_SETAFFINITY, notZero(0)) // libraries use 0 to bind their own threads
		s.addAll(denied, forbiddenShared)
	}
	s.add(denied, unix.SYS_MMAP, sharedAnonymous)
}

const namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

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
