package native

import (
	"os"

	"golang.org/x/sys/unix"
)

// mountWatch detects changes of the mounts of this process. It occupies a thread
// until it is stopped.
type mountWatch struct {
	end     *os.File // closed to stop the watch
	done    chan struct{}
	changed bool // valid after done was closed
}

// watchMounts starts a watch of the list of mounts in the named file, in which the
// kernel reports changes since it was opened as an exceptional condition. It calls
// onChange in another goroutine after the first change, unless the watch was
// stopped before. The caller must stop it.
func watchMounts(name string, onChange func()) (*mountWatch, error) {
	// An os.File would be in the poller of the Go runtime, to which the kernel could
	// report the change instead.
	list, err := unix.Open(name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	stopped, end, err := os.Pipe()
	if err != nil {
		unix.Close(list)
		return nil, err
	}
	w := &mountWatch{end: end, done: make(chan struct{})}
	go func() {
		w.changed = pollMounts(list, stopped)
		unix.Close(list)
		stopped.Close()
		close(w.done)
		if w.changed {
			onChange()
		}
	}()
	return w, nil
}

// pollMounts waits until the mounts change or the other end of the pipe stopped
// is closed. It reports whether the mounts may have changed.
func pollMounts(list int, stopped *os.File) bool {
	fds := []unix.PollFd{{Fd: int32(list), Events: unix.POLLPRI}, {Fd: int32(stopped.Fd()), Events: unix.POLLIN}}
	for {
		_, err := unix.Poll(fds, -1)
		switch {
		case err == unix.EINTR:
		case err != nil || fds[0].Revents != 0:
			return true
		case fds[1].Revents != 0:
			return false
		}
	}
}

// stop stops the watch. It reports whether the mounts have changed.
func (w *mountWatch) stop() bool {
	w.end.Close() // an error means that the watch was stopped before
	<-w.done
	return w.changed
}
