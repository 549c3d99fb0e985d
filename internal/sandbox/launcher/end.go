//go:build linux

package launcher

import (
	"runtime"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/sandbox"
)

// Close stops the stage and everything else in the sandbox.
func (s *Sandbox) Close() error {
	s.closing.Do(func() {
		s.terminate()
		t := time.AfterFunc(grace, func() { s.command.Process.Kill() })
		<-s.ended
		t.Stop()
		s.conn.Close()
		if s.cfg.OnClose != nil {
			s.cfg.OnClose()
		}
	})
	return nil
}

// End stops the stage and everything else in the sandbox, but does not call
// [Config.OnClose].
func (s *Sandbox) End() {
	s.terminate()
	<-s.ended
}

// terminate stops the sandbox without waiting. It kills the first process or, if
// the other processes would survive that, asks the first process to end them,
// and kills it if it does not respond in time.
func (s *Sandbox) terminate() {
	s.conn.CloseWrite()
	if !s.cfg.Graceful {
		s.command.Process.Kill()
		return
	}
	late := time.AfterFunc(grace, func() { s.command.Process.Kill() })
	go func() {
		<-s.ended
		late.Stop()
	}()
}

// Stop kills all running commands. They exit with the given reason. The sandbox
// can still run new commands.
func (s *Sandbox) Stop(why sandbox.Reason, detail string) {
	s.mu.Lock()
	var all []*process
	for _, p := range s.procs {
		if p.stopped == "" {
			p.stopped, p.detail = why, detail
		}
		all = append(all, p)
	}
	s.mu.Unlock()
	for _, p := range all {
		p.Kill()
	}
}

// Busy reports whether any command is running.
func (s *Sandbox) Busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.procs) > 0
}

// permanentThread starts a thread that lives until this program exits. It
// returns a channel for functions that the thread should call.
var permanentThread = sync.OnceValue(func() chan func() {
	c := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range c {
			f()
		}
	}()
	return c
})

// onPermanentThread calls f on a thread that lives until this program exits,
// and returns f's result.
func onPermanentThread(f func() error) error {
	done := make(chan error)
	permanentThread() <- func() { done <- f() }
	return <-done
}
