//go:build linux

package main

import (
	"fmt"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The children below are copies of a Go process with one thread. They must only
// make raw system calls and access memory.

// noCall is a sentinel syscall number that matches no system call.
const noCall = ^uintptr(0)

//go:nosplit
//go:norace
func rawFork(flags uintptr) (uintptr, unix.Errno) {
	pid, _, e := unix.RawSyscall6(unix.SYS_CLONE, flags|uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	return pid, e
}

//go:nosplit
//go:norace
func exit(code uintptr) {
	for {
		unix.RawSyscall(unix.SYS_EXIT_GROUP, code, 0, 0)
	}
}

//go:nosplit
//go:norace
func nap(seconds int64) {
	ts := unix.Timespec{Sec: seconds}
	unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&ts)), 0, 0)
}

// childSyscall makes one system call in a child created with flags.
//
//go:norace
func childSyscall(flags, call, a, b uintptr) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	pid, e := rawFork(flags)
	if e != 0 {
		return e
	}
	if pid == 0 {
		callAndExit(call, a, b)
	}
	return reap(pid)
}

//go:nosplit
//go:norace
func callAndExit(call, a, b uintptr) {
	if call == noCall {
		exit(0)
	}
	_, _, e := unix.RawSyscall(call, a, b, 0)
	exit(uintptr(e))
}

func clone3(flags uint64) error {
	args := struct{ flags, pidfd, childTID, parentTID, exit, stack, size, tls uint64 }{flags: flags, exit: uint64(unix.SIGCHLD)}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	pid, e := rawClone3(unsafe.Pointer(&args), unsafe.Sizeof(args))
	if e != 0 {
		return e
	}
	return reap(pid)
}

//go:nosplit
//go:norace
func rawClone3(args unsafe.Pointer, size uintptr) (uintptr, unix.Errno) {
	pid, _, e := unix.RawSyscall(unix.SYS_CLONE3, uintptr(args), size, 0)
	if e == 0 && pid == 0 {
		exit(0)
	}
	return pid, e
}

// reap waits for a child whose exit code is an error number.
func reap(pid uintptr) error {
	var ws unix.WaitStatus
	for {
		_, err := unix.Wait4(int(pid), &ws, 0, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		break
	}
	if ws.Signaled() {
		return fmt.Errorf("killed by %v", ws.Signal())
	}
	if ws.ExitStatus() != 0 {
		return unix.Errno(ws.ExitStatus())
	}
	return nil
}

// forkSleeper forks a sleeping child.
//
//go:norace
func forkSleeper(seconds int64) (int, unix.Errno) {
	pid, e := rawFork(0)
	if e == 0 && pid == 0 {
		nap(seconds)
		exit(0)
	}
	return int(pid), e
}

// forkSpinner forks a child that uses the CPU for a while.
//
//go:norace
func forkSpinner(seconds int64) (int, unix.Errno) {
	pid, e := rawFork(0)
	if e == 0 && pid == 0 {
		spin(seconds)
	}
	return int(pid), e
}

//go:nosplit
//go:norace
func spin(seconds int64) {
	var began, now unix.Timespec
	n := uint64(1)
	unix.RawSyscall(unix.SYS_CLOCK_GETTIME, unix.CLOCK_MONOTONIC, uintptr(unsafe.Pointer(&began)), 0)
	for {
		for i := 0; i < 1<<20; i++ {
			n = n*6364136223846793005 + 1
		}
		unix.RawSyscall(unix.SYS_CLOCK_GETTIME, unix.CLOCK_MONOTONIC, uintptr(unsafe.Pointer(&now)), 0)
		if now.Sec-began.Sec >= seconds && now.Nsec >= began.Nsec || now.Sec-began.Sec > seconds || n == 0 {
			exit(0)
		}
	}
}

// forkToucher forks a child that maps and touches memory, reports that on fd, and keeps it for
// a while.
//
//go:norace
func forkToucher(size int64, kind uintptr, fd int) (int, unix.Errno) {
	pid, e := rawFork(0)
	if e == 0 && pid == 0 {
		touchAndStay(size, kind, fd)
	}
	return int(pid), e
}

//go:nosplit
//go:norace
func touchAndStay(size int64, kind uintptr, fd int) {
	if e := touch(uintptr(size), kind); e != 0 {
		exit(uintptr(e))
	}
	var b byte = 'x'
	unix.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&b)), 1)
	nap(6)
	exit(0)
}

// touch maps memory in parts and writes to each page.
//
//go:nosplit
//go:norace
func touch(size, kind uintptr) unix.Errno {
	const piece = 4 << 20
	for done := uintptr(0); done < size; done += piece {
		p, _, e := unix.RawSyscall6(unix.SYS_MMAP, 0, piece, unix.PROT_READ|unix.PROT_WRITE, kind|unix.MAP_ANONYMOUS, ^uintptr(0), 0)
		if e != 0 {
			return e
		}
		for off := uintptr(0); off < piece; off += 4096 {
			poke(p + off)
		}
	}
	return 0
}

//go:nosplit
//go:norace
func poke(addr uintptr) { **(**byte)(unsafe.Pointer(&addr)) = 1 }

func killAll(pids []int) {
	for _, pid := range pids {
		unix.Kill(pid, unix.SIGKILL)
	}
	for _, pid := range pids {
		unix.Wait4(pid, nil, 0, nil)
	}
}

// countRunning returns the number of running children. It does not reap
// children that have exited.
func countRunning(pids []int) int {
	n := 0
	for _, pid := range pids {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		if err == nil && info.Signo == 0 {
			n++
		}
	}
	return n
}

func pause(d time.Duration) { time.Sleep(d) }
