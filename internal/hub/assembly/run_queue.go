package assembly

import (
	"context"
	"fmt"
	"sync"

	"github.com/loadout-dev/loadout/internal/hub/queue"
	"github.com/loadout-dev/loadout/sandbox"
)

// queuedBackend is a back end whose sandboxes take a place among those for code that runs on
// this node: a run or a command until its sandbox is closed, and a service, which is
// there for long, only while it starts.
type queuedBackend struct {
	sandbox.Backend
	queue *queue.Queue
	user  string
}

// newQueuedBackend bounds a back end, where there is a queue.
func newQueuedBackend(b sandbox.Backend, places *queue.Queue, user string) sandbox.Backend {
	if b == nil || places == nil {
		return b
	}
	return &queuedBackend{b, places, user}
}

// chooser is a back end that finds out what it is, as that of sandbox/auto.
type chooser interface {
	Choose(ctx context.Context) (sandbox.Backend, *sandbox.Report, error)
}

// Choose returns the back end that was chosen, which takes places too.
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

// serviceKey marks the context in which a service is started.
type serviceKey struct{}

func withService(ctx context.Context) context.Context {
	return context.WithValue(ctx, serviceKey{}, true)
}

// Start waits for a place, and starts the sandbox.
func (p *queuedBackend) Start(ctx context.Context, spec *sandbox.Spec) (sandbox.Sandbox, error) {
	leave, err := p.queue.Acquire(ctx, p.user)
	if err != nil {
		return nil, fmt.Errorf("wait for a place to run code: %w", err)
	}
	box, err := p.Backend.Start(ctx, spec)
	if err != nil {
		leave()
		return nil, err
	}
	if service, _ := ctx.Value(serviceKey{}).(bool); service {
		leave()
		return box, nil
	}
	return &queuedSandbox{box, leave}, nil
}

// queuedSandbox gives its place back when it is closed.
type queuedSandbox struct {
	sandbox.Sandbox
	release func()
}

func (b *queuedSandbox) Close() error {
	defer b.release()
	return b.Sandbox.Close()
}

// Bounds of the services that skills and documents bring, as servers and providers.
const (
	maxServices     = 64 // on a node
	maxUserServices = 8
)

// serviceLimits counts those that run.
type serviceLimits struct {
	mu     sync.Mutex
	all    int
	byUser map[string]int // by user
}

// acquire counts one more of a user, or says that there are as many as may be.
func (s *serviceLimits) acquire(user string) (leave func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.byUser[user] >= maxUserServices:
		return nil, fmt.Errorf("%d servers of skills and agents run for you, which is the limit; they end when they are not used for some minutes", maxUserServices)
	case s.all >= maxServices:
		return nil, fmt.Errorf("%d servers of skills and agents run on this node, which is the limit; try again in some minutes", maxServices)
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
