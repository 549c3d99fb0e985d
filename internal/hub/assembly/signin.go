package assembly

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/auth"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/oauth"
	"github.com/loadout-dev/loadout/internal/upstream"
)

// planSignIns adds the fingerprints of the user's sign-ins to the plan. The
// fingerprints prevent connections to servers with a sign-in from being shared.
func (k *Assembler) planSignIns(ctx context.Context, p *plan) error {
	if k.o.SignIns == nil || len(p.servers) == 0 {
		return nil
	}
	resolved := make([]*upstream.Config, len(p.servers))
	for i, s := range p.servers {
		if resolved[i], _ = s.Resolve(p.values[s.Name]); resolved[i] == nil { // it cannot connect
			resolved[i] = s.Config
		}
	}
	stamps, err := k.o.SignIns.Fingerprints(ctx, p.principal.User, resolved)
	for i, stamp := range stamps {
		p.stamps[p.servers[i].Name] = stamp
	}
	return err
}

// oauthHandler returns the handler that adds the user's token to requests to a
// server, or nil if the hub does not manage sign-ins.
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

// isDocumentServer reports whether one of the base's documents defines the
// server.
func (b *base) isDocumentServer(c *upstream.Config) bool {
	defined, ok := b.servers[c.Name]
	return ok && defined.Owner == c.Owner
}

// CloseConnections closes a user's connections on this node to the server with
// the given definition digest, or to all servers if digest is "". Call it after
// the user has signed out of a server.
func (k *Assembler) CloseConnections(u account.UserID, digest string) {
	for _, s := range k.pool.Servers() {
		if b := k.findBase(s.Config().Identity()); b != nil && b.principal.User == u && (digest == "" || s.Digest() == digest) {
			s.Close()
			s.Retry()
		}
	}
}
