package stage

import (
	"strings"
	"syscall"
	"unsafe"
)

// System calls and constants that package syscall lacks. Numbers from 424 on
// are the same on all architectures.
const (
	sysCloseRange     = 436
	sysOpenTree       = 428
	sysMoveMount      = 429
	sysMountSetattr   = 442
	sysLandlockCreate = 444
	sysLandlockAdd    = 445
	sysLandlockSelf   = 446

	atFDCWD       = -100
	atEmptyPath   = 0x1000
	atRecursive   = 0x8000
	openTreeClone = 1
	openTreeExec  = syscall.O_CLOEXEC
	moveEmptyPath = 4

	attrReadOnly = 0x1
	attrNoSUID   = 0x2
	attrNoDev    = 0x4
	attrNoExec   = 0x8

	prSetDumpable     = 4
	prSetNoNewPrivs   = 38
	prSetSecurebits   = 28
	prCapBsetDrop     = 24
	prCapAmbient      = 47
	prAmbientClearAll = 4
	prSetSubreaper    = 36

	// All secure bits, locked: UID 0 then has no special capabilities.
	secureBits = 1<<0 | 1<<1 | 1<<2 | 1<<3 | 1<<5 | 1<<6 | 1<<7

	seccompSetFilter = 1
	seccompTsync     = 1
)

func cstr(s string) (*byte, error) { return syscall.BytePtrFromString(s) }

func errnoError(e syscall.Errno) error {
	if e != 0 {
		return e
	}
	return nil
}

func prctl(op, a, b uintptr) error {
	_, _, e := syscall.RawSyscall6(syscall.SYS_PRCTL, op, a, b, 0, 0, 0)
	return errnoError(e)
}

func closeRange(first, last uint) error {
	_, _, e := syscall.RawSyscall(sysCloseRange, uintptr(first), uintptr(last), 0)
	return errnoError(e)
}

// closeInherited closes inherited descriptors. If a package that was
// initialized before this one has opened a file, the runtime has an epoll
// descriptor and would crash without it. That descriptor stays open, because
// unlike inherited descriptors it has the close-on-exec flag.
func closeInherited() {
	const most = 64 // consecutive unused numbers; descriptors of the runtime have low numbers
	first := uint(ControlFD + 1)
	for fd, free := first, 0; free < most; fd++ {
		flags, _, e := syscall.RawSyscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_GETFD, 0)
		if e != 0 {
			free++
			continue
		}
		free = 0
		var st syscall.Stat_t
		if flags&syscall.FD_CLOEXEC == 0 || syscall.Fstat(int(fd), &st) != nil || st.Mode&syscall.S_IFMT != 0 {
			continue // the descriptor is inherited or a file
		}
		if fd > first {
			closeRange(first, fd-1)
		}
		first = fd + 1
	}
	closeRange(first, ^uint(0))
}

// openTree returns a detached copy of the mounts at path.
func openTree(path string) (int, error) {
	p, err := cstr(path)
	if err != nil {
		return -1, err
	}
	at := atFDCWD
	fd, _, e := syscall.Syscall(sysOpenTree, uintptr(at), uintptr(unsafe.Pointer(p)), openTreeClone|openTreeExec|atRecursive)
	return int(fd), errnoError(e)
}

type mountAttr struct{ set, clr, propagation, userns uint64 }

// setAttr changes the attributes of mounts returned by openTree.
func setAttr(fd int, set uint64) error {
	p, _ := cstr("")
	attr := mountAttr{set: set}
	_, _, e := syscall.Syscall6(sysMountSetattr, uintptr(fd), uintptr(unsafe.Pointer(p)), atEmptyPath|atRecursive, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	return errnoError(e)
}

// setAttrAt changes the attributes of the mount at path.
func setAttrAt(path string, set uint64) error {
	p, err := cstr(path)
	if err != nil {
		return err
	}
	attr, at := mountAttr{set: set}, atFDCWD
	_, _, e := syscall.Syscall6(sysMountSetattr, uintptr(at), uintptr(unsafe.Pointer(p)), 0, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	return errnoError(e)
}

// moveMount attaches mounts returned by openTree at path.
func moveMount(fd int, path string) error {
	empty, _ := cstr("")
	p, err := cstr(path)
	if err != nil {
		return err
	}
	at := atFDCWD
	_, _, e := syscall.Syscall6(sysMoveMount, uintptr(fd), uintptr(unsafe.Pointer(empty)), uintptr(at), uintptr(unsafe.Pointer(p)), moveEmptyPath, 0)
	return errnoError(e)
}

func setrlimit(r Rlimit) error {
	lim := syscall.Rlimit{Cur: r.Soft, Max: r.Hard}
	if r.Resource == syscall.RLIMIT_NOFILE {
		// This call also sets the limit that the runtime restores in commands.
		return syscall.Setrlimit(r.Resource, &lim)
	}
	_, _, e := syscall.RawSyscall6(sysPrlimit, 0, uintptr(r.Resource), uintptr(unsafe.Pointer(&lim)), 0, 0, 0)
	return errnoError(e)
}

// dropCapabilities permanently drops all capabilities of this thread.
func dropCapabilities() error {
	if err := prctl(prCapAmbient, prAmbientClearAll, 0); err != nil {
		return err
	}
	for c := uintptr(0); c < 64; c++ {
		if err := prctl(prCapBsetDrop, c, 0); err == syscall.EINVAL {
			break // there are no more capabilities
		} else if err != nil {
			return err
		}
	}
	if err := prctl(prSetSecurebits, secureBits, 0); err != nil {
		return err
	}
	header := struct {
		version uint32
		pid     int32
	}{version: 0x20080522}
	var none [2]struct{ effective, permitted, inheritable uint32 }
	_, _, e := syscall.RawSyscall(syscall.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&none[0])), 0)
	return errnoError(e)
}

