package upstream

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

// Times and bounds of a pool, where its options say nothing else.
const (
	DefaultIdle  = 10 * time.Minute
	DefaultCheck = 30 * time.Second
	DefaultMax   = 100 // connections
)

// PoolOptions are the choices for a [Pool].
type PoolOptions struct {
	Dialer *Dialer       // nil is a zero Dialer: servers with a URL only
	Cache  Cache         // of listings, for processes to come; nil is none
	Idle   time.Duration // a connection that was not used for so long is closed; 0 is [DefaultIdle]
	Check  time.Duration // between two health checks; 0 is [DefaultCheck]
	Max    int           // connections at a time; 0 is [DefaultMax]
	Logger *slog.Logger  // nil discards
}

// A Pool keeps connections to servers, shared by whoever asks for the same
// configuration with the same identity. It is safe for concurrent use. Close ends
// everything that it has begun.
type Pool struct {
	o     PoolOptions
	ctx   context.Context
	stop  context.CancelCauseFunc
	group sync.WaitGroup // the goroutines of all servers

	// mu guards what follows. It is taken before that of a Server, never after,
	// and held for memory only.
	mu      sync.Mutex
	servers map[string]*Server
	open    int // connections, those on their way included
	watch   map[int]func(*Server)
	watches int
}

var errClosed = errors.New("the pool of connections is closed")

// NewPool returns an empty pool. It connects to nothing. o may be nil.
func NewPool(o *PoolOptions) *Pool {
	p := &Pool{servers: map[string]*Server{}, watch: map[int]func(*Server){}}
	if o != nil {
		p.o = *o
	}
	if p.o.Dialer == nil {
		p.o.Dialer = &Dialer{}
	}
	if p.o.Idle <= 0 {
		p.o.Idle = DefaultIdle
	}
	if p.o.Check <= 0 {
		p.o.Check = DefaultCheck
	}
	if p.o.Max <= 0 {
		p.o.Max = DefaultMax
	}
	if p.o.Logger == nil {
		p.o.Logger = slog.New(slog.DiscardHandler)
	}
	p.ctx, p.stop = context.WithCancelCause(context.Background())
	return p
}

// Server returns the server of c for an identity: the person whose credentials
// are in c, and with the session where c is stateful. The same arguments give the
// same Server. It does not connect. [Server.Release] gives it back.
func (p *Pool) Server(c *Config, identity string) *Server {
	digest := c.Digest()
	// The digest is of what was written; values behind variables count as well.
	resolved, _ := json.Marshal(c)
	key := fmt.Sprintf("%s %x %s", digest, sha256.Sum256(resolved), identity)
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.servers[key]
	if s == nil {
		if identity != "" {
			own := *c
			own.identity = identity
			c = &own
		}
		s = newServer(p, c, key, digest)
		p.servers[key] = s
	}
	s.hold()
	return s
}

// Servers are those of the pool, in order of their names.
func (p *Pool) Servers() []*Server {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []*Server
	for _, s := range p.servers {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *Server) int {
		if c := strings.Compare(a.config.Name, b.config.Name); c != 0 {
			return c
		}
		return strings.Compare(a.key, b.key)
	})
	return all
}

// Subscribe has f called after each change of the state or the tools of a server,
// from the goroutine that made it: f must not wait, and may ask the server. The
// result ends that.
func (p *Pool) Subscribe(f func(*Server)) (cancel func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watches++
	n := p.watches
	p.watch[n] = f
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.watch, n)
	}
}

// Dial makes a connection that the pool does not share: the caller closes it. What
// comes of it counts for the [Status] of the server.
func (p *Pool) Dial(ctx context.Context, c *Config, o *DialOptions) (*Conn, error) {
	if p.ctx.Err() != nil {
		return nil, errClosed
	}
	s := p.Server(c, "")
	conn, err := p.o.Dialer.Dial(ctx, c, o)
	if ctx.Err() == nil || err == nil {
		s.dialled(conn, err)
	}
	if err != nil {
		s.Release()
		return nil, err
	}
	gone := func() {
		select {
		case <-conn.Done():
			s.left()
		case <-p.ctx.Done():
		}
		s.Release()
	}
	if !p.begin(gone) {
		s.left()
		s.Release()
		conn.Close()
		return nil, errClosed
	}
	return conn, nil
}

// Close ends all connections, with calls that are on their way, and waits until
// the processes are gone. Servers of the pool refuse calls from then on.
func (p *Pool) Close() error {
	p.mu.Lock() // who begins a goroutine has it, and sees whether we are closed
	p.stop(errClosed)
	p.mu.Unlock()
	p.group.Wait()
	return nil
}

// begin runs f in a goroutine that Close waits for, if there is no Close yet.
func (p *Pool) begin(f func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() != nil {
		return false
	}
	p.group.Go(f)
	return true
}

// enter makes room for one more connection: that of the server which was not used
// for the longest time, and is not in use, goes.
func (p *Pool) enter(of *Server) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open >= p.o.Max {
		var oldest *Server
		var at time.Time
		for _, s := range p.servers {
			if used, ok := s.spare(); ok && s != of && (oldest == nil || used.Before(at)) {
				oldest, at = s, used
			}
		}
		if oldest == nil {
			return fmt.Errorf("%d connections are open and in use, which is the limit: end some of them first", p.open)
		}
		oldest.drop()
	}
	p.open++
	return nil
}

func (p *Pool) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open--
}

// forget takes a server out that nobody holds and that does nothing.
func (p *Pool) forget(s *Server) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.servers[s.key] == s && s.unused() {
		delete(p.servers, s.key)
	}
}

// tell calls the subscribers.
func (p *Pool) tell(s *Server) {
	p.mu.Lock()
	fs := make([]func(*Server), 0, len(p.watch))
	for _, f := range p.watch {
		fs = append(fs, f)
	}
	p.mu.Unlock()
	for _, f := range fs {
		f(s)
	}
}
