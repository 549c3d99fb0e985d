// Package execute runs a command in a sandbox until it exits, and returns its
// output, its files and the reason why it ended. Start with [Run].
package execute

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loadout-dev/loadout/internal/redact"
	"github.com/loadout-dev/loadout/internal/sandbox/prepare"
	"github.com/loadout-dev/loadout/sandbox"
)

// Result is the result of running a command. See [sandbox.Exit] and [sandbox.State] for fields
// without a comment.
type Result struct {
	ExitCode  int // 127 with the reason [sandbox.StartFailed]
	Signal    string
	Reason    sandbox.Reason
	Detail    string        // explains Reason, for display
	Stdout    []byte        // truncated to Limits.Output, with secrets redacted
	Stderr    []byte        // like Stdout
	Truncated bool          // output beyond the limit was dropped
	Killed    bool          // the command did not exit by itself
	Duration  time.Duration // wall time, without the start of the sandbox
	CPU       time.Duration
	MaxRSS    int64
	Backend   string       // name of the backend; not set by [RunIn]
	Tier      sandbox.Tier // tier of the sandbox; not set by [RunIn]
	Enforced  map[string]string
	Denied    []string       // with secrets redacted
	Files     []sandbox.File // collected files, with their hashes
}

// Options configures [Run]. The zero value means no input, no streaming and
// no collected files.
type Options struct {
	// Stdin is the command's input; nil means none. A goroutine reads it, and
	// may still block in Read after the run. Run does not close it.
	Stdin io.Reader
	// Stdout and Stderr receive the output while the command runs, up to
	// Limits.Output and with secrets redacted. Nil discards it. Write errors
	// are ignored. They are written concurrently, so a writer that is used for
	// both must be safe for concurrent use.
	Stdout, Stderr io.Writer
	// Unlimited streams all output to Stdout and Stderr and never kills a
	// command because of its output. It is for interactive use. The output in
	// the result is still limited, but [Result.Truncated] is not set.
	Unlimited bool
	// Collect is called for each file in the command's output; see
	// [sandbox.Sandbox.Collect]. The result lists the files for which it returns true.
	// It need not read the whole file.
	Collect func(sandbox.File, io.Reader) (bool, error)
}

// ErrDisabled means that the permission to run was revoked. It is the cause of a
// cancelled context, or the reason why a service or a lease ended. A command
// that is killed for this reason exits with [sandbox.Disabled].
var ErrDisabled = errors.New("permission to run was revoked")

// Run starts a sandbox, runs a command in it until it exits, collects its files
// and closes the sandbox. opts may be nil. A command that fails, is killed or
// cannot be started is not an error. Errors come from starting the sandbox, see
// [sandbox.Backend.Start], or collecting the files.
//
// If ctx is done, Run kills the command and returns the cause and a partial or
// nil result. If the cause matches [ErrDisabled], a running command's result
// has the reason [sandbox.Disabled], and the cause is not returned.
func Run(ctx context.Context, b sandbox.Backend, spec *sandbox.Spec, cmd *sandbox.Cmd, opts *Options) (*Result, error) {
	s, err := b.Start(ctx, spec)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	res, err := RunIn(ctx, s, spec, cmd, opts)
	if res != nil {
		res.Backend, res.Tier = b.Name(), cmp.Or(s.State().Tier, b.Tier())
	}
	return res, err
}

