// Package sessionapi serves conversations of a hub over HTTP: messages, events,
// active skills, files, approval requests and usage.
package sessionapi

import (
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/auth"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/llm"
)

// Options are the options of [New]. All are required.
type Options struct {
	*api.Server
	Chat       *chat.Engine
	Agents     *agents.Registry
	Library    *library.Library
	Users      store.Users
	Gate       *auth.Gate
	TokenWatch *auth.TokenWatch
	Price      func(model string) (price llm.Price, known bool)
	Window     func(model string) int // 0 if unknown
}

// Handlers serve the operations.
type Handlers struct {
	Options
	// Streams and Sockets limit connections that stay open.
	Streams, Sockets *auth.Limiter
}

// New returns handlers. The caller closes them.
func New(o Options) *Handlers {
	return &Handlers{
		Options: o,
		Streams: auth.NewLimiter("streams of events", maxStreamsEach, maxStreams, streamInterval, auth.SlowClientTimeout),
		Sockets: auth.NewLimiter("WebSockets", socketsEach, socketsAll, socketBeat, auth.SlowClientTimeout),
	}
}

// Close admits no more event streams and WebSockets, and waits for the end of the
// open ones. They end when the node is draining.
func (h *Handlers) Close() {
	h.Streams.Close()
	h.Sockets.Close()
}

// Register adds the operations.
func (h *Handlers) Register() {
	for _, group := range []func(){h.sessionsAPI, h.approvalsAPI, h.totalsAPI} {
		group()
	}
}
