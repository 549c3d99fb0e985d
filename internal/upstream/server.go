package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"
)

// A Server manages the shared connections to a server in a [Pool]. It connects
// on first use, checks its connections, and reconnects while it is in use. Its
// methods are safe for concurrent use.
type Server struct {
	pool   *Pool
	config *Config
	key    string
	digest string
	slots  chan struct{} // limits concurrent calls; nil means unlimited

	// mu guards the fields below and the instances. It is never held during
	// I/O.
	mu          sync.Mutex
	state       State
	since       time.Time
	err         error // last failure; nil while connected
	era         string
	transport   string
	latency     time.Duration
	listing     *Listing
	summaries   []storedSummary // summaries of the tool list, made by this process
	summarized  *Listing        // the tool list that has these summaries
	listed      bool            // this process has listed the tools
	confirmed   time.Time       // when CurrentTools last received an equal list; zero if never
	relisting   *relisting      // running request of CurrentTools, or nil
	stderr      string
	noise       []string
	users       int
	dialedConns int // open connections from [Pool.Dial]
	used        time.Time
	instances   []*instance
	changed     chan struct{} // closed and replaced when the state changes

	loadOnce sync.Once // loads the listing from the cache
}

func newServer(p *Pool, c *Config, key, digest string) *Server {
	now := time.Now()
	s := &Server{pool: p, config: c, key: key, digest: digest, state: Init, since: now, used: now, changed: make(chan struct{})}
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

// Config returns the server's configuration, which must not be changed.
func (s *Server) Config() *Config { return s.config }

// Digest returns the digest of the configuration, which is used as the cache
// key for the tool list.
func (s *Server) Digest() string { return s.digest }

func (s *Server) addUser() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users++
}

// Release ends the caller's use of a server from [Pool.Server]; each call of
// Pool.Server needs one. The connection stays open for other users until its
// idle timeout.
func (s *Server) Release() {
	s.mu.Lock()
	s.users--
	s.mu.Unlock()
	s.pool.removeUnused(s)
}

func (s *Server) isUnused() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range s.instances {
		if i.running {
			return false
		}
	}
	return s.users <= 0
}

// idleSince returns the time of the last use. It returns false if the server is
// not connected or has running calls.
func (s *Server) idleSince() (time.Time, bool) {
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

// disconnect asks all instances to close their connections. The next use
// reconnects.
func (s *Server) disconnect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range s.instances {
		if i.conn != nil {
			i.requestEnd(errIdle)
		}
	}
}

// Close closes all connections and cancels running attempts, without waiting.
// The next use reconnects.
func (s *Server) Close() {
	s.mu.Lock()
	s.used = time.Time{} // so that run does not reconnect
	for _, i := range s.instances {
		if i.notNeeded = i.trying; i.notNeeded && i.cancel != nil {
			i.cancel()
		}
	}
	s.mu.Unlock()
	s.disconnect()
}

// neededFor returns how long the server should stay connected without further
// use.
func (s *Server) neededFor() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.config.AtStart && s.users > 0 {
		return s.pool.o.IdleTimeout
	}
	for _, i := range s.instances {
		if len(i.calls) > 0 {
			return s.pool.o.IdleTimeout
		}
	}
	return s.pool.o.IdleTimeout - time.Since(s.used)
}

// Connect connects to the server unless it is already connected. Concurrent
// calls share one attempt. ctx applies to the wait, and [Config.ConnectTimeout]
// to the attempt. After repeated failures, Connect returns the last error
// immediately until the next background attempt.
func (s *Server) Connect(ctx context.Context) error {
	if s.config.Disabled {
		return fmt.Errorf("server %q is disabled in its configuration", s.config.Name)
	}
	s.mu.Lock()
	s.used = time.Now()
	s.mu.Unlock()
	tried := map[*instance]bool{} // instances that this call has tried; each is tried once
	for {
		var begin []*instance
		s.mu.Lock()
		turn := s.changed
		trying := false
		for _, i := range s.instances {
			if i.conn != nil {
				s.mu.Unlock()
				return nil
			}
			if !i.trying && !tried[i] {
				switch {
				case !i.running:
					i.running, i.trying, i.notNeeded = true, true, false
					begin = append(begin, i)
				case i.failures < breakerFailures:
					i.trying, i.notNeeded = true, false
					i.kick <- struct{}{} // never blocks: only the goroutine that sets trying sends
				}
				tried[i] = i.trying
			}
			trying = trying || i.trying
		}
		err := s.err
		s.mu.Unlock()
		for _, i := range begin {
			if !s.pool.startGoroutine(i.run) {
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
			return fmt.Errorf("wait for server %q: %w", s.config.Name, context.Cause(ctx))
		}
	}
}

// Retry resets the failure count, so that the next use connects immediately.
// Call it when the user may have fixed the problem.
func (s *Server) Retry() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range s.instances {
		i.failures = 0
	}
}

