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

// upkeepEvery is how often what has expired is removed.
const upkeepEvery = time.Hour

// Serve serves the hub on a listener, which it closes, until ctx ends. Then the node says
// that it is not ready, takes no more connections, and gives what is under way
// [Options.Drain] to end. It returns when all of that is over: nil, unless serving failed.
func (h *Hub) Serve(ctx context.Context, l net.Listener) error {
	// Requests end by themselves, and with this when their time is over.
	requests, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	server := &http.Server{Handler: h.Handler(), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
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
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the hub: %w", err)
	}
	return nil
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
