package hub

import (
	"context"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/hub/auth"
	"github.com/loadout-dev/loadout/internal/hub/chat"
)

// ChangeChat has conversations run in another way. Nothing was asked of them as yet.
func (h *Hub) ChangeChat(change func(o *chat.Options)) error {
	ctx, stop := context.WithCancel(context.Background())
	stop()
	err := h.chat.Close(ctx)
	o := chat.Options{Setup: h.assemblies.ChatSetup, Principal: h.gate.PrincipalOf, Token: h.credentialWatch.CurrentScopes, Bus: h.bus, Quotas: h.directory.Quotas.Quotas, Sharing: h.sharing(), Logger: h.log}
	change(&o)
	h.chat = chat.New(h.db, o)
	h.sessions.Chat = h.chat
	return err
}

// Chat has the conversations of a hub.
func (h *Hub) Chat() *chat.Engine { return h.chat }

// Kinds returns the agent registry of a hub.
func (h *Hub) Kinds() *agents.Registry { return h.kinds }

// BoundStreams sets other limits for open streams.
func (h *Hub) BoundStreams(each, all int, beat, slow time.Duration) {
	for _, c := range []*auth.Limiter{h.sessions.Streams, h.sessions.Sockets} {
		c.Each, c.All, c.Beat, c.Slow = each, all, beat, slow
	}
}

// Streams is how many streams of events and WebSockets are open.
func (h *Hub) Streams() (events, sockets int) {
	return h.sessions.Streams.Count(), h.sessions.Sockets.Count()
}

// EndStreams ends streams like a stopping hub.
func (h *Hub) EndStreams() { h.endStreams() }