// loadFilter installs a seccomp program in all threads.
func loadFilter(program []byte) error {
	if len(program) == 0 || len(program)%8 != 0 {
		return syscall.EINVAL
	}
	fprog := struct {
		n     uint16
		insns unsafe.Pointer
	}{uint16(len(program) / 8), unsafe.Pointer(&program[0])}
	thread, _, e := syscall.RawSyscall(sysSeccomp, seccompSetFilter, seccompTsync, uintptr(unsafe.Pointer(&fprog)))
	if e == 0 && thread != 0 { // thread is the ID of a thread that could not install the program
		return syscall.EBUSY
	}
	return errnoError(e)
}

// resetSignals removes the runtime's signal handlers. Commands run as the same
// user and could otherwise use these signals to stop their namespace's first
// process. Without a handler, the kernel drops signals from inside the
// namespace.
func resetSignals() {
	const preempts, child = syscall.SIGURG, syscall.SIGCHLD // the runtime uses them, and they are harmless
	var byDefault [4]uint64
	for sig := syscall.SIGHUP; sig <= syscall.SIGSYS; sig++ {
		if sig != preempts && sig != child {
			syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&byDefault)), 0, 8, 0, 0)
		}
	}
}

// preferThread makes the scheduler run this thread soon after it wakes, even if
// many others are busy, by asking for short time slices. Kernels before 6.12
// ignore it.
func preferThread() {
	attr := struct {
		size, policy              uint32
		flags                     uint64
		nice                      int32
		priority                  uint32
		runtime, deadline, period uint64
	}{runtime: 100_000}
	attr.size = uint32(unsafe.Sizeof(attr))
	syscall.RawSyscall(sysSchedSetattr, 0, uintptr(unsafe.Pointer(&attr)), 0)
}

// loopbackUp enables the loopback interface.
func loopbackUp() error {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	var req struct {
		name  [16]byte
		flags uint16
		_     [22]byte
	}
	copy(req.name[:], "lo")
	req.flags = syscall.IFF_UP | syscall.IFF_RUNNING
	_, _, e := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), syscall.SIOCSIFFLAGS, uintptr(unsafe.Pointer(&req)))
	return errnoError(e)
}

// listen opens a listener on 127.0.0.1.
func listen(port uint16) (int, error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if err = syscall.Bind(fd, &syscall.SockaddrInet4{Port: int(port), Addr: [4]byte{127, 0, 0, 1}}); err == nil {
		err = syscall.Listen(fd, 64)
	}
	if err != nil {
		syscall.Close(fd)
		return -1, err
	}
	return fd, nil
}

// parentDirs returns the directories above path, except "/", outermost first.
func parentDirs(path string) []string {
	var out []string
	for i := 1; i < len(path); i++ {
		if path[i] == '/' {
			out = append(out, path[:i])
		}
	}
	return out
}

func lookPath(program string, env []string) (string, error) {
	if strings.Contains(program, "/") {
		return program, nil
	}
	for _, kv := range env {
		dirs, ok := strings.CutPrefix(kv, "PATH=")
		if !ok {
			continue
		}
		for dir := range strings.SplitSeq(dirs, ":") {
			var st syscall.Stat_t
			p := dir + "/" + program
			if syscall.Stat(p, &st) == nil && st.Mode&syscall.S_IFMT == syscall.S_IFREG && st.Mode&0o111 != 0 {
				return p, nil
			}
		}
	}
	return "", syscall.ENOENT
}
