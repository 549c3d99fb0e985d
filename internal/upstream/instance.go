package upstream

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Thresholds for unreliable connections.
const (
	breakerFailures = 3 // after this many failures, only background attempts are made
	maxFailures     = 5 // a server that was connected before becomes dead after this many failures
	maxFailedChecks = 2 // failed health checks that make the server degraded
	checkBound      = 10 * time.Second
	minLifetime     = 10 * time.Second // minimum lifetime of a connection; a shorter one is treated as a failure
)

var (
	errIdle      = errors.New("connection idle")
	errNotNeeded = errors.New("connection no longer needed")
)

// instance manages the connection to one of a server's URLs. Server.mu guards
// the fields after relist.
type instance struct {
	server *Server
	url    string
	kick   chan struct{} // requests an attempt
	quit   chan error    // requests closing the connection, with the reason
	relist chan struct{} // signals that the tool list has changed

	running   bool   // the run method is running
	trying    bool   // an attempt is running or about to start
	notNeeded bool   // the current attempt and its connection are no longer needed
	cancel    func() // cancels the attempt
	conn      *Conn
	failures  int // number of consecutive failures
	blocked   int // number of attempts since the last connection that failed with a [LocalError]
	ever      bool
	err       error
	calls     map[string]*call // running calls by token
}

// isDead reports whether the instance has failed permanently. If so, its tools
// should not be provided.
func (i *instance) isDead() bool {
	if i.err == nil || i.conn != nil {
		return false
	}
	return !i.ever || i.failures >= maxFailures || isFinal(i.err) || needsUser(i.err)
}

// isFinal reports whether further attempts are unlikely to succeed.
func isFinal(err error) bool {
	return errors.As(err, new(*AuthError)) || errors.Is(err, exec.ErrNotFound)
}

// needsUser reports whether connecting is impossible until the user acts. In
// that case, no background attempts are made; the next use tries again and
// reports the current reason.
func needsUser(err error) bool {
	refused, ok := errors.AsType[*AuthError](err)
	return ok && refused.Next != "" || errors.As(err, new(*NotAllowedError))
}

// requestEnd asks run to close the connection. The caller must hold Server.mu.
func (i *instance) requestEnd(why error) {
	select {
	case i.quit <- why:
	default:
	}
}

// run connects, monitors the connection, and reconnects while the server is
// needed.
func (i *instance) run() {
	for i.attempt(i.server.pool.ctx) || !i.tryStop() {
	}
	i.server.pool.removeUnused(i.server)
}

// attempt connects, monitors the connection until it ends, and waits until the
// next attempt is due. It returns false if there should be no next attempt.
func (i *instance) attempt(ctx context.Context) bool {
	s := i.server
	start := time.Now()
	conn, l, err := i.open(ctx)
	if err == nil {
		i.setConnected(conn, l)
		err = i.watchConn(ctx, conn)
		i.recordDisconnect(conn, err, time.Since(start))
		conn.Close()
		s.pool.releaseConn()
		if errors.Is(err, errIdle) || ctx.Err() != nil {
			return false
		}
		if i.setFailed(nil) == 0 {
			return true
		}
	} else if i.setFailed(err); ctx.Err() != nil || needsUser(err) { // the user must act first
		return false
	}
	return i.waitForRetry(ctx)
}

// tryStop marks the instance as not running. It returns false if another
// attempt has been requested.
func (i *instance) tryStop() bool {
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
	changed := s.updateState()
	s.mu.Unlock()
	if changed {
		s.pool.notify(s)
	}
	return true
}

// open connects to the server and lists its tools.
func (i *instance) open(ctx context.Context) (*Conn, *Listing, error) {
	s := i.server
	if err := s.pool.acquireConn(s); err != nil {
		return nil, nil, dialError(s.config, i.url, s.config.Type, nil, err)
	}
	limit := s.config.ConnectTimeout
	if limit <= 0 {
		limit = DefaultConnectTimeout
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, &timeoutError{"no connection", limit})
	defer cancel()
	if !i.beginAttempt(cancel) {
		s.pool.releaseConn()
		return nil, nil, errNotNeeded
	}
	start := time.Now()
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
		s.pool.releaseConn()
		return nil, nil, err
	}
	l, err := s.list(ctx, conn)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		err = dialError(s.config, i.url, conn.Transport, conn.link, &listError{err})
		conn.Close()
		s.pool.releaseConn()
		return nil, nil, err
	}
	s.mu.Lock()
	s.latency = time.Since(start)
	s.mu.Unlock()
	return conn, l, nil
}

// beginAttempt records the function that cancels the current attempt. It
// returns false if the attempt is no longer needed.
func (i *instance) beginAttempt(cancel func()) bool {
	i.server.mu.Lock()
	defer i.server.mu.Unlock()
	i.cancel = cancel
	return !i.notNeeded
}

func (i *instance) setConnected(conn *Conn, l *Listing) {
	s := i.server
	s.cacheListing(l) // before notifying subscribers, which may read the cache
	s.mu.Lock()
	select { // discard a request left from the previous connection
	case <-i.quit:
	default:
	}
	if i.notNeeded {
		i.notNeeded = false
		i.requestEnd(errIdle)
	}
	i.conn, i.trying, i.err, i.ever, i.blocked = conn, false, nil, true, 0
	s.era, s.transport = conn.Era, conn.Transport
	s.listing, s.listed, s.confirmed = l, true, time.Time{} // before the connection becomes visible
	s.updateState()
	s.mu.Unlock()
	s.pool.o.Logger.Info("server connected", "server", s.config.Name, "era", conn.Era, "tools", len(l.Tools))
	s.pool.notify(s)
}

