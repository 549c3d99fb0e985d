package spawn

import (
	"runtime"
	"sync"
)

// A keeper is what processes need while any of them lives: one thread that starts
// them all, since Linux ties the parent-death signal to it, and a guard.
type keeper struct {
	// mu guards what follows, and serialises starts.
	mu     sync.Mutex
	living int
	starts chan func()
	over   chan struct{} // closed when the thread has ended
	guard  *guard
}

func (k *keeper) start(p *process) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.living == 0 {
		k.starts, k.over = make(chan func()), make(chan struct{})
		go thread(k.starts, k.over)
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
		k.leave()
		return err
	}
	k.guard.add(p.cmd.Process.Pid)
	return nil
}

func (k *keeper) ended(p *process) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.guard.remove(p.cmd.Process.Pid)
	k.leave()
}

// leave ends the thread and the guard after the last process.
func (k *keeper) leave() {
	k.living--
	if k.living > 0 {
		return
	}
	k.guard.close()
	close(k.starts)
	<-k.over
	k.guard = nil
}

// thread runs what it is given on a thread of its own, and keeps that thread.
func thread(starts <-chan func(), over chan<- struct{}) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread() // to end the thread would kill what it has started
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
