package assembly

import (
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/upstream"
)

// ServerStatus describes an MCP server as seen from this node.
type ServerStatus struct {
	upstream.Status
	// Connections is the number of open connections. Users with their own secret
	// values have their own connections.
	Connections int
	// Conversations is the number of active conversations that use the server.
	Conversations int

	own bool
}

// ServerStatuses returns the status of the servers that this node has used, by
// configuration digest. It covers shared connections and the principal's own, or
// all connections for an administrator.
func (k *Assembler) ServerStatuses(p account.Principal) map[string]ServerStatus {
	seen := k.findVisible(p)
	out := map[string]ServerStatus{}
	for _, s := range k.pool.Servers() {
		identity := s.Config().Identity()
		whose, ok := seen.bases[identity]
		if identity != "" && !ok {
			continue
		}
		now := ServerStatus{Status: s.Status(), own: identity == "" || whose == p.User}
		if now.State == upstream.Ready {
			now.Connections = 1
		}
		if have, ok := out[s.Digest()]; ok {
			n := now.Connections + have.Connections
			if have.isBetterThan(now) {
				now = have
			}
			now.Connections = n
		}
		now.Conversations = len(seen.conversations[s.Digest()])
		out[s.Digest()] = now
	}
	return out
}

// isBetterThan reports whether l is more relevant than other. The principal's own
// connections are more relevant than shared ones, and working connections are
// more relevant than failed ones.
func (l ServerStatus) isBetterThan(other ServerStatus) bool {
	rank := map[upstream.State]int{upstream.Ready: 3, upstream.Degraded: 2, upstream.Dead: 1}
	switch {
	case l.own != other.own:
		return l.own
	case rank[l.State] != rank[other.State]:
		return rank[l.State] > rank[other.State]
	}
	return l.Since.After(other.Since)
}

// visibleBases holds the bases that a principal may see.
type visibleBases struct {
	bases         map[string]account.UserID  // owners by base key
	conversations map[string]map[string]bool // conversation IDs by server digest
}

func (k *Assembler) findVisible(p account.Principal) visibleBases {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := visibleBases{map[string]account.UserID{}, map[string]map[string]bool{}}
	for key, b := range k.bases {
		if b.principal.User != p.User && !p.Admin {
			continue
		}
		out.bases[key] = b.principal.User
		for _, s := range b.plan.servers {
			d := s.Digest()
			if out.conversations[d] == nil {
				out.conversations[d] = map[string]bool{}
			}
			for id := range b.conversations {
				out.conversations[d][id] = true
			}
		}
	}
	return out
}

// addConversation counts a conversation's setup as active until done is called.
func (b *base) addConversation(id string) (done func()) {
	if id == "" {
		return func() {}
	}
	count := func(n int) {
		b.assembler.mu.Lock()
		defer b.assembler.mu.Unlock()
		if b.conversations[id] += n; b.conversations[id] == 0 {
			delete(b.conversations, id)
		}
	}
	count(1)
	return func() { count(-1) }
}

// RestartServer closes this node's connections to a server and clears its
// failures, so that the next call reconnects. It returns the number of closed
// connections.
func (k *Assembler) RestartServer(digest string) int {
	n := 0
	for _, s := range k.pool.Servers() {
		if s.Digest() == digest {
			s.Close()
			s.Retry()
			n++
		}
	}
	return n
}
