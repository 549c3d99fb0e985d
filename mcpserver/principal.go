package mcpserver

import (
	"context"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/tools"
)

// noToolsText is the response to a principal without tools.
const noToolsText = "This server has no tools of other servers for you."

// authenticated returns a handler that calls Authenticate for each request. The
// SDK passes the principal to the handlers and binds the session to it, as it
// does for the user of a bearer token.
func (o *HTTPOptions) authenticated(next http.Handler) http.Handler {
	if o.Authenticate == nil {
		return next
	}
	carry := auth.RequireBearerToken(func(_ context.Context, _ string, r *http.Request) (*auth.TokenInfo, error) {
		p := r.Context().Value(principalKey{}).(policy.Principal)
		return &auth.TokenInfo{UserID: p.String(), Expiration: time.Now().Add(time.Minute), Extra: map[string]any{principalExtra: p}}, nil
	}, nil)(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, err := o.Authenticate(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		r = r.Clone(context.WithValue(r.Context(), principalKey{}, p))
		r.Header.Set("Authorization", "Bearer authenticated") // the original value must not be used below
		carry.ServeHTTP(w, r)
	})
}

type principalKey struct{}

// principalExtra is the key of the principal in [auth.TokenInfo.Extra].
const principalExtra = "loadout.principal"

// withRequestPrincipal returns a context that carries the principal of a
// request.
func withRequestPrincipal(ctx context.Context, req mcp.Request) context.Context {
	extra := req.GetExtra()
	if extra == nil || extra.TokenInfo == nil {
		return ctx
	}
	if p, ok := extra.TokenInfo.Extra[principalExtra].(policy.Principal); ok {
		return context.WithValue(ctx, principalKey{}, p)
	}
	return ctx
}

// requestPrincipal returns the principal that Authenticate returned for the
// request.
func requestPrincipal(ctx context.Context) (policy.Principal, bool) {
	p, ok := ctx.Value(principalKey{}).(policy.Principal)
	return p, ok
}

// principal returns the principal of the request in ctx, or the server's
// default.
func (s *Server) principal(ctx context.Context) policy.Principal {
	if p, ok := requestPrincipal(ctx); ok {
		return p
	}
	return s.opts.Principal
}

// tools returns the tools for the principal of the request in ctx, or nil if
// there are none.
func (s *Server) tools(ctx context.Context) *tools.Set {
	p, ok := requestPrincipal(ctx)
	switch {
	case !ok:
		return s.opts.Tools
	case s.opts.ToolsFor == nil:
		return nil
	}
	return s.opts.ToolsFor(p)
}
