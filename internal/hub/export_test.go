package hub

import (
	"context"
	"net/http"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/hub/users"
	"github.com/loadout-dev/loadout/internal/store"
)

// DB is the database of a hub.
func (h *Hub) DB() *store.DB { return h.db }

// People returns the users of a hub.
func (h *Hub) People() *users.Directory { return h.directory }

// HoldPasswords takes all slots for checks of passwords until they are released.
func (h *Hub) HoldPasswords(ctx context.Context) (release func(), err error) {
	var all []func()
	release = func() {
		for _, leave := range all {
			leave()
		}
	}
	for range passwordsAtOnce {
		leave, err := h.passwords.Acquire(ctx, account.UserClient("test"))
		if err != nil {
			release()
			return nil, err
		}
		all = append(all, leave)
	}
	return release, nil
}

// WaitingSignIns returns the number of sign-ins that wait for a slot.
func (h *Hub) WaitingSignIns() int {
	_, waiting := h.passwords.Stats()
	return waiting
}

// SetDiskFree has a hub believe that so many bytes are free on its disk.
func (h *Hub) SetDiskFree(bytes uint64) {
	h.diskFree = func(string) (uint64, bool) { return bytes, true }
}

// Library are the skills of a hub.
func (h *Hub) Library() *library.Library { return h.library }

// RemoveExpired runs the periodic cleanup of a hub.
func (h *Hub) RemoveExpired(ctx context.Context) error { return h.removeExpired(ctx) }

// Mount adds a route to a hub that serves nothing yet.
func (h *Hub) Mount(pattern string, f http.HandlerFunc) { h.mux.HandleFunc(pattern, f) }

// MountError adds a route that fails.
func (h *Hub) MountError(pattern string, err error) {
	h.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { h.server.WriteProblem(w, r, err) })
}

// Alone does a work of all nodes.
func (h *Hub) Alone(ctx context.Context, work string, every time.Duration, f func(context.Context) error) error {
	return h.withLease(ctx, work, every, f)
}
