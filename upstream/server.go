package upstream

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// A Server is one server of a [Pool]: connected when it is needed, watched while
// it is, and reconnected as long as somebody wants it. Its methods are safe for
// concurrent use.
type Server struct {
	pool   *Pool
	config *Config
	key    string
	digest string
	slots  chan struct{} // one for each call at a time; nil is no bound

	// mu guards what follows, and the instances. It is held for memory only.
	mu        sync.Mutex
	state     State
	since     time.Time
	err       error // of the last failure; nil once connected
	era       string
	transport string
	latency   time.Duration
	listing   *Listing
	listed    bool // by a connection of this process
	stderr    string
	noise     []string
	holders   int
	outside   int // connections that [Pool.Dial] made
	used      time.Time
	instances []*instance
	turn      chan struct{} // closed, and replaced, at each change

	fetch sync.Once // of the cache
}

func newServer(p *Pool, c *Config, key, digest string) *Server {
	now := time.Now()
	s := &Server{pool: p, config: c, key: key, digest: digest, state: Init, since: now, used: now, turn: make(chan struct{})}
	if c.Concurrency > 0 {
		s.slots = make(chan struct{}, c.Concurrency)
	}
	urls := c.URLs
	if len(urls) == 0 || c.Type == Stdio {
		urls = []string{""}
	}
	for _, u := range urls {
		s.instances = append(s.instances, &instance{
			server: s, url: u,
			kick: make(chan struct{}, 1), quit: make(chan error, 1), relist: make(chan struct{}, 1),
			calls: map[string]*call{},
		})
	}
	return s
}

// Config is its configuration; do not change it.
func (s *Server) Config() *Config { return s.config }

// Digest is that of its configuration, and the key of its listing in the cache.
func (s *Server) Digest() string { return s.digest }

func (s *Server) hold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holders++
}

// Release gives back what [Pool.Server] gave. The connection stays for whoever
// comes next, until it was idle for long enough.
func (s *Server) Release() {
	s.mu.Lock()
	s.holders--
	s.mu.Unlock()
	s.pool.forget(s)
}

func (s *Server) unused() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range s.instances {
		if i.running {
			return false
		}
	}
	return s.holders <= 0
}

// spare says when it was used last, if it has a connection that is not in use.
func (s *Server) spare() (time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	connected := false
	for _, i := range s.instances {
		if len(i.calls) > 0 {
			return time.Time{}, false
		}
		connected = connected || i.conn != nil
	}
	return s.used, connected
}

// drop closes its connections; the next need connects again.
func (s *Server) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range s.instances {
		if i.conn != nil {
			i.ask(errIdle)
		}
	}
}

// Close closes its connections now, and ends an attempt that is on its way; the next
// need connects again.
func (s *Server) Close() {
	s.mu.Lock()
	s.used = time.Time{} // nothing is tried again for its sake
	for _, i := range s.instances {
		if i.unwanted = i.trying; i.unwanted && i.cancel != nil {
			i.cancel()
		}
	}
	s.mu.Unlock()
	s.drop()
}

// wanted says for how long it will be wanted still.
func (s *Server) wanted() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.config.AtStart && s.holders > 0 {
		return s.pool.o.Idle
	}
	for _, i := range s.instances {
		if len(i.calls) > 0 {
			return s.pool.o.Idle
		}
	}
	return s.pool.o.Idle - time.Since(s.used)
}

