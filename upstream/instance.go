package upstream

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Failures in a row.
const (
	breaker    = 3 // from so many on, only the background tries
	hopeless   = 5 // so many make a server dead that was connected once
	maxChecks  = 2 // failed health checks that make it degraded
	checkBound = 10 * time.Second
	shortLife  = 10 * time.Second // a connection that ends sooner counts as a failure
)

var (
	errIdle     = errors.New("idle")
	errUnwanted = errors.New("nobody wants it any more")
)

// instance is a server at one of its URLs. Its fields below url are guarded by
// the mutex of the server.
type instance struct {
	server *Server
	url    string
	kick   chan struct{} // try now
	quit   chan error    // end the connection, for that reason
	relist chan struct{} // the list of tools has changed

	running  bool   // run is
	trying   bool   // an attempt is on its way, or about to be
	unwanted bool   // the attempt is, and what it comes to
	cancel   func() // ends the attempt
	conn     *Conn
	failures int // in a row
	ever     bool
	err      error
	calls    map[string]*call // on their way, by their tokens
}

// dead says whether it failed for good: there is no sense in offering its tools.
func (i *instance) dead() bool {
	if i.err == nil || i.conn != nil {
		return false
	}
	return !i.ever || i.failures >= hopeless || final(i.err) || notAllowed(i.err)
}

// final says whether trying again will hardly help.
func final(err error) bool {
	return errors.As(err, new(*AuthError)) || errors.Is(err, exec.ErrNotFound)
}

// notAllowed says whether a person has to do something before it can be connected: then
// nothing is tried until somebody asks again, who is told what is so by then.
func notAllowed(err error) bool {
	refused, ok := errors.AsType[*AuthError](err)
	return ok && refused.Next != "" || errors.As(err, new(*NotAllowedError))
}

// ask has run end the connection. mu is held.
func (i *instance) ask(why error) {
	select {
	case i.quit <- why:
	default:
	}
}

// run connects, watches, and connects again while the server is wanted.
func (i *instance) run() {
	for i.attempt(i.server.pool.ctx) || !i.end() {
	}
	i.server.pool.forget(i.server)
}

// attempt connects, watches while that lasts, and waits for the next one; false is
// that there is to be none.
func (i *instance) attempt(ctx context.Context) bool {
	s := i.server
	began := time.Now()
	conn, l, err := i.open(ctx)
	if err == nil {
		i.opened(conn, l)
		err = i.watch(ctx, conn)
		i.lost(conn, err, time.Since(began))
		conn.Close()
		s.pool.leave()
		if errors.Is(err, errIdle) || ctx.Err() != nil {
			return false
		}
		if i.failed(nil) == 0 {
			return true
		}
	} else if i.failed(err); ctx.Err() != nil || notAllowed(err) { // that is for a person to change
		return false
	}
	return i.pause(ctx)
}

// end stops running, unless somebody asked for another attempt meanwhile.
func (i *instance) end() bool {
	s := i.server
	s.mu.Lock()
	select {
	case <-i.kick:
		if s.pool.ctx.Err() == nil {
			s.mu.Unlock()
			return false
		}
	default:
	}
	i.running, i.trying = false, false
	changed := s.settle()
	s.mu.Unlock()
	if changed {
		s.pool.tell(s)
	}
	return true
}

// open connects and lists the tools.
func (i *instance) open(ctx context.Context) (*Conn, *Listing, error) {
	s := i.server
	if err := s.pool.enter(s); err != nil {
		return nil, nil, dialError(s.config, i.url, s.config.Type, nil, err)
	}
	limit := s.config.ConnectTimeout
	if limit <= 0 {
		limit = DefaultConnectTimeout
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, &lateError{"no connection", limit})
	defer cancel()
	if !i.mayTry(cancel) {
		s.pool.leave()
		return nil, nil, errUnwanted
	}
	began := time.Now()
	conn, err := s.pool.o.Dialer.Dial(ctx, s.config, &DialOptions{
		URL:     i.url,
		Options: i.options(),
		Changed: func(what string) {
			if what == "tools" {
				select {
				case i.relist <- struct{}{}:
				default:
				}
			}
		},
	})
	if err != nil {
		s.pool.leave()
		return nil, nil, err
	}
	l, err := s.list(ctx, conn)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		err = dialError(s.config, i.url, conn.Transport, conn.link, &listError{err})
		conn.Close()
		s.pool.leave()
		return nil, nil, err
	}
	s.mu.Lock()
	s.latency = time.Since(began)
	s.mu.Unlock()
	return conn, l, nil
}

// mayTry notes how an attempt is ended from outside, unless it is unwanted already.
func (i *instance) mayTry(cancel func()) bool {
	i.server.mu.Lock()
	defer i.server.mu.Unlock()
	i.cancel = cancel
	return !i.unwanted
}

func (i *instance) opened(conn *Conn, l *Listing) {
	s := i.server
	s.keep(l) // first: who learns of the connection may have others read the cache
	s.mu.Lock()
	select { // for the connection before
	case <-i.quit:
	default:
	}
	if i.unwanted {
		i.unwanted = false
		i.ask(errIdle)
	}
	i.conn, i.trying, i.err, i.ever = conn, false, nil, true
	s.era, s.transport = conn.Era, conn.Transport
	s.listing, s.listed = l, true // before anybody learns of the connection
	s.settle()
	s.mu.Unlock()
	s.pool.o.Logger.Info("server connected", "server", s.config.Name, "era", conn.Era, "tools", len(l.Tools))
	s.pool.tell(s)
}

