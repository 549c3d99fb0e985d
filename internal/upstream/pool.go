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

// Defaults for [PoolOptions].
const (
	DefaultIdleTimeout   = 10 * time.Minute
	DefaultCheckInterval = 30 * time.Second
	DefaultMaxConns      = 100 // connections
)

// PoolOptions configures a [Pool].
type PoolOptions struct {
	Dialer        *Dialer       // nil means a zero Dialer, which can connect only to URLs
	Cache         Cache         // tool list cache shared with later processes; nil means none
	IdleTimeout   time.Duration // time after which unused connections are closed; 0 means [DefaultIdleTimeout]
	CheckInterval time.Duration // time between health checks; 0 means [DefaultCheckInterval]
	MaxConns      int           // maximum number of connections; 0 means [DefaultMaxConns]
	Logger        *slog.Logger  // nil discards messages
}

// A Pool shares connections between users of the same server configuration and
// identity. It is safe for concurrent use. Call Close to release its
// connections.
type Pool struct {
	o     PoolOptions
	ctx   context.Context
	stop  context.CancelCauseFunc
	group sync.WaitGroup // goroutines of all servers

	// mu guards the fields below. Lock it before, never after, the mutex of a
	// Server. It is never held during I/O.
	mu      sync.Mutex
	servers map[string]*Server
	open    int // number of connections, including attempts
	watch   map[int]func(*Server)
	watches int
}

var errClosed = errors.New("connection pool is closed")

// NewPool returns an empty pool. o may be nil.
func NewPool(o *PoolOptions) *Pool {
	p := &Pool{servers: map[string]*Server{}, watch: map[int]func(*Server){}}
	if o != nil {
		p.o = *o
	}
	if p.o.Dialer == nil {
		p.o.Dialer = &Dialer{}
	}
	if p.o.IdleTimeout <= 0 {
		p.o.IdleTimeout = DefaultIdleTimeout
	}
	if p.o.CheckInterval <= 0 {
		p.o.CheckInterval = DefaultCheckInterval
	}
	if p.o.MaxConns <= 0 {
		p.o.MaxConns = DefaultMaxConns
	}
	if p.o.Logger == nil {
		p.o.Logger = slog.New(slog.DiscardHandler)
	}
	p.ctx, p.stop = context.WithCancelCause(context.Background())
	return p
}

// Server returns the server with the configuration c for an identity: the user
// whose credentials c contains, and the session if the server is stateful. It
// returns the same Server for equal arguments, and does not connect. The caller
// must call [Server.Release] after use.
func (p *Pool) Server(c *Config, identity string) *Server {
	digest := c.Digest()
	// The digest does not cover the values of variables.
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
	s.addUser()
	return s
}

// Servers returns the servers in the pool, sorted by name.
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

// Subscribe calls f after each change to a server's state or tools, on the
// goroutine that made the change. f must not block, but may call the server's
// methods. Call cancel to end the subscription.
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

// Dial opens a connection that is not shared, and records the outcome in the
// server's [Status]. The caller must close the connection.
func (p *Pool) Dial(ctx context.Context, c *Config, o *DialOptions) (*Conn, error) {
	if p.ctx.Err() != nil {
		return nil, errClosed
	}
	s := p.Server(c, "")
	conn, err := p.o.Dialer.Dial(ctx, c, o)
	if ctx.Err() == nil || err == nil {
		s.recordDial(conn, err)
	}
	if err != nil {
		s.Release()
		return nil, err
	}
	gone := func() {
		select {
		case <-conn.Done():
			s.connClosed()
		case <-p.ctx.Done():
		}
		s.Release()
	}
	if !p.startGoroutine(gone) {
		s.connClosed()
		s.Release()
		conn.Close()
		return nil, errClosed
	}
	return conn, nil
}

// Close closes all connections, cancels running calls and waits for server
// processes to exit. Later calls to the servers return an error.
func (p *Pool) Close() error {
	p.mu.Lock() // startGoroutine checks whether the pool is closed while holding mu
	p.stop(errClosed)
	p.mu.Unlock()
	p.group.Wait()
	return nil
}

// startGoroutine runs f in a goroutine that Close waits for. It returns false
// if the pool is already closed.
func (p *Pool) startGoroutine(f func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() != nil {
		return false
	}
	p.group.Go(f)
	return true
}

// acquireConn reserves a connection for a server. If the limit is reached, it
// disconnects the other server that has been idle longest. It returns an error
// if no other server is idle.
func (p *Pool) acquireConn(target *Server) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open >= p.o.MaxConns {
		var oldest *Server
		var at time.Time
		for _, s := range p.servers {
			if used, ok := s.idleSince(); ok && s != target && (oldest == nil || used.Before(at)) {
				oldest, at = s, used
			}
		}
		if oldest == nil {
			return fmt.Errorf("too many connections in use (limit %d)", p.open)
		}
		oldest.disconnect()
	}
	p.open++
	return nil
}

func (p *Pool) releaseConn() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open--
}

// removeUnused removes s from the pool if s has no users and no connections.
func (p *Pool) removeUnused(s *Server) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.servers[s.key] == s && s.isUnused() {
		delete(p.servers, s.key)
	}
}

// notify calls the subscribers with s.
func (p *Pool) notify(s *Server) {
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