// RunIn is like [Run], but uses a running sandbox that was started with spec.
// It does not close the sandbox. It may be called concurrently for the same
// sandbox.
func RunIn(ctx context.Context, s sandbox.Sandbox, spec *sandbox.Spec, cmd *sandbox.Cmd, opts *Options) (*Result, error) {
	if opts == nil {
		opts = &Options{}
	}
	limits := prepare.Limits(spec)
	began := time.Now()
	p, err := s.Exec(ctx, cmd)
	if err != nil {
		if se, ok := errors.AsType[*sandbox.StartError](err); ok {
			return &Result{ExitCode: 127, Reason: sandbox.StartFailed, Detail: se.Error(), Enforced: s.State().Enforced}, nil
		}
		return nil, err
	}
	r := &killable{p: p}
	secrets := redactor(spec)
	stdout := &capture{max: limits.Output, tee: opts.Stdout, unlimited: opts.Unlimited, redact: secrets.Stream(), full: func() { r.kill(sandbox.Output) }}
	stderr := &capture{max: limits.Output, tee: opts.Stderr, unlimited: opts.Unlimited, redact: secrets.Stream(), full: func() { r.kill(sandbox.Output) }}

	stopWatching := context.AfterFunc(ctx, func() { r.kill(cancelReason(ctx)) })
	defer stopWatching()
	timeout := cmd.Timeout
	if timeout == 0 {
		timeout = limits.Wall
	}
	if timeout > 0 {
		t := time.AfterFunc(timeout, func() { r.kill(sandbox.Timeout) })
		defer t.Stop()
	}
	feedInput(p, opts.Stdin)
	var reading sync.WaitGroup
	reading.Go(func() { stdout.readFrom(p.Stdout()) })
	reading.Go(func() { stderr.readFrom(p.Stderr()) })
	exit := p.Wait()
	reading.Wait()

	res := &Result{
		ExitCode: exit.Code, Signal: exit.Signal, Reason: exit.Reason, Detail: exit.Detail, CPU: exit.CPU, MaxRSS: exit.MaxRSS,
		Stdout: stdout.kept, Stderr: stderr.kept, Truncated: !opts.Unlimited && (stdout.cut || stderr.cut), Duration: time.Since(began),
	}
	// A command that succeeded just before it was killed counts as a success,
	// unless it exceeded the output limit.
	if why := r.killReason(); why == sandbox.Output || why != "" && (exit.Signal != "" || exit.Code != 0) {
		res.Reason, res.Killed = why, true
		switch why {
		case sandbox.Timeout:
			res.Detail = fmt.Sprintf("timeout of %v exceeded", timeout)
		case sandbox.Output:
			res.Detail = fmt.Sprintf("output limit exceeded (%d bytes)", 4*limits.Output)
		}
	} else if exit.Reason != sandbox.OK && exit.Reason != sandbox.Exited {
		res.Killed = true
	}
	if err := context.Cause(ctx); err != nil && res.Reason != sandbox.Disabled && res.Killed {
		fillState(res, s, spec)
		return res, err
	}
	err = collectFiles(context.WithoutCancel(ctx), s, opts, res)
	if errors.Is(err, sandbox.ErrEnded) && res.Reason != sandbox.OK {
		err, res.Files = nil, nil // the command ended the sandbox
	}
	fillState(res, s, spec)
	return res, err
}

func fillState(res *Result, s sandbox.Sandbox, spec *sandbox.Spec) {
	st := s.State()
	res.Enforced = st.Enforced
	for _, host := range st.Denied {
		res.Denied = append(res.Denied, RedactText(spec, host))
	}
}

// killable is a process that can be killed. It records the first reason for
// killing it.
type killable struct {
	p      sandbox.Process
	reason atomic.Pointer[sandbox.Reason]
}

func (r *killable) kill(why sandbox.Reason) {
	r.reason.CompareAndSwap(nil, &why)
	r.p.Kill()
}

func (r *killable) killReason() sandbox.Reason {
	if p := r.reason.Load(); p != nil {
		return *p
	}
	return ""
}

func cancelReason(ctx context.Context) sandbox.Reason {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, ErrDisabled):
		return sandbox.Disabled
	case errors.Is(cause, context.DeadlineExceeded):
		return sandbox.Timeout
	}
	return sandbox.Exited
}

// feedInput copies input to a command in the background. A reader that blocks,
// such as a terminal, must not delay the command's exit.
func feedInput(p sandbox.Process, in io.Reader) {
	if in == nil {
		p.Stdin().Close()
		return
	}
	go func() {
		io.Copy(p.Stdin(), in) // the command may not read its input
		p.Stdin().Close()
	}()
}

func collectFiles(ctx context.Context, s sandbox.Sandbox, opts *Options, res *Result) error {
	if opts.Collect == nil {
		return nil
	}
	err := s.Collect(ctx, func(f sandbox.File, r io.Reader) error {
		h := sha256.New()
		r = io.TeeReader(r, h)
		keep, err := opts.Collect(f, r)
		if err != nil || !keep {
			return err
		}
		if _, err := io.Copy(io.Discard, r); err != nil {
			return err
		}
		f.SHA256 = hex.EncodeToString(h.Sum(nil))
		res.Files = append(res.Files, f)
		return nil
	})
	if err != nil {
		return fmt.Errorf("collect files: %w", err)
	}
	return nil
}

// capture stores the start of a command's output.
type capture struct {
	max       int64
	tee       io.Writer
	unlimited bool // write everything to tee
	redact    *redact.Stream
	full      func()

	total int64
	kept  []byte
	cut   bool
}

func (c *capture) readFrom(r io.Reader) {
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		c.total += int64(n)
		c.store(c.redact.Write(buf[:n]))
		if c.total > 4*c.max && c.full != nil && !c.unlimited {
			c.full()
			c.full = nil
		}
		if err != nil {
			c.store(c.redact.Flush())
			return
		}
	}
}

func (c *capture) store(b []byte) {
	if c.unlimited && c.tee != nil && len(b) > 0 {
		c.tee.Write(b)
	}
	if room := c.max - int64(len(c.kept)); int64(len(b)) > room {
		b, c.cut = b[:room], true
	}
	if len(b) == 0 {
		return
	}
	c.kept = append(c.kept, b...)
	if c.tee != nil && !c.unlimited {
		c.tee.Write(b)
	}
}
