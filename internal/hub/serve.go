package hub

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/internal/account"
)

// cutTime is how long requests that were cut may take to notice.
const cutTime = 5 * time.Second

// upkeepEvery is how often what has expired is removed.
const upkeepEvery = time.Hour

// Serve serves the hub on a listener, which it closes, until ctx ends. Then the node says
// that it is not ready, takes no more connections, and gives what is under way
// [Options.Drain] to end. What has not ended then is cut. It returns when all of that is
// over, or cutTime after the cut: nil, unless serving failed.
func (h *Hub) Serve(ctx context.Context, l net.Listener) error {
	// Requests end by themselves, and with this when their time is over.
	requests, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	var under visits
	server := &http.Server{Handler: under.counted(h.Handler()), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return requests }, ErrorLog: slog.NewLogLogger(h.log.Handler(), slog.LevelDebug)}
	work, end := context.WithCancel(ctx)
	var workers sync.WaitGroup
	defer workers.Wait()
	defer end()
	for _, f := range []func(context.Context){h.keepUp, h.follow, h.lookAfter} {
		workers.Go(func() { f(work) })
	}

	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve the hub: %w", err)
	case <-ctx.Done():
	}
	h.drain.Do(func() { close(h.draining) })
	bye, stop := context.WithTimeout(requests, h.opts.Drain)
	defer stop()
	if err := server.Shutdown(bye); err != nil {
		h.log.Warn("requests were cut, as they did not end in time", "after", h.opts.Drain)
		cut()
		server.Close()
		if !under.wait(cutTime) {
			h.log.Warn("requests that were cut go on", "after", cutTime)
		}
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the hub: %w", err)
	}
	return nil
}

// visits counts requests, as a server that is closed waits for none.
type visits struct {
	open sync.WaitGroup

	mu     sync.Mutex // guards what follows
	closed bool
}

// counted is a handler whose requests are counted.
func (v *visits) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !v.enter() {
			panic(http.ErrAbortHandler) // its connection is closed
		}
		defer v.open.Done()
		next.ServeHTTP(w, r)
	})
}

func (v *visits) enter() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.closed {
		v.open.Add(1)
	}
	return !v.closed
}

// wait lets no more in and reports whether those that are there left in time.
func (v *visits) wait(atMost time.Duration) bool {
	v.mu.Lock()
	v.closed = true
	v.mu.Unlock()
	left := make(chan struct{})
	go func() {
		v.open.Wait()
		close(left)
	}()
	select {
	case <-left:
		return true
	case <-time.After(atMost):
		return false
	}
}

// Draining is closed when the hub is about to end: who streams says good-bye then.
func (h *Hub) Draining() <-chan struct{} { return h.draining }

// keepUp removes what has expired, now and then, until ctx ends. All nodes do so, as it
// is the same whoever does it.
func (h *Hub) keepUp(ctx context.Context) {
	tick := time.NewTicker(upkeepEvery)
	defer tick.Stop()
	for {
		if err := h.removeExpired(ctx); err != nil && ctx.Err() == nil {
			h.log.Error("what has expired could not be removed", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (h *Hub) removeExpired(ctx context.Context) error {
	now := time.Now()
	_, logins := h.db.Logins.Prune(ctx, now, now.Add(-account.DefaultIdle))
	_, records := h.people.Audit.Expire(ctx)
	return errors.Join(logins, records)
}
