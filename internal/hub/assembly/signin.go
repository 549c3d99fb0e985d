package assembly

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/auth"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/oauth"
	"github.com/loadout-dev/loadout/internal/upstream"
)

// planSignIns adds the fingerprints of the user's sign-ins. Servers with a
// sign-in get their own connections.
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

// oauthHandler returns the handler that adds the user's token to a connection;
// nil if there are no sign-ins.
func (k *Assembler) oauthHandler(c *upstream.Config, at string) auth.OAuthHandler {
	b := k.findBase(c.Identity())
	switch {
	case k.o.SignIns == nil:
		return nil
	case c.Identity() == "":
		return k.o.SignIns.Handler("", c, at)
	case b == nil:
		return oauth.NewRefusingHandler("the connection's setup is closed; load the skill again or send a message")
	case c.Owner != "" && !b.isDocumentServer(c):
		return oauth.NewRefusingHandler("servers of skills do not support sign-in; add it as your own MCP server")
	default:
		return k.o.SignIns.Handler(b.principal.User, c, at)
	}
}

// isDocumentServer reports whether a server is defined by a document, not by a
// skill.
func (b *base) isDocumentServer(c *upstream.Config) bool {
	defined, ok := b.servers[c.Name]
	return ok && defined.Owner == c.Owner
}

// CloseConnections closes the connections of a user on this node to a server,
// by the digest of its definition; "" closes all. Call it after a sign-out.
func (k *Assembler) CloseConnections(u account.UserID, digest string) {
	for _, s := range k.pool.Servers() {
		if b := k.findBase(s.Config().Identity()); b != nil && b.principal.User == u && (digest == "" || s.Digest() == digest) {
			s.Close()
			s.Retry()
		}
	}
}
