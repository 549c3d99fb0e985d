package upstream

import (
	"context"
	"fmt"
	"reflect"
	"time"
)

// relisting is a request for the tool list of a connected server. Its callers
// share it.
type relisting struct {
	done chan struct{} // closed when the other fields are set
	err  error
	lost bool // the connection broke, so that a new one may succeed
}

// CurrentTools is like [Server.Tools], but asks a connected server for its list
// again if the list is older than maxAge. Concurrent calls share one request,
// which fails after [DefaultConnectTimeout]. After an error, it is unknown whether
// the last list is current.
func (s *Server) CurrentTools(ctx context.Context, maxAge time.Duration) (*Listing, error) {
	for tries := 0; ; tries++ {
		l, err := s.Tools(ctx)
		if err != nil {
			return nil, err
		}
		r := s.relistIfOlder(maxAge)
		if r == nil {
			return l, nil
		}
		select {
		case <-r.done:
		case <-ctx.Done():
			return nil, fmt.Errorf("list the tools of server %q again: %w", s.config.Name, context.Cause(ctx))
		}
		switch {
		case r.err == nil:
			return s.LastListing(), nil
		case !r.lost || tries > 0:
			return nil, &displayError{redactText(s.config, fmt.Sprintf("server %q: list tools: %v", s.config.Name, r.err)), localError(r.err), 0}
		}
	}
}

// relistIfOlder starts a request for the tool list, or returns the one that is
// running. It returns nil if the list is at most maxAge old.
func (s *Server) relistIfOlder(maxAge time.Duration) *relisting {
	s.mu.Lock()
	if s.relisting != nil || time.Since(s.listing.At) <= maxAge || time.Since(s.confirmed) <= maxAge {
		defer s.mu.Unlock()
		return s.relisting
	}
	r := &relisting{done: make(chan struct{})}
	s.relisting = r
	var from *instance
	var conn *Conn
	for _, i := range s.instances {
		if i.conn != nil {
			from, conn = i, i.conn
			break
		}
	}
	s.mu.Unlock()
	end := func(lost bool, err error) {
		r.lost, r.err = lost, err
		s.mu.Lock()
		s.relisting = nil
		s.mu.Unlock()
		close(r.done)
	}
	if conn == nil {
		end(true, errEnded)
	} else if !s.pool.startGoroutine(func() { end(from.confirmTools(s.pool.ctx, conn)) }) {
		end(false, errClosed)
	}
	return r
}

// confirmTools requests the tool list from a connection, and replaces the last
// one if it has changed. It drops a broken connection and then returns true.
func (i *instance) confirmTools(ctx context.Context, conn *Conn) (lost bool, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, DefaultConnectTimeout, &timeoutError{"no tool list", DefaultConnectTimeout})
	defer cancel()
	s, t := i.server, &track{}
	l, err := s.list(context.WithValue(ctx, trackKey{}, t), conn)
	if err != nil {
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		if wire := wireError(err); wire != nil && !isSessionExpired(t, err) {
			return false, cleanWireError(wire)
		}
		if localError(err) != nil {
			return false, err
		}
		i.evict(conn, errEnded)
		return true, err
	}
	s.mu.Lock()
	if reflect.DeepEqual(s.listing.Tools, l.Tools) {
		defer s.mu.Unlock()
		s.confirmed = l.At
		return false, nil // without writing the cache and notifying subscribers
	}
	s.mu.Unlock()
	s.setListing(l)
	s.pool.notify(s)
	return false, nil
}
