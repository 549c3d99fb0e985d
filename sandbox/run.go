package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// Result is what came of one command.
type Result struct {
	ExitCode  int
	Signal    string
	Reason    Reason
	Detail    string // more on the reason, for people
	Stdout    []byte // at most Limits.Output
	Stderr    []byte
	Truncated bool // more was written than is kept
	Killed    bool // it did not end by itself
	Duration  time.Duration
	CPU       time.Duration
	MaxRSS    int64
	Backend   string
	Tier      Tier
	Enforced  map[string]string
	Denied    []string
	Files     []File // what was collected
}

// RunOptions adjust [Run]. The zero value gives no input, keeps the output and
// collects nothing.
type RunOptions struct {
	Stdin io.Reader
	// Stdout and Stderr receive the output as it comes, as much as is kept and
	// with secrets replaced. What they return is passed over.
	Stdout, Stderr io.Writer
	// Whole gives them all of it, and lets a command write without end: for a
	// person, who reads it or has it written to a file. What the result keeps is
	// bounded all the same.
	Whole bool
	// Collect receives the files that the command left, see [Sandbox.Collect].
	// Those for which it returns true are in the result.
	Collect func(File, io.Reader) (bool, error)
}

// Run prepares a sandbox, runs one command to its end, collects its files and
// removes the sandbox. A command that fails or is ended is a result. An error is
// of the start, of the collection, or the cause of ctx's end; with the latter
// comes the result as far as there is one.
func Run(ctx context.Context, b Backend, spec *Spec, cmd *Cmd, opts *RunOptions) (*Result, error) {
	s, err := b.Start(ctx, spec)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	res, err := RunIn(ctx, s, spec, cmd, opts)
	if res != nil {
		res.Backend, res.Tier = b.Name(), b.Tier()
	}
	return res, err
}

// RunIn is [Run] in a sandbox that was started with spec and is kept.
func RunIn(ctx context.Context, s Sandbox, spec *Spec, cmd *Cmd, opts *RunOptions) (*Result, error) {
	if opts == nil {
		opts = &RunOptions{}
	}
	limits := spec.Limits.WithDefaults()
	began := time.Now()
	p, err := s.Exec(ctx, cmd)
	if err != nil {
		if se, ok := errors.AsType[*StartError](err); ok {
			return &Result{ExitCode: 127, Reason: StartFailed, Detail: se.Error(), Enforced: s.State().Enforced}, nil
		}
		return nil, err
	}
	r := &running{p: p}
	secrets := spec.secrets()
	stdout := &capture{max: limits.Output, tee: opts.Stdout, whole: opts.Whole, redact: newRedactor(secrets), full: func() { r.kill(Output) }}
	stderr := &capture{max: limits.Output, tee: opts.Stderr, whole: opts.Whole, redact: newRedactor(secrets), full: func() { r.kill(Output) }}

	stopWatching := context.AfterFunc(ctx, func() { r.kill(reasonOf(ctx)) })
	defer stopWatching()
	timeout := cmd.Timeout
	if timeout == 0 {
		timeout = limits.Wall
	}
	if timeout > 0 {
		t := time.AfterFunc(timeout, func() { r.kill(Timeout) })
		defer t.Stop()
	}
	feed(p, opts.Stdin)
	var reading sync.WaitGroup
	reading.Go(func() { stdout.read(p.Stdout()) })
	reading.Go(func() { stderr.read(p.Stderr()) })
	exit := p.Wait()
	reading.Wait()

	res := &Result{
		ExitCode: exit.Code, Signal: exit.Signal, Reason: exit.Reason, Detail: exit.Detail, CPU: exit.CPU, MaxRSS: exit.MaxRSS,
		Stdout: stdout.kept, Stderr: stderr.kept, Truncated: !opts.Whole && (stdout.cut || stderr.cut), Duration: time.Since(began),
	}
	// What ended by itself just before it was to be ended has not been, but for one
	// that wrote too much: it has.
	if why := r.why(); why == Output || why != "" && (exit.Signal != "" || exit.Code != 0) {
		res.Reason, res.Killed = why, true
		switch why {
		case Timeout:
			res.Detail = fmt.Sprintf("it took longer than %v", timeout)
		case Output:
			res.Detail = fmt.Sprintf("it wrote more than %d bytes of output", 4*limits.Output)
		}
	} else if exit.Reason != OK && exit.Reason != Exited {
		res.Killed = true
	}
	if err := context.Cause(ctx); err != nil && res.Reason != Disabled && res.Killed {
		fillState(res, s, spec)
		return res, err
	}
	err = collect(context.WithoutCancel(ctx), s, opts, res)
	if errors.Is(err, ErrEnded) && res.Reason != OK {
		err, res.Files = nil, nil // it took the sandbox with it
	}
	fillState(res, s, spec)
	return res, err
}

func fillState(res *Result, s Sandbox, spec *Spec) {
	st := s.State()
	res.Enforced = st.Enforced
	for _, host := range st.Denied {
		res.Denied = append(res.Denied, spec.Hide(host))
	}
}

// running is a process that may be ended for a reason of ours; the first counts.
type running struct {
	p      Process
	reason atomic.Pointer[Reason]
}

func (r *running) kill(why Reason) {
	r.reason.CompareAndSwap(nil, &why)
	r.p.Kill()
}

func (r *running) why() Reason {
	if p := r.reason.Load(); p != nil {
		return *p
	}
	return ""
}

func reasonOf(ctx context.Context) Reason {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, ErrDisabled):
		return Disabled
	case errors.Is(cause, context.DeadlineExceeded):
		return Timeout
	}
	return Exited
}

// feed gives a command its input. It goes on by itself: a reader that blocks,
// as a terminal does, must not hold up the end of the command.
func feed(p Process, in io.Reader) {
	if in == nil {
		p.Stdin().Close()
		return
	}
	go func() {
		io.Copy(p.Stdin(), in) // a command need not read
		p.Stdin().Close()
	}()
}

func collect(ctx context.Context, s Sandbox, opts *RunOptions, res *Result) error {
	if opts.Collect == nil {
		return nil
	}
	err := s.Collect(ctx, func(f File, r io.Reader) error {
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

// capture keeps the beginning of an output.
type capture struct {
	max    int64
	tee    io.Writer
	whole  bool // give the tee all
	redact *redactor
	full   func()

	total int64
	kept  []byte
	cut   bool
}

func (c *capture) read(r io.Reader) {
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		c.total += int64(n)
		c.keep(c.redact.write(buf[:n]))
		if c.total > 4*c.max && c.full != nil && !c.whole {
			c.full()
			c.full = nil
		}
		if err != nil {
			c.keep(c.redact.flush())
			return
		}
	}
}

func (c *capture) keep(b []byte) {
	if c.whole && c.tee != nil && len(b) > 0 {
		c.tee.Write(b)
	}
	if room := c.max - int64(len(c.kept)); int64(len(b)) > room {
		b, c.cut = b[:room], true
	}
	if len(b) == 0 {
		return
	}
	c.kept = append(c.kept, b...)
	if c.tee != nil && !c.whole {
		c.tee.Write(b)
	}
}
