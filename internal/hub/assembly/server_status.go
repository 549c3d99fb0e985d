package assembly

import (
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/upstream"
)

// ServerStatus is how it is with a server on this node.
type ServerStatus struct {
	upstream.Status
	// Connections are those that there are: people with values of their own have
	// connections of their own.
	Connections int
	// Conversations are those under way that have it at hand.
	Conversations int

	own bool
}

// ServerStatuses returns how it is with servers on this node, by the digests of their
// configurations: with connections of the principal and those that all share, in his
// conversations, and for an administrator with all. Servers that nobody has needed here
// are not among them.
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

// isBetterThan reports whether one connection says more of a server than another: one's own does,
// and one that works.
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

// visibleBases is what somebody may know of the bases of this node.
type visibleBases struct {
	bases         map[string]account.UserID  // whose they are, by their keys
	conversations map[string]map[string]bool // conversations under way, by the digest of a server
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

// addConversation counts a conversation that has a base, until it calls over.
func (b *base) addConversation(id string) (over func()) {
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

// RestartServer ends the connections of this node to the servers of a configuration, and forgets
// their failures: the next need connects again. It returns how many servers that were,
// one for each who has values of his own.
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
