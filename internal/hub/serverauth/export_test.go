package serverauth

import "github.com/loadout-dev/loadout/internal/oauth"

// Keep is what keeps sign-ins to a server, by the digest of its definition.
func (s *Servers) Keep(digest string) oauth.Storage { return s.newTokenStore(digest) }