// lost takes a connection out of use.
func (i *instance) lost(conn *Conn, why error, life time.Duration) {
	s := i.server
	again := !errors.Is(why, errIdle) && s.pool.ctx.Err() == nil
	s.mu.Lock()
	i.conn = nil
	if life >= shortLife {
		i.failures = 0
	} else if again {
		i.failures++
	}
	if again {
		i.err = why
		s.err = why
		i.trying = i.failures == 0
	}
	s.stderr, s.noise = conn.Stderr(), conn.Warnings()
	changed := s.settle()
	s.mu.Unlock()
	if again {
		s.pool.o.Logger.Warn("server lost", "server", s.config.Name, "error", why)
	}
	if changed {
		s.pool.tell(s)
	}
}

// failed notes a failed attempt, if there was one, and gives the failures in a row.
func (i *instance) failed(err error) int {
	s := i.server
	s.mu.Lock()
	if err == nil {
		defer s.mu.Unlock()
		return i.failures
	}
	i.trying = false
	if i.unwanted { // ended by us
		i.unwanted = false
		s.settle() // who wants it by now tries anew
		defer s.mu.Unlock()
		return i.failures
	}
	switch {
	case notAllowed(err):
		i.failures = min(max(i.failures, 1), breaker-1)
	case final(err):
		i.failures = max(i.failures+1, breaker)
	default:
		i.failures++
	}
	i.err, s.err = err, err
	n := i.failures
	changed := s.settle()
	s.mu.Unlock()
	s.pool.o.Logger.Warn("server not connected", "server", s.config.Name, "failures", n, "error", err)
	if changed {
		s.pool.tell(s)
	}
	return n
}

// pause waits before the next attempt; false is that nobody wants it any more.
func (i *instance) pause(ctx context.Context) bool {
	s := i.server
	left := s.wanted()
	if left <= 0 {
		return false
	}
	s.mu.Lock()
	wait := backoff(i.failures)
	s.mu.Unlock()
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		if s.wanted() <= 0 {
			return false
		}
	case <-i.kick:
		return true
	case <-ctx.Done():
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i.trying { // and a kick with it
		<-i.kick
	}
	i.trying = true
	return true
}

// watch returns why a connection has to end, or has ended.
func (i *instance) watch(ctx context.Context, conn *Conn) error {
	s := i.server
	check := time.NewTicker(s.pool.o.Check)
	defer check.Stop()
	bad := 0
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-conn.Done():
			return i.why(conn)
		case err := <-i.quit:
			return err
		case <-i.relist:
			if err := i.again(ctx, conn); err != nil {
				s.pool.o.Logger.Warn("tools not listed again", "server", s.config.Name, "error", scrub(s.config, err.Error()))
			}
		case <-check.C:
			if s.wanted() <= 0 {
				return errIdle
			}
			err := i.check(ctx, conn)
			switch {
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case err == nil:
				bad = 0
				if s.stale() {
					i.again(ctx, conn)
				}
			default:
				if bad++; bad >= maxChecks {
					return lostError(dialError(s.config, i.url, conn.Transport, conn.link, &checkError{err}))
				}
			}
		}
	}
}

// why is the reason that a connection ended by itself, for people.
func (i *instance) why(conn *Conn) error {
	s := i.server
	s.mu.Lock()
	i.conn, i.trying = nil, true
	s.mu.Unlock()
	conn.Close() // with it the process is gone, and its last words are known
	return lostError(dialError(s.config, i.url, conn.Transport, conn.link, errEnded))
}

// lostError words an error of a connection that there was.
func lostError(err error) error {
	if e, ok := err.(*said); ok {
		e.text = "lost the connection" + strings.TrimPrefix(e.text, "connecting")
	}
	return err
}

func (i *instance) check(ctx context.Context, conn *Conn) error {
	ctx, cancel := context.WithTimeoutCause(ctx, checkBound, &lateError{"no answer to a health check", checkBound})
	defer cancel()
	began := time.Now()
	err := conn.Check(ctx)
	if err == nil {
		s := i.server
		s.mu.Lock()
		s.latency = time.Since(began)
		s.mu.Unlock()
	} else if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return err
}

// evict takes a connection out of use that a call has found to be broken.
func (i *instance) evict(conn *Conn, why error) {
	s := i.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if i.conn == conn {
		i.conn, i.trying = nil, true // run goes on with a new one
		i.ask(why)
	}
}

// again lists the tools once more.
func (i *instance) again(ctx context.Context, conn *Conn) error {
	ctx, cancel := context.WithTimeout(ctx, DefaultConnectTimeout)
	defer cancel()
	l, err := i.server.list(ctx, conn)
	if err != nil {
		return err
	}
	i.server.store(l)
	i.server.pool.tell(i.server)
	return nil
}

func (i *instance) options() *mcp.ClientOptions {
	return &mcp.ClientOptions{
		Logger:                      i.server.pool.o.Logger,
		MultiRoundTrip:              &mcp.MultiRoundTripOptions{Disabled: true},
		ProgressNotificationHandler: i.progress,
		ElicitationHandler:          i.elicit,
	}
}
