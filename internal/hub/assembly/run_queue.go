package assembly

import (
	"context"
	"fmt"
	"sync"

	"github.com/loadout-dev/loadout/internal/hub/queue"
	"github.com/loadout-dev/loadout/sandbox"
)

// queuedBackend is a backend that uses a queue to limit how many sandboxes run at
// once. A script or command occupies a slot until its sandbox is closed, and a
// long-running service only while it starts.
type queuedBackend struct {
	sandbox.Backend
	queue *queue.Queue
	user  string
}

// newQueuedBackend wraps b with a queue. It returns b itself if there is no
// queue.
func newQueuedBackend(b sandbox.Backend, slots *queue.Queue, user string) sandbox.Backend {
	if b == nil || slots == nil {
		return b
	}
	return &queuedBackend{b, slots, user}
}

// chooser is implemented by backends that select another backend, such as
// sandbox/auto.
type chooser interface {
	Choose(ctx context.Context) (sandbox.Backend, *sandbox.Report, error)
}

// Choose returns the backend that the wrapped backend selects, with the same
// queue.
func (p *queuedBackend) Choose(ctx context.Context) (sandbox.Backend, *sandbox.Report, error) {
	c, ok := p.Backend.(chooser)
	if !ok {
		return p, nil, nil
	}
	b, report, err := c.Choose(ctx)
	if err != nil {
		return nil, nil, err
	}
	return &queuedBackend{b, p.queue, p.user}, report, nil
}

// serviceKey is the context key that marks a sandbox as being started for a
// service.
type serviceKey struct{}

func withService(ctx context.Context) context.Context {
	return context.WithValue(ctx, serviceKey{}, true)
}

// Start waits for a slot and starts the sandbox.
func (p *queuedBackend) Start(ctx context.Context, spec *sandbox.Spec) (sandbox.Sandbox, error) {
	release, err := p.queue.Acquire(ctx, p.user)
	if err != nil {
		return nil, fmt.Errorf("wait for a sandbox slot: %w", err)
	}
	box, err := p.Backend.Start(ctx, spec)
	if err != nil {
		release()
		return nil, err
	}
	if service, _ := ctx.Value(serviceKey{}).(bool); service {
		release()
		return box, nil
	}
	return &queuedSandbox{box, release}, nil
}

// queuedSandbox releases its slot when it is closed.
type queuedSandbox struct {
	sandbox.Sandbox
	release func()
}

func (b *queuedSandbox) Close() error {
	defer b.release()
	return b.Sandbox.Close()
}

// Limits for services defined by skills and documents, such as MCP servers.
const (
	maxServices     = 64 // per node
	maxUserServices = 8
)

// serviceLimits counts running services and limits their number.
type serviceLimits struct {
	mu     sync.Mutex
	all    int
	byUser map[string]int
}

// acquire reserves a slot for a user's service until release is called. It
// returns an error if a limit is reached.
func (s *serviceLimits) acquire(user string) (release func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.byUser[user] >= maxUserServices:
		return nil, fmt.Errorf("too many running skill and agent servers (limit %d per user); unused ones stop after a few minutes", maxUserServices)
	case s.all >= maxServices:
		return nil, fmt.Errorf("too many running skill and agent servers (limit %d per node); try again in a few minutes", maxServices)
	}
	if s.byUser == nil {
		s.byUser = map[string]int{}
	}
	s.all++
	s.byUser[user]++
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all--
		if s.byUser[user]--; s.byUser[user] == 0 {
			delete(s.byUser, user)
		}
	}), nil
}
