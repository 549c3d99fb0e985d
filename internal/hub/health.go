package hub

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/metrics"
	"github.com/loadout-dev/loadout/internal/hub/users"
	"github.com/loadout-dev/loadout/internal/store"
)

// readyTimeout is the timeout for a write to the database.
const readyTimeout = 2 * time.Second

// healthy responds with 200 while the process runs.
func (h *Hub) healthy(w http.ResponseWriter, _ *http.Request) { plainText(w, "ok\n") }

// writeCheckInterval is how long the result of a write check is reused. Anyone
// can check whether a node is ready, so not every check may cause a write.
const writeCheckInterval = time.Second

// writeCheck checks whether the database completes writes.
type writeCheck struct {
	mu   sync.Mutex
	last time.Time
	err  error
}

// check writes to the database and returns any error. It waits at most
// readyTimeout. Within writeCheckInterval of the last write, it returns that
// write's error or pings the database instead.
func (w *writeCheck) check(db *store.DB, node string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	ctx, stop := context.WithTimeout(context.Background(), readyTimeout)
	defer stop()
	if w.last.IsZero() || time.Since(w.last) > writeCheckInterval {
		w.err = db.CheckWrite(ctx, node)
		w.last = time.Now()
		return w.err
	}
	if w.err != nil {
		return w.err
	}
	return db.Ping(ctx)
}

// ready responds with 200 if the node can accept requests. A node is not ready if
// the database does not complete writes or the node is shutting down. Without
// Redis, nodes still work, but with delays. A full disk makes the node unready only
// if there can be other nodes.
func (h *Hub) ready(w http.ResponseWriter, r *http.Request) {
	disk, problem := h.readiness()
	if problem != nil {
		h.server.WriteProblem(w, r, problem)
		return
	}
	bus := "ok"
	if h.bus.Healthy() != nil {
		bus = "disconnected: nodes poll the database every second"
	}
	plainText(w, "ok\n\ndatabase: ok\nbus: "+bus+"\ndisk: "+disk+"\n")
}

// readiness returns the state of the disk, or a problem if the node cannot accept
// requests.
func (h *Hub) readiness() (disk string, problem *api.Problem) {
	select {
	case <-h.draining:
		return "", &api.Problem{Status: 503, Code: "draining", Detail: "the node is shutting down", Next: "use another node"}
	default:
	}
	const full = "full: writes fail; free disk space"
	several := h.db.Kind() != "SQLite"
	switch err := h.writes.check(h.db, h.identity.Node); {
	case errors.Is(err, store.ErrFull) && !several:
		return full, nil
	case errors.Is(err, store.ErrUnavailable):
		h.log.Error("not ready", "error", err)
		return "", &api.Problem{Status: 503, Code: "unavailable", Detail: "the database cannot be reached", Next: "try again in a moment"}
	case err != nil:
		h.log.Error("not ready", "error", err)
		return "", &api.Problem{Status: 503, Code: "unavailable", Detail: fmt.Sprintf("the database does not complete writes within %s", readyTimeout), Next: "try again in a moment"}
	}
	if free, known := h.diskFree(h.opts.Data); known && free < h.opts.MinDisk {
		if several {
			return "", &api.Problem{Status: 503, Code: "disk_full", Detail: fmt.Sprintf("the disk of this node is full (%d MiB free, minimum %d)", free>>20, h.opts.MinDisk>>20),
				Next: "free disk space, or lower hub.min_disk_mb; other nodes continue"}
		}
		return full, nil
	}
	return "ok", nil
}

// logReadiness logs why a starting node is not ready.
func (h *Hub) logReadiness() {
	switch disk, problem := h.readiness(); {
	case problem != nil:
		h.log.Warn("this node is not ready", "reason", problem.Detail, "next", problem.Next)
	case disk != "ok":
		h.log.Warn("the disk is almost full", "dir", h.opts.Data, "minimum_mib", h.opts.MinDisk>>20, "next", "free disk space, or lower hub.min_disk_mb")
	}
}

// welcome serves a short greeting to clients other than browsers.
func (h *Hub) welcome(w http.ResponseWriter, r *http.Request) {
	plainText(w, "This is a Loadout hub: skills for agents, shared and reviewed.\n\n"+
		"The API is below "+h.server.Origin(r)+api.Prefix+", and described at "+h.server.Origin(r)+"/openapi.json.\n")
}

// setupPage explains how to create the first administrator without a browser. It
// does not check the setup link; that happens when the link is used.
func (h *Hub) setupPage(w http.ResponseWriter, r *http.Request) {
	vacant, err := h.directory.SignIns.HasNoAdmin(r.Context())
	if err == nil && !vacant {
		err = users.ErrHasAdmin
	}
	if err != nil {
		h.server.WriteProblem(w, r, err)
		return
	}
	plainText(w, "This hub has no administrator yet. To create it, put a name and a password of\n"+
		"at least 10 characters into admin.json, and send it with your setup link:\n\n"+
		fmt.Sprintf("  {\"link\": \"LINK\", \"name\": \"ada\", \"password\": \"...\"}\n\n  curl --json @admin.json %s%s/setup\n\n", h.server.Origin(r), api.Prefix)+
		"LINK is the part after /setup/ in the address of this page. It works once, within a day.\n")
}

func plainText(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprint(w, text)
}

// metricsHandler returns the handler for metrics. Only operators may use it,
// because metrics reveal activity.
func (h *Hub) metricsHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := account.Check(account.FromContext(r.Context()), account.HubOperate, account.Resource{}); err != nil {
			h.server.WriteProblem(w, r, err)
			return
		}
		w.Header().Set("Content-Type", metrics.ContentType)
		_, _ = w.Write(h.metrics.Text()) // the client is gone; the connection reports it
	})
}
