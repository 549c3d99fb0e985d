package auth

import (
	"crypto/sha256"
	"sync"
)

// verifiedTokens holds the hashes of access tokens that were valid. Others of the same
// network cannot exhaust the limit for them. It forgets all if there are too many. It is
// safe for concurrent use.
type verifiedTokens struct {
	mu    sync.Mutex
	known map[[sha256.Size]byte]bool
}

func (v *verifiedTokens) contains(token string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.known[sha256.Sum256([]byte(token))]
}

func (v *verifiedTokens) add(token string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.known == nil || len(v.known) >= maxKeys {
		v.known = map[[sha256.Size]byte]bool{}
	}
	v.known[sha256.Sum256([]byte(token))] = true
}
