package stage

import (
	"os"
	"runtime"
	"syscall"
)

// guard stands over a stage that has no namespace of processes. Code under such
// a stage could end or stop it, and live on without limits; it cannot the guard,
// which starts the stage before the stage puts itself and its commands under
// access rules that keep signals inside. When the stage has ended, or whoever
// started the guard has gone or said that it is time, the guard ends everything
// below it, and then itself.
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
	// Whoever is signalled does not start others, so this ends.
	for {
		killDescendants()
		if _, err := syscall.Wait4(-1, nil, 0, nil); err == syscall.ECHILD {
			os.Exit(0)
		}
	}
}

// awaitHangup waits until nothing more will come from the other end of a
// socket.
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
