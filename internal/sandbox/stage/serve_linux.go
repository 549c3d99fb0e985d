package stage

import (
	"os"
	"syscall"
)

// dispatch handles requests until the socket is closed.
func (s *stage) dispatch() {
	defer close(s.execs)
	for {
		kind, size, fds, err := s.readHeader()
		if err != nil {
			return
		}
		switch kind {
		case KindExec:
			var e Exec
			if s.readBody(size, &e) != nil || len(fds) != 3 {
				return
			}
			s.execs <- request{e, fds}
		case KindKill:
			var k Kill
			if s.readBody(size, &k) != nil {
				return
			}
			s.kill(k.ID)
		case KindCollect:
			var c Collect
			if s.readBody(size, &c) != nil || len(fds) != 1 {
				return
			}
			go s.collect(c, fds[0])
		default:
			return
		}
	}
}

// start starts a command on the restricted thread.
func (s *stage) start(r request) {
	defer func() {
		for _, fd := range r.fds {
			syscall.Close(fd)
		}
	}()
	path, err := lookPath(r.exec.Path, r.exec.Env)
	pid := 0
	s.mu.Lock() // so that the command is registered before reap sees it exit
	if err == nil {
		pid, err = syscall.ForkExec(path, r.exec.Args, &syscall.ProcAttr{
			Dir: r.exec.Dir, Env: r.exec.Env,
			Files: []uintptr{uintptr(r.fds[0]), uintptr(r.fds[1]), uintptr(r.fds[2])},
			Sys:   &syscall.SysProcAttr{Setsid: true},
		})
	}
	if err == nil {
		s.running[pid] = &command{id: r.exec.ID, pid: pid}
		for _, c := range []chan struct{}{s.started, s.busy} {
			select {
			case c <- struct{}{}:
			default:
			}
		}
	}
	s.mu.Unlock()
	started := Started{ID: r.exec.ID, PID: pid}
	if err != nil {
		started.Error = err.Error()
		if n, ok := err.(syscall.Errno); ok {
			started.Errno = int(n)
		}
	}
	s.reply(KindStarted, started)
}

// reap waits for all child processes: commands, and orphaned processes that
// they started.
func (s *stage) reap() {
	for {
		var status syscall.WaitStatus
		var use syscall.Rusage
		pid, err := syscall.Wait4(-1, &status, 0, &use)
		switch {
		case err == syscall.EINTR:
		case err == syscall.ECHILD:
			<-s.started // there are no children before a command is started
		case err != nil:
			os.Exit(1)
		case status.Exited() || status.Signaled():
			s.handleExit(pid, status, &use)
		}
	}
}

func (s *stage) handleExit(pid int, status syscall.WaitStatus, use *syscall.Rusage) {
	s.mu.Lock()
	c := s.running[pid]
	delete(s.running, pid)
	last := len(s.running) == 0
	s.mu.Unlock()
	if c == nil {
		return // the process was an orphan
	}
	e := Exited{ID: c.id, OOM: c.oom, Full: c.full, CPU: use.Utime.Nano() + use.Stime.Nano(), MaxRSS: use.Maxrss << 10}
	if status.Signaled() {
		e.Signal = int(status.Signal())
		e.Code = 128 + e.Signal
		e.Spent = s.seal.CPU > 0 && (status.Signal() == syscall.SIGXCPU || status.Signal() == syscall.SIGKILL && e.CPU >= s.seal.CPU*1e9-1e8)
	} else {
		e.Code = status.ExitStatus()
	}
	if last {
		s.killAll() // kill the remaining processes of the last command
	}
	s.reply(KindExited, e)
}
