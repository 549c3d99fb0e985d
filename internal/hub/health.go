package hub

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/people"
)

// readyTime is how long the database may take to say that it is there.
const readyTime = 2 * time.Second

// healthy says that the process is at work, whatever it needs.
func (h *Hub) healthy(w http.ResponseWriter, _ *http.Request) { plainText(w, "ok\n") }

// minDisk is what has to be free on the disk of a node.
const minDisk = 64 << 20

// ready says whether requests should be sent here: not while the database is away, and
// not once the hub is about to end. Without Redis nodes wake each other later, and work.
// A full disk is for the others to make up for, where there can be others.
func (h *Hub) ready(w http.ResponseWriter, r *http.Request) {
	select {
	case <-h.draining:
		h.refuse(w, r, &Problem{Status: 503, Code: "draining", Detail: "the hub is about to end", Next: "ask another node"})
		return
	default:
	}
	ctx, stop := context.WithTimeout(r.Context(), readyTime)
	defer stop()
	if err := h.db.Ping(ctx); err != nil {
		h.log.Error("not ready", "error", err)
		h.refuse(w, r, &Problem{Status: 503, Code: "unavailable", Detail: "the database cannot be reached", Next: "try again in a moment"})
		return
	}
	disk := "ok"
	if free, known := h.free(h.opts.Data); known && free < minDisk {
		if h.db.Kind() != "SQLite" {
			h.refuse(w, r, &Problem{Status: 503, Code: "disk_full", Detail: "the disk of this node is full", Next: "make room on it; other nodes go on"})
			return
		}
		disk = "full: what is written fails; make room"
	}
	bus := "ok"
	if h.bus.Healthy() != nil {
		bus = "away: nodes hear of each other by the database, a second later"
	}
	plainText(w, "ok\n\ndatabase: ok\nbus: "+bus+"\ndisk: "+disk+"\n")
}

// welcome says what is here to who comes without a browser.
func (h *Hub) welcome(w http.ResponseWriter, r *http.Request) {
	plainText(w, "This is a Loadout hub: skills for agents, shared and reviewed.\n\n"+
		"The API is below "+h.origin(r)+base+", and described at "+h.origin(r)+"/openapi.json.\n")
}

// setupPage says how the first administrator is made without a browser. Whether the link
// is good is said when it is used.
func (h *Hub) setupPage(w http.ResponseWriter, r *http.Request) {
	vacant, err := h.people.SignIns.Vacant(r.Context())
	if err == nil && !vacant {
		err = people.ErrHasAdmin
	}
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	plainText(w, "This hub has no administrator yet. To become the first one, put a name and a password\n"+
		"of at least 10 characters into admin.json, and send it with the link that you have:\n\n"+
		fmt.Sprintf("  {\"link\": \"LINK\", \"name\": \"ada\", \"password\": \"...\"}\n\n  curl --json @admin.json %s%s/setup\n\n", h.origin(r), base)+
		"LINK is what stands behind /setup/ in the address of this page. It is good once, and\nfor a day.\n")
}

// origin is the address of the hub, as whoever asks can use it.
func (h *Hub) origin(r *http.Request) string {
	if h.opts.Public != "" {
		return h.opts.Public
	}
	return "http://" + r.Host
}

func plainText(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprint(w, text)
}