// recordDisconnect records that an established connection has ended.
func (i *instance) recordDisconnect(conn *Conn, why error, life time.Duration) {
	s := i.server
	again := !errors.Is(why, errIdle) && s.pool.ctx.Err() == nil
	s.mu.Lock()
	i.conn = nil
	if life >= minLifetime {
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
	changed := s.updateState()
	s.mu.Unlock()
	if again {
		s.pool.o.Logger.Warn("server lost", "server", s.config.Name, "error", why)
	}
	if changed {
		s.pool.notify(s)
	}
}

// setErr records the error of a failed attempt. A [LocalError] does not replace
// the reason why the server has failed. The caller must hold Server.mu.
func (i *instance) setErr(err error) {
	if localError(err) == nil {
		i.err, i.server.err = err, err
	} else if i.failures < breakerFailures {
		i.server.err = err
	}
}

// setFailed records a failed attempt if err is not nil. It returns the number
// of consecutive failures, which a [LocalError] does not change.
func (i *instance) setFailed(err error) int {
	s := i.server
	s.mu.Lock()
	if err == nil {
		defer s.mu.Unlock()
		return i.failures
	}
	i.trying = false
	if i.notNeeded { // cancelled by Server.Close
		i.notNeeded = false
		s.updateState() // waiting callers try again
		defer s.mu.Unlock()
		return i.failures
	}
	switch {
	case localError(err) != nil:
		i.blocked++
	case needsUser(err):
		i.failures = min(max(i.failures, 1), breakerFailures-1)
	case isFinal(err):
		i.failures = max(i.failures+1, breakerFailures)
	default:
		i.failures++
	}
	i.setErr(err)
	n := i.failures
	changed := s.updateState()
	s.mu.Unlock()
	s.pool.o.Logger.Warn("server not connected", "server", s.config.Name, "failures", n, "error", err)
	if changed {
		s.pool.notify(s)
	}
	return n
}

// waitForRetry waits until the next attempt is due. It returns false if the
// server is no longer needed.
func (i *instance) waitForRetry(ctx context.Context) bool {
	s := i.server
	left := s.neededFor()
	if left <= 0 {
		return false
	}
	s.mu.Lock()
	wait := backoff(max(i.failures, i.blocked))
	s.mu.Unlock()
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		if s.neededFor() <= 0 {
			return false
		}
	case <-i.kick:
		return true
	case <-ctx.Done():
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i.trying { // a kick is pending too
		<-i.kick
	}
	i.trying = true
	return true
}

// watchConn checks the health of a connection and refreshes its tool list. When
// the connection has ended or must be closed, it returns the reason.
func (i *instance) watchConn(ctx context.Context, conn *Conn) error {
	s := i.server
	check := time.NewTicker(s.pool.o.CheckInterval)
	defer check.Stop()
	bad := 0
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-conn.Done():
			return i.endReason(conn)
		case err := <-i.quit:
			return err
		case <-i.relist:
			if err := i.relistTools(ctx, conn); err != nil {
				s.pool.o.Logger.Warn("could not refresh the tool list", "server", s.config.Name, "error", redactText(s.config, err.Error()))
			}
		case <-check.C:
			if s.neededFor() <= 0 {
				return errIdle
			}
			err := i.checkHealth(ctx, conn)
			switch {
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case localError(err) != nil: // says nothing about the server
			case err == nil:
				bad = 0
				if s.isStale() {
					i.relistTools(ctx, conn)
				}
			default:
				if bad++; bad >= maxFailedChecks {
					return lostError(dialError(s.config, i.url, conn.Transport, conn.link, &checkError{err}))
				}
			}
		}
	}
}

// endReason closes a connection that the server has ended, and returns the
// reason for display.
func (i *instance) endReason(conn *Conn) error {
	s := i.server
	s.mu.Lock()
	i.conn, i.trying = nil, true
	s.mu.Unlock()
	conn.Close() // after Close the exit status and stderr are complete
	return lostError(dialError(s.config, i.url, conn.Transport, conn.link, errEnded))
}

// lostError rewords a dial error for a connection that was already established.
func lostError(err error) error {
	if e, ok := err.(*displayError); ok {
		e.text = "lost the connection" + strings.TrimPrefix(e.text, "connect")
	}
	return err
}

func (i *instance) checkHealth(ctx context.Context, conn *Conn) error {
	ctx, cancel := context.WithTimeoutCause(ctx, checkBound, &timeoutError{"no answer to a health check", checkBound})
	defer cancel()
	start := time.Now()
	err := conn.Check(ctx)
	if err == nil {
		s := i.server
		s.mu.Lock()
		s.latency = time.Since(start)
		s.mu.Unlock()
	} else if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return err
}

// evict drops a connection that a call found to be broken, so that run opens a
// new connection.
func (i *instance) evict(conn *Conn, why error) {
	s := i.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if i.conn == conn {
		i.conn, i.trying = nil, true // run replaces it
		i.requestEnd(why)
	}
}

// relistTools refreshes the tool list and notifies subscribers.
func (i *instance) relistTools(ctx context.Context, conn *Conn) error {
	ctx, cancel := context.WithTimeout(ctx, DefaultConnectTimeout)
	defer cancel()
	l, err := i.server.list(ctx, conn)
	if err != nil {
		return err
	}
	i.server.setListing(l)
	i.server.pool.notify(i.server)
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
