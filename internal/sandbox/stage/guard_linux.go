package stage

import (
	"os"
	"runtime"
	"syscall"
)

// guard supervises a stage that has no PID namespace. Code could kill or stop
// such a stage and then keep running without limits. It cannot
// signal the guard, which starts the stage before the stage restricts signals.
// The guard kills all its descendants and exits when the stage exits, or when
// its parent exits or tells it to.
func guard() {
	runtime.LockOSThread()
	closeInherited()
	if prctl(prSetSubreaper, 1, 0) != nil || prctl(prSetDumpable, 0, 0) != nil {
		os.Exit(1)
	}
	syscall.CloseOnExec(ControlFD)
	pid, err := syscall.ForkExec("/proc/self/exe", []string{Name}, &syscall.ProcAttr{
		Dir: "/", Env: os.Environ(), Files: []uintptr{0, 1, 2, ControlFD},
		Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		os.Stderr.WriteString(Name + ": start the stage: " + err.Error() + "\n")
		os.Exit(1)
	}
	go func() {
		awaitHangup(ControlFD)
		killDescendants()
	}()
	for {
		ended, err := syscall.Wait4(-1, nil, 0, nil)
		if err == syscall.EINTR {
			continue
		}
		if ended == pid || err != nil {
			break
		}
	}
	// Killed processes start no other processes, so this loop terminates.
	for {
		killDescendants()
		if _, err := syscall.Wait4(-1, nil, 0, nil); err == syscall.ECHILD {
			os.Exit(0)
		}
	}
}

// awaitHangup waits until the other end of a socket is closed.
func awaitHangup(fd int) {
	const rdhup = 0x2000
	poll, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return
	}
	defer syscall.Close(poll)
	if syscall.EpollCtl(poll, syscall.EPOLL_CTL_ADD, fd, &syscall.EpollEvent{Events: rdhup, Fd: int32(fd)}) != nil {
		return
	}
	var events [1]syscall.EpollEvent
	for {
		n, err := syscall.EpollWait(poll, events[:], -1)
		if n > 0 || err != nil && err != syscall.EINTR {
			return
		}
	}
}
