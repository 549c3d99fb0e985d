package hub

import (
	"context"
	"net/http"

	"github.com/loadout-dev/loadout/internal/hub/people"
	"github.com/loadout-dev/loadout/internal/store"
)

// DB is the database of a hub.
func (h *Hub) DB() *store.DB { return h.db }

// People are those of a hub.
func (h *Hub) People() *people.People { return h.people }

// RemoveExpired is what a hub does now and then.
func (h *Hub) RemoveExpired(ctx context.Context) error { return h.removeExpired(ctx) }

// Mount adds a route to a hub that serves nothing yet.
func (h *Hub) Mount(pattern string, f http.HandlerFunc) { h.mux.HandleFunc(pattern, f) }

// MustShow panics for types of which the API would show a part only.
var MustShow = mustShow
