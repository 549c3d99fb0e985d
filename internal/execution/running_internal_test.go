package execution

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadout-dev/loadout/sandbox"
)

// exitedProcess is a process that has exited. Its standard error can still be read.
type exitedProcess struct {
	sandbox.Process
	stderr io.Reader
}

func (p exitedProcess) Stderr() io.Reader { return p.stderr }
func (p exitedProcess) Wait() sandbox.Exit {
	return sandbox.Exit{Reason: sandbox.Exited, Code: 1}
}

func (p exitedProcess) Stdin() io.WriteCloser { return nopCloser{} }
func (p exitedProcess) Kill()                 {}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// Done waits for the standard error of an exited service, which often says why it
// exited. It does not wait long, because a child of the service may hold standard
// error open.
func TestDoneWaitsForStandardError(t *testing.T) {
	for _, tt := range []struct {
		name   string
		closed bool
	}{
		{"closed", true},
		{"held open by a child", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stderr, w := io.Pipe()
				ended := ""
				s := &Service{process: exitedProcess{stderr: stderr}, ended: make(chan struct{}), stderr: tailBuffer{limit: maxStderr}, recordEnd: func(reason string) { ended = reason }}
				s.watch(t.Context(), func() {})
				go func() {
					time.Sleep(100 * time.Millisecond)
					io.WriteString(w, "no module named numbers")
					if tt.closed {
						w.Close()
					}
				}()
				<-s.Done()
				if got := s.Stderr(); got != "no module named numbers" {
					t.Errorf("stderr is %q", got)
				}
				if err := s.Err(); err == nil || err.Error() != "exited with code 1" || ended != string(sandbox.Exited) {
					t.Errorf("err is %v, recorded %q", err, ended)
				}
				w.Close()
			})
		})
	}
}

// Done does not wait for standard error if the service was closed or disabled.
func TestDoneOfStoppedService(t *testing.T) {
	for name, stop := range map[string]func(*Service, context.CancelFunc){
		"closed":   func(s *Service, _ context.CancelFunc) { s.Close() },
		"disabled": func(_ *Service, cancel context.CancelFunc) { cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stderr, w := io.Pipe() // a child of the service holds it open
				s := &Service{process: exitedProcess{stderr: stderr}, ended: make(chan struct{}), recordEnd: func(string) {}}
				s.boxOnce.Do(func() {}) // there is no sandbox
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				began := time.Now()
				s.watch(ctx, func() {})
				synctest.Wait()
				go stop(s, cancel)
				<-s.Done()
				if d := time.Since(began); d > 0 {
					t.Errorf("done after %v", d)
				}
				w.Close()
			})
		})
	}
}
