// Package sessionapi serves a hub's conversations over HTTP: messages, events,
// active skills, files, approval requests and usage.
package sessionapi

import (
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/auth"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/usage"
)

// Options configures [New]. All fields are required.
type Options struct {
	*api.Server
	Chat        *chat.Engine
	Agents      *agents.Registry
	Library     *library.Library
	Users       store.Users
	Gate        *auth.Gate
	Credentials *auth.CredentialWatch
	Price       func(model string) (price usage.Price, known bool)
	Window      func(model string) int // 0 if unknown
}

// Handlers serves the operations of this package.
type Handlers struct {
	Options
	// Streams and Sockets limit the number of long-lived connections.
	Streams, Sockets *auth.Limiter
	// Shares limits how often a user previews or creates shares.
	Shares *account.Limiter
}

// New returns handlers for the given options. The caller must close them.
func New(o Options) *Handlers {
	return &Handlers{
		Options: o,
		Streams: auth.NewLimiter("streams of events", maxStreamsEach, maxStreams, streamInterval, auth.SlowClientTimeout),
		Sockets: auth.NewLimiter("WebSockets", socketsEach, socketsAll, socketBeat, auth.SlowClientTimeout),
		Shares:  account.NewLimiter(shareInterval, maxSharesAtOnce, maxShareUsers),
	}
}

// A user may preview or create a share once per shareInterval, and up to
// maxSharesAtOnce in a row: each reads a whole conversation.
const (
	shareInterval   = 3 * time.Second
	maxSharesAtOnce = 20
	maxShareUsers   = 20_000
)

// Close stops accepting event streams and WebSockets, and waits for open ones to
// finish. They finish when the node is draining.
func (h *Handlers) Close() {
	h.Streams.Close()
	h.Sockets.Close()
}

// Register adds the operations to the API.
func (h *Handlers) Register() {
	for _, group := range []func(){h.sessionsAPI, h.foldersAPI, h.sharesAPI, h.approvalsAPI, h.totalsAPI} {
		group()
	}
}
