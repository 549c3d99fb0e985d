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

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/store"
)

// closeTimeout is how long to wait for cancelled requests.
const closeTimeout = 5 * time.Second

// maintenanceInterval is the interval at which expired data is deleted.
const maintenanceInterval = time.Hour

// Serve serves the hub on l until ctx is done, then closes l. At shutdown, the
// hub reports that it is not ready and accepts no more connections. It gives
// running requests [Options.Drain] to finish, then cancels them and waits up to
// closeTimeout. The error is nil unless serving failed.
func (h *Hub) Serve(ctx context.Context, l net.Listener) error {
	// The context for requests outlives ctx. It is cancelled after the drain time.
	requests, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	var under requestCounter
	server := &http.Server{Handler: under.wrap(h.Handler()), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return requests }, ErrorLog: slog.NewLogLogger(h.log.Handler(), slog.LevelDebug)}
	h.logReadiness()
	work, end := context.WithCancel(ctx)
	var workers sync.WaitGroup
	defer workers.Wait()
	defer end()
	for _, f := range []func(context.Context){h.runMaintenance, h.follow, h.maintain} {
		workers.Go(func() { f(work) })
	}

	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve hub: %w", err)
	case <-ctx.Done():
	}
	h.drain.Do(func() { close(h.draining) })
	bye, stop := context.WithTimeout(requests, h.opts.Drain)
	defer stop()
	if err := server.Shutdown(bye); err != nil {
		h.log.Warn("canceled requests that did not finish in time", "after", h.opts.Drain)
		cut()
		server.Close()
		if !under.wait(closeTimeout) {
			h.log.Warn("canceled requests are still running", "after", closeTimeout)
		}
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve hub: %w", err)
	}
	return nil
}

// requestCounter tracks running requests, because closing a server does not wait
// for them.
type requestCounter struct {
	open sync.WaitGroup

	mu     sync.Mutex // guards the field below
	closed bool
}

// wrap returns a handler that calls next and counts the running requests.
func (v *requestCounter) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !v.enter() {
			panic(http.ErrAbortHandler) // closes the connection
		}
		defer v.open.Done()
		next.ServeHTTP(w, r)
	})
}

func (v *requestCounter) enter() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.closed {
		v.open.Add(1)
	}
	return !v.closed
}

// wait stops accepting requests and waits up to timeout for running ones. It
// reports whether all of them have finished.
func (v *requestCounter) wait(timeout time.Duration) bool {
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
	case <-time.After(timeout):
		return false
	}
}

// Draining returns a channel that is closed when shutdown starts. Streams must end
// then.
func (h *Hub) Draining() <-chan struct{} { return h.draining }

// runMaintenance periodically deletes expired data until ctx is done. All nodes can
// run it at the same time.
func (h *Hub) runMaintenance(ctx context.Context) {
	tick := time.NewTicker(maintenanceInterval)
	defer tick.Stop()
	for {
		if err := h.removeExpired(ctx); err != nil && ctx.Err() == nil {
			h.log.Error("couldn't delete expired data", "error", err)
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
	_, records := h.directory.Audit.Prune(ctx)
	_, requests := h.db.Requests.Prune(ctx, now.Add(-api.RequestRetention))
	_, uses := h.db.Usage.PruneOwn(ctx, now.AddDate(0, 0, -store.OwnUseDays))
	_, durations := h.db.Durations.Prune(ctx, now.AddDate(0, 0, -store.DurationDays))
	return errors.Join(logins, records, requests, uses, durations)
}
