package spawn

import (
	"runtime"
	"sync"
)

// starter starts processes. While any of them runs, it maintains a guard and a
// single thread that starts all processes, because Linux ties the parent-death
// signal to that thread.
type starter struct {
	// mu guards the fields below, and only one process starts at a time.
	mu     sync.Mutex
	living int
	starts chan func()
	over   chan struct{} // closed when the thread has ended
	guard  *guard
}

func (k *starter) start(p *process) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.living == 0 {
		k.starts, k.over = make(chan func()), make(chan struct{})
		go runThread(k.starts, k.over)
		k.guard = newGuard(k.starts)
	}
	k.living++
	err := onThread(k.starts, p.cmd.Start)
	if err == nil {
		if err = p.group.started(p.cmd); err != nil {
			p.cmd.Process.Kill()
			p.cmd.Wait()
		}
	}
	if err != nil {
		k.release()
		return err
	}
	k.guard.add(p.cmd.Process.Pid)
	return nil
}

func (k *starter) remove(p *process) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.guard.remove(p.cmd.Process.Pid)
	k.release()
}

// release decrements living. If no process is left, it stops the thread and the
// guard. The caller must hold mu.
func (k *starter) release() {
	k.living--
	if k.living > 0 {
		return
	}
	k.guard.close()
	close(k.starts)
	<-k.over
	k.guard = nil
}

// runThread runs functions from starts on a single thread and keeps the thread
// alive until starts is closed.
func runThread(starts <-chan func(), over chan<- struct{}) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread() // ending the thread would kill its children
	for f := range starts {
		f()
	}
	close(over)
}

func onThread(starts chan<- func(), f func() error) error {
	done := make(chan error)
	starts <- func() { done <- f() }
	return <-done
}