// Connect connects, unless there is a connection. Many at once wait for the same
// attempt; ctx ends the waiting, not the attempt, which is bounded by
// [Config.ConnectTimeout]. After failures in a row it fails at once, with the last
// reason, until the next attempt in the background is due.
func (s *Server) Connect(ctx context.Context) error {
	if s.config.Disabled {
		return fmt.Errorf("server %q is disabled in its configuration", s.config.Name)
	}
	s.mu.Lock()
	s.used = time.Now()
	s.mu.Unlock()
	tried := map[*instance]bool{} // by us: one failure is told, not waited out
	for {
		var begin []*instance
		s.mu.Lock()
		turn := s.turn
		trying := false
		for _, i := range s.instances {
			if i.conn != nil {
				s.mu.Unlock()
				return nil
			}
			if !i.trying && !tried[i] {
				switch {
				case !i.running:
					i.running, i.trying, i.unwanted = true, true, false
					begin = append(begin, i)
				case i.failures < breaker:
					i.trying, i.unwanted = true, false
					i.kick <- struct{}{} // there is room: only who sets trying puts one in
				}
				tried[i] = i.trying
			}
			trying = trying || i.trying
		}
		err := s.err
		s.mu.Unlock()
		for _, i := range begin {
			if !s.pool.begin(i.run) {
				s.mu.Lock()
				i.running, i.trying = false, false
				s.mu.Unlock()
				return fmt.Errorf("server %q: %w", s.config.Name, errClosed)
			}
		}
		if !trying {
			if err == nil {
				err = fmt.Errorf("server %q: %w", s.config.Name, errEnded)
			}
			return err
		}
		select {
		case <-turn:
		case <-ctx.Done():
			return fmt.Errorf("waiting for server %q: %w", s.config.Name, context.Cause(ctx))
		}
	}
}

// Retry forgets failures, so that the next need tries at once: somebody asks again,
// who may have signed in or installed what was missing.
func (s *Server) Retry() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range s.instances {
		i.failures = 0
	}
}

// Tools connects and returns what the server says of its tools.
func (s *Server) Tools(ctx context.Context) (*Listing, error) {
	if err := s.Connect(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listing, nil
}

// Known is the last listing, of this process or from the cache; nil is none. It
// does not connect, and is there whatever the state: of a [Dead] server it says
// what there was. The result must not be changed.
func (s *Server) Known() *Listing {
	s.fetch.Do(func() {
		if s.pool.o.Cache == nil {
			return
		}
		l, err := s.pool.o.Cache.Load(s.digest)
		if err != nil {
			s.pool.o.Logger.Warn("listing not read from the cache", "server", s.config.Name, "error", err)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.listing == nil {
			s.listing = l
		}
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listing
}

// Status is how it is with the server now.
func (s *Server) Status() Status {
	known := s.Known()
	s.mu.Lock()
	defer s.mu.Unlock()
	st := Status{
		Name: s.config.Name, Transport: s.transport, State: s.state, Era: s.era,
		Latency: s.latency, Since: s.since, Stderr: s.stderr, Warnings: s.noise,
	}
	if st.Transport == "" {
		st.Transport = s.config.Type
		if st.Transport == "" && s.config.Command != "" {
			st.Transport = Stdio
		}
	}
	if known != nil && s.state != Dead {
		st.Tools = len(known.Tools)
	}
	if s.err != nil {
		st.Error = s.err.Error()
	}
	for _, i := range s.instances {
		if i.conn != nil {
			st.Stderr, st.Warnings = i.conn.Stderr(), i.conn.Warnings()
		}
	}
	return st
}

// dialled notes what came of an attempt of [Pool.Dial].
func (s *Server) dialled(conn *Conn, err error) {
	s.mu.Lock()
	i := s.instances[0]
	if err == nil {
		s.outside++
		s.era, s.transport = conn.Era, conn.Transport
		i.err, i.ever, s.listed = nil, true, true // whoever dialled lists
	} else {
		i.err, s.err = err, err
	}
	changed := s.settle()
	s.mu.Unlock()
	if changed {
		s.pool.tell(s)
	}
}

// left notes that such a connection has ended.
func (s *Server) left() {
	s.mu.Lock()
	s.outside--
	changed := s.settle()
	s.mu.Unlock()
	if changed {
		s.pool.tell(s)
	}
}

// settle finds the state from that of the instances, and wakes who waits. mu is
// held. It says whether the state changed.
func (s *Server) settle() bool {
	close(s.turn)
	s.turn = make(chan struct{})
	connected, dead := s.outside > 0, s.outside == 0
	for _, i := range s.instances {
		connected = connected || i.conn != nil
		dead = dead && i.dead()
	}
	was := s.state
	switch {
	case connected:
		s.state = Ready
		s.err = nil
	case dead:
		s.state = Dead
	case s.err != nil && s.listed:
		s.state = Degraded
	default:
		s.state = Init
	}
	if s.state != was {
		s.since = time.Now()
	}
	return s.state != was
}
