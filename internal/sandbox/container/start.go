package container

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/loadout-dev/loadout/internal/sandbox/bundle"
	"github.com/loadout-dev/loadout/internal/sandbox/execute"
	"github.com/loadout-dev/loadout/internal/sandbox/launcher"
	"github.com/loadout-dev/loadout/internal/sandbox/prepare"
	"github.com/loadout-dev/loadout/sandbox"
)

// Start creates a container and waits until commands can run in it.
func (b *Backend) Start(ctx context.Context, spec *sandbox.Spec) (sandbox.Sandbox, error) {
	if err := prepare.Check(spec); err != nil {
		return nil, err
	}
	if len(spec.Network.Allow) > 0 {
		return nil, &sandbox.UnsupportedError{Backend: b.Name(), What: "a network with a host allowlist", Fix: "use native or bwrap"}
	}
	e, err := b.findEngine(ctx)
	if err != nil {
		return nil, err
	}
	if err := b.ensureImage(ctx, e); err != nil {
		return nil, err
	}
	b.sweep(ctx, e)
	s := &instance{b: b, engine: e, spec: spec, name: newName(), known: map[string]bool{}, running: map[*process]bool{}}
	if err := s.start(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// instance is a running container. It implements [sandbox.Sandbox].
type instance struct {
	b      *Backend
	engine *engine
	spec   *sandbox.Spec
	name   string
	held   []*bundle.Bundle
	// enforced is the result of enforcedLayers, set by start.
	enforced map[string]string

	mu      sync.Mutex
	known   map[string]bool // programs that are known to exist
	running map[*process]bool
	next    int
	closed  bool
	calls   sync.WaitGroup // calls that run in the background
}

func (s *instance) start(ctx context.Context) error {
	binds, err := s.binds()
	if err != nil {
		return err
	}
	unavailable := func(what string, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return &sandbox.UnavailableError{Backend: s.b.Name(), Missing: what, Err: err}
	}
	if _, err := s.engine.call(ctx, nil, s.b.createArguments(s.engine, s.name, s.spec, binds)...); err != nil {
		return unavailable("creating a container", err)
	}
	if _, err := s.engine.call(ctx, nil, "start", s.name); err != nil {
		return unavailable("starting a container", err)
	}
	// Files are sent as a stream, because engines cannot copy files into
	// in-memory file systems.
	r, w := io.Pipe()
	packed := make(chan error, 1)
	go func() {
		err := writeArchive(w, s.spec)
		w.CloseWithError(err)
		packed <- err
	}()
	said, err := s.engine.call(ctx, r, "exec", "-i", "--user", user, s.name, "sh", "-c", inspectScript, strconv.Itoa(os.Getpid()))
	r.Close()
	if packErr := <-packed; packErr != nil && !errors.Is(packErr, io.ErrClosedPipe) {
		return packErr
	}
	if err != nil {
		return unavailable("copying files into a container", err)
	}
	// Engines ignore options that they cannot apply, sometimes without a
	// warning.
	seen := parseFacts(said)
	if faults := s.b.faults(seen, s.spec); len(faults) > 0 {
		return &sandbox.UnavailableError{Backend: s.b.Name(), Missing: "isolation on this machine", Err: errors.New(strings.Join(faults, "; ")),
			Fix: "use an engine with seccomp that supports containers without a network, such as " + s.engine.kind + " with its defaults"}
	}
	s.enforced = s.b.enforcedLayers(s.engine, seen, s.spec)
	return nil
}

// binds returns the host directories to mount in the container.
func (s *instance) binds() ([]bind, error) {
	cache := s.b.opts.Cache
	if cache == "" {
		var err error
		if cache, err = bundle.Cache(); err != nil {
			return nil, &sandbox.UnavailableError{Backend: s.b.Name(), Missing: "a cache directory", Err: err, Fix: "set HOME or XDG_CACHE_HOME"}
		}
	}
	var out []bind
	for i := range s.spec.Trees {
		t := &s.spec.Trees[i]
		if prepare.IsWritable(t.Path) {
			continue
		}
		c, err := bundle.Open(cache, t)
		if err != nil {
			return nil, err
		}
		s.held = append(s.held, c)
		out = append(out, bind{host: c.Dir, path: t.Path})
	}
	for _, m := range s.spec.Mounts {
		if _, err := os.Stat(m.Host); err != nil { // engines would create a missing directory
			return nil, fmt.Errorf("start sandbox: %w", err)
		}
		out = append(out, bind{m.Host, m.Path, m.Writable})
	}
	return out, nil
}

// sweep removes containers that were created on this machine by processes that
// have exited. Only the first call has an effect.
func (b *Backend) sweep(ctx context.Context, e *engine) {
	b.mu.Lock()
	first := !b.swept
	b.swept = true
	b.mu.Unlock()
	if !first {
		return
	}
	out, err := e.call(ctx, nil, "ps", "--all", "--filter", "label="+label, "--format", "{{.Names}}")
	if err != nil {
		return
	}
	for name := range strings.FieldsSeq(out) {
		if pid := ownerPID(name); pid > 0 && processEnded(pid) {
			e.call(ctx, nil, "rm", "--force", "--volumes", name) // ignore the error; the next start tries again
		}
	}
}

// State returns what the container enforces, as observed from inside when it
// started.
func (s *instance) State() sandbox.State {
	return sandbox.State{Enforced: maps.Clone(s.enforced), Tier: launcher.Tier(s.b.Tier(), s.enforced)}
}

// Close removes the container and kills everything in it.
func (s *instance) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	var all []*process
	for p := range s.running {
		p.killed.Store(true)
		all = append(all, p)
	}
	s.mu.Unlock()
	_, err := s.engine.call(context.Background(), nil, "rm", "--force", "--volumes", s.name)
	if err != nil && strings.Contains(strings.ToLower(err.Error()), "no such container") {
		err = nil
	}
	for _, p := range all {
		if err != nil {
			p.cmd.Process.Kill() // the container may remain, but the caller must not hang
		}
		<-p.done
	}
	s.calls.Wait()
	for _, c := range s.held {
		c.Close()
	}
	if err != nil {
		return fmt.Errorf("remove container %s: %w", s.name, err)
	}
	return nil
}

// Probe runs a command in a container and reports what the container enforces,
// as observed from inside.
func (b *Backend) Probe(ctx context.Context) (*sandbox.Report, error) {
	e, err := b.findEngine(ctx)
	if err != nil {
		return nil, err
	}
	res, err := execute.Run(ctx, b, &sandbox.Spec{}, &sandbox.Cmd{Args: []string{"true"}}, nil)
	if err != nil {
		return nil, err
	}
	if res.Reason != sandbox.OK {
		return nil, &sandbox.UnavailableError{Backend: b.Name(), Missing: "cannot run a program", Err: fmt.Errorf("run test program: %s %s", res.Reason, res.Detail)}
	}
	return report(b, e, res), nil
}
