package hub

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/users"
)

// readyTimeout is the timeout for the database check.
const readyTimeout = 2 * time.Second

// healthy responds with 200 while the process runs.
func (h *Hub) healthy(w http.ResponseWriter, _ *http.Request) { plainText(w, "ok\n") }

// minDisk is the minimum free disk space of a node, in bytes.
const minDisk = 64 << 20

// ready responds with 200 if the node can accept requests. It cannot if the database
// is unavailable or the node is shutting down. Without Redis, nodes still work, but
// with delays. A full disk makes the node unready only if there can be other nodes.
func (h *Hub) ready(w http.ResponseWriter, r *http.Request) {
	select {
	case <-h.draining:
		h.server.WriteProblem(w, r, &api.Problem{Status: 503, Code: "draining", Detail: "the node is shutting down", Next: "use another node"})
		return
	default:
	}
	ctx, stop := context.WithTimeout(r.Context(), readyTimeout)
	defer stop()
	if err := h.db.Ping(ctx); err != nil {
		h.log.Error("not ready", "error", err)
		h.server.WriteProblem(w, r, &api.Problem{Status: 503, Code: "unavailable", Detail: "the database cannot be reached", Next: "try again in a moment"})
		return
	}
	disk := "ok"
	if free, known := h.diskFree(h.opts.Data); known && free < minDisk {
		if h.db.Kind() != "SQLite" {
			h.server.WriteProblem(w, r, &api.Problem{Status: 503, Code: "disk_full", Detail: "the disk of this node is full", Next: "free disk space; other nodes continue"})
			return
		}
		disk = "full: writes fail; free disk space"
	}
	bus := "ok"
	if h.bus.Healthy() != nil {
		bus = "disconnected: nodes poll the database every second"
	}
	plainText(w, "ok\n\ndatabase: ok\nbus: "+bus+"\ndisk: "+disk+"\n")
}

// welcome serves a short greeting to clients other than browsers.
func (h *Hub) welcome(w http.ResponseWriter, r *http.Request) {
	plainText(w, "This is a Loadout hub: skills for agents, shared and reviewed.\n\n"+
		"The API is below "+h.server.Origin(r)+api.Prefix+", and described at "+h.server.Origin(r)+"/openapi.json.\n")
}

// setupPage explains how to create the first administrator without a browser. It
// does not check the link, which is checked on use.
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

// serveMetrics returns the metrics handler. Only operators may use it, because
// metrics reveal activity.
func (h *Hub) serveMetrics() http.Handler {
	metrics := promhttp.HandlerFor(h.metrics.Registry, promhttp.HandlerOpts{})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := account.Check(account.FromContext(r.Context()), account.HubOperate, account.Resource{}); err != nil {
			h.server.WriteProblem(w, r, err)
			return
		}
		metrics.ServeHTTP(w, r)
	})
}