// Tools connects to the server if necessary and returns its tool list, which
// must not be changed. It does not ask a connected server again, because the
// list is refreshed when the server reports a change, and after the listing's
// TTL or five minutes; see [Server.CurrentTools].
func (s *Server) Tools(ctx context.Context) (*Listing, error) {
	if err := s.Connect(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listing, nil
}

// LastListing returns the last tool list, from this process or the cache, or
// nil if there is none. It never connects. The list must not be changed.
func (s *Server) LastListing() *Listing {
	s.loadOnce.Do(func() {
		if s.pool.o.Cache == nil {
			return
		}
		l, err := s.pool.o.Cache.Load(s.digest)
		if err != nil {
			s.pool.o.Logger.Warn("could not read the tool list from the cache", "server", s.config.Name, "error", err)
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

// LoadedListing is like [Server.LastListing], but never reads the cache.
func (s *Server) LoadedListing() *Listing {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listing
}

// Summary returns the summary that this or an earlier process stored under key
// for the last tool list, or nil if there is none. It does not read the list
// from the cache.
func (s *Server) Summary(key string) json.RawMessage {
	s.mu.Lock()
	l, made := s.listing, s.summaries
	if s.summarized != l {
		made = nil
	}
	s.mu.Unlock()
	if l != nil {
		if data := findSummary(made, key); data != nil {
			return data
		}
		return findSummary(l.summaries, key)
	}
	c, ok := s.pool.o.Cache.(SummaryCache)
	if !ok {
		return nil
	}
	data, err := c.LoadSummary(s.digest, key)
	if err != nil {
		s.pool.o.Logger.Warn("could not read a summary of the tool list from the cache", "server", s.config.Name, "error", err)
	}
	return data
}

// SetSummary stores a summary of a tool list for [Server.Summary], and also in
// the cache. It has no effect if l is not the last list.
func (s *Server) SetSummary(l *Listing, key string, summary json.RawMessage) {
	s.mu.Lock()
	if s.listing != l {
		s.mu.Unlock()
		return
	}
	if s.summarized != l {
		s.summaries, s.summarized = nil, l
	}
	s.summaries = append([]storedSummary{{key, summary}}, s.summaries[:min(len(s.summaries), maxSummaries-1)]...)
	s.mu.Unlock()
	if c, ok := s.pool.o.Cache.(SummaryCache); ok {
		if err := c.StoreSummary(s.digest, l, key, summary); err != nil {
			s.pool.o.Logger.Warn("could not cache a summary of the tool list", "server", s.config.Name, "error", err)
		}
	}
}

// KeepsSummaries reports whether summaries are stored for later processes.
func (s *Server) KeepsSummaries() bool {
	_, ok := s.pool.o.Cache.(SummaryCache)
	return ok
}

// Failure returns the server's state and its last error, or nil while it is
// connected. It does not read the list from the cache.
func (s *Server) Failure() (State, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state, s.err
}

// Status returns the current status of the server.
func (s *Server) Status() Status {
	known := s.LastListing()
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

// recordDial records the outcome of [Pool.Dial].
func (s *Server) recordDial(conn *Conn, err error) {
	s.mu.Lock()
	i := s.instances[0]
	if err == nil {
		s.dialedConns++
		s.era, s.transport = conn.Era, conn.Transport
		i.err, i.ever, s.listed = nil, true, true // the caller lists the tools
	} else {
		i.setErr(err)
	}
	changed := s.updateState()
	s.mu.Unlock()
	if changed {
		s.pool.notify(s)
	}
}

// connClosed records that a connection from [Pool.Dial] was closed.
func (s *Server) connClosed() {
	s.mu.Lock()
	s.dialedConns--
	changed := s.updateState()
	s.mu.Unlock()
	if changed {
		s.pool.notify(s)
	}
}

// updateState derives the state from the instances and wakes waiting callers.
// It reports whether the state changed. The caller must hold mu.
func (s *Server) updateState() bool {
	close(s.changed)
	s.changed = make(chan struct{})
	connected, dead := s.dialedConns > 0, s.dialedConns == 0
	for _, i := range s.instances {
		connected = connected || i.conn != nil
		dead = dead && i.isDead()
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
