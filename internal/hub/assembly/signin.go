package assembly

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/auth"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/oauth"
	"github.com/loadout-dev/loadout/internal/upstream"
)

// planSignIns adds to which servers the person is signed in, or has to be: of these he has
// connections of his own.
func (k *Assembler) planSignIns(ctx context.Context, p *plan) error {
	if k.o.SignIns == nil || len(p.servers) == 0 {
		return nil
	}
	resolved := make([]*upstream.Config, len(p.servers))
	for i, s := range p.servers {
		resolved[i], _ = s.Resolve(p.values[s.Name])
	}
	stamps, err := k.o.SignIns.Fingerprints(ctx, p.principal.User, resolved)
	for i, stamp := range stamps {
		p.stamps[p.servers[i].Name] = stamp
	}
	return err
}

// oauthHandler gives a connection the token of the person whose it is, where it is somebody's.
func (k *Assembler) oauthHandler(c *upstream.Config, at string) auth.OAuthHandler {
	b := k.findBase(c.Identity())
	switch {
	case k.o.SignIns == nil:
		return nil
	case c.Identity() == "":
		return k.o.SignIns.Handler("", c, at)
	case b == nil:
		return oauth.NewRefusingHandler("what it was for has ended; load the skill again, or say something in the conversation")
	case c.Owner != "" && !b.isDocumentServer(c):
		return oauth.NewRefusingHandler("a skill brings it, and for such servers nobody signs in: add it as an MCP server of your own")
	default:
		return k.o.SignIns.Handler(b.principal.User, c, at)
	}
}

// isDocumentServer says whether a server is of a document, and not of a skill.
func (b *base) isDocumentServer(c *upstream.Config) bool {
	defined, ok := b.servers[c.Name]
	return ok && defined.Owner == c.Owner
}

// CloseConnections ends the connections of somebody on this node to a server that he signed out of,
// by the digest of its definition; "" is of any.
func (k *Assembler) CloseConnections(u account.UserID, digest string) {
	for _, s := range k.pool.Servers() {
		if b := k.findBase(s.Config().Identity()); b != nil && b.principal.User == u && (digest == "" || s.Digest() == digest) {
			s.Close()
			s.Retry()
		}
	}
}
