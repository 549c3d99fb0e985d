package execution

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/internal/sandbox/execute"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/sandbox"
)

const (
	maxStderr = 64 << 10
	// closeGrace is how long a service may take to exit after its input is
	// closed.
	closeGrace = 2 * time.Second
	// stderrGrace is how long the rest of standard error may take after the
	// command has exited by itself. A child of the command can hold it open.
	stderrGrace = time.Second
)

// Service is a running long-lived command. Read and Write access its standard
// output and input. One goroutine may read while another writes. All other
// methods are safe for concurrent use. The caller must close the service, even
// after it has exited.
type Service struct {
	Skill   string        // "" for a project's command
	Digest  policy.Digest // digest of the skill, or of the project's configuration
	Backend string        // name of the sandbox backend
	Package *Package      // package that npx or uvx started; nil for other commands
	Notes   []string      // notes for the user

	box       sandbox.Sandbox
	workspace *workspace
	logger    *slog.Logger // may be nil
	process   sandbox.Process
	stdout    io.Reader
	secrets   []sandbox.Secret
	ctx       context.Context // done when the permission is revoked
	recordEnd func(reason string)
	check     func() error // called before each write; may be nil

	ended chan struct{} // closed when the command has exited and, unless it was stopped, its standard error has been read
	exit  sandbox.Exit  // set before ended is closed
	err   error

	closeOnce      sync.Once
	boxOnce        sync.Once
	boxErr         error
	closeRequested chan struct{} // closed by Close
	drained        chan struct{} // closed once standard error has been read completely

	stderr tailBuffer
}

// watch monitors the service in the background. It kills the service when ctx
// is done, and calls release after the service has exited.
func (s *Service) watch(ctx context.Context, release func()) {
	s.ctx, s.closeRequested, s.drained = ctx, make(chan struct{}), make(chan struct{})
	unwatch := context.AfterFunc(ctx, func() {
		s.process.Kill()
		s.closeBox()
	})
	go func() {
		io.Copy(&s.stderr, s.process.Stderr())
		close(s.drained)
	}()
	go func() {
		s.exit = s.process.Wait()
		unwatch()
		s.err = s.endReason()
		reason := string(s.exit.Reason)
		if s.err == nil {
			reason = "closed"
		} else if errors.Is(s.err, execute.ErrDisabled) {
			reason = string(sandbox.Disabled)
		}
		s.recordEnd(reason)
		release()
		select {
		case <-s.drained:
		case <-s.closeRequested:
		case <-ctx.Done():
		case <-time.After(stderrGrace):
		}
		close(s.ended)
	}()
}

// endReason returns an error that says why the service exited, or nil if it was
// closed.
func (s *Service) endReason() error {
	if cause := context.Cause(s.ctx); errors.Is(cause, execute.ErrDisabled) {
		return fmt.Errorf("service killed: %w", cause)
	}
	select {
	case <-s.closeRequested:
		return nil
	default:
	}
	why := fmt.Sprintf("exited with code %d", s.exit.Code)
	switch {
	case s.exit.Detail != "":
		why = "killed: " + s.exit.Detail
	case s.exit.Signal != "":
		why = "killed by signal " + s.exit.Signal
	}
	return errors.New(why)
}

// Read reads from the service's standard output. At the end, it returns
// [io.EOF]. If the permission was revoked, the error matches
// [execute.ErrDisabled].
func (s *Service) Read(b []byte) (int, error) {
	n, err := s.stdout.Read(b)
	if err != nil {
		if cause := context.Cause(s.ctx); errors.Is(cause, execute.ErrDisabled) {
			err = cause
		}
	}
	return n, err
}

// Write writes to the service's standard input. For a project's command, it
// returns an error if the configuration is no longer trusted.
func (s *Service) Write(b []byte) (int, error) {
	if s.check != nil {
		if err := s.check(); err != nil {
			return 0, err
		}
	}
	return s.process.Stdin().Write(b)
}

// Close closes the service's input and waits up to two seconds for the service
// to exit. It then kills the remaining processes and waits for them to exit.
func (s *Service) Close() error {
	s.closeOnce.Do(func() {
		close(s.closeRequested)
		s.process.Stdin().Close()
		patience := time.NewTimer(closeGrace)
		defer patience.Stop()
		select {
		case <-s.ended:
		case <-patience.C:
			s.process.Kill()
			s.closeBox()
		}
	})
	<-s.ended
	err := s.closeBox()
	<-s.drained
	return err
}

// closeBox kills the remaining processes in the sandbox, applies the changes to
// the workspace unless the permission was revoked, and removes the sandbox.
func (s *Service) closeBox() error {
	s.boxOnce.Do(func() {
		if !errors.Is(context.Cause(s.ctx), execute.ErrDisabled) {
			s.boxErr = s.applyChanges()
		}
		s.boxErr = errors.Join(s.boxErr, s.box.Close())
		io.Copy(io.Discard, s.process.Stdout()) // discard the output that is already in the pipe
	})
	return s.boxErr
}

// applyChanges applies the changes to the workspace. Changes to steering files
// are not applied, because no user can be asked about them.
func (s *Service) applyChanges() error {
	started := len(s.workspace.notes)
	err := s.workspace.apply(context.Background(), s.box)
	for _, note := range s.workspace.notes[started:] {
		if s.logger != nil {
			s.logger.Warn("changes of a server to the workspace", "skill", s.Skill, "note", note)
		}
	}
	return err
}

// Stderr returns the last 64 KiB of standard error, with secrets redacted.
func (s *Service) Stderr() string {
	return strings.ToValidUTF8(string(execute.Redact(s.stderr.bytes(), s.secrets...)), "\uFFFD")
}

// Done returns a channel that is closed when the service has exited. Stderr is
// complete then, unless a child of the service still holds standard error open.
func (s *Service) Done() <-chan struct{} { return s.ended }

// Err returns an error that says why the service exited. If the permission was
// revoked, the error matches [execute.ErrDisabled]. Err returns nil while the
// service runs, and after Close.
func (s *Service) Err() error {
	select {
	case <-s.ended:
		return s.err
	default:
		return nil
	}
}
