package accountapi

import (
	"context"
	"math"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/users"
	"github.com/loadout-dev/loadout/internal/untrusted"
)

// TokenJSON describes an API token.
type TokenJSON struct {
	ID      string     `json:"id"`
	Name    string     `json:"name"`
	Prefix  string     `json:"prefix" doc:"Start of the token"`
	Scopes  []string   `json:"scopes" nullable:"false"`
	Created time.Time  `json:"created"`
	Expires *time.Time `json:"expires,omitempty" doc:"Absent if it never expires"`
	Used    *time.Time `json:"used,omitempty" doc:"Last use, accurate to about a minute"`
}

func describeToken(t account.Token) TokenJSON {
	return TokenJSON{ID: t.ID, Name: untrusted.New(t.Name).ForPage(), Prefix: t.Prefix, Scopes: t.Scopes.Names(), Created: t.Created, Expires: api.OptionalTime(t.Expires), Used: api.OptionalTime(t.LastUsed)}
}

// newTokenJSON is a new API token. The token is shown only once.
type newTokenJSON struct {
	Token string `json:"token" doc:"Send it as Authorization: Bearer TOKEN. It is not shown again"`
	TokenJSON
}

type tokenRequest struct {
	Name   string   `json:"name" minLength:"1" maxLength:"100" doc:"Name for your own use"`
	Scopes []string `json:"scopes" nullable:"false" minItems:"1" maxItems:"7" enum:"read,write,run,chat,mcp,review,admin"`
	Days   int      `json:"days,omitempty" minimum:"0" maximum:"3650" doc:"Lifetime; 0 for unlimited"`
}

func (h *Handlers) tokensAPI() {
	api.Add(h.Server, api.Operation("list-tokens", "GET", "/tokens", "List the tokens of a user"), h.listTokens)
	api.Add(h.Server, api.WithCreated(api.Operation("make-token", "POST", "/tokens", "Create a token with some of your scopes")), h.createToken)
	api.Add(h.Server, api.Operation("end-token", "DELETE", "/tokens/{token}", "Revoke a token"), h.revokeToken)
}

func (h *Handlers) listTokens(ctx context.Context, in *api.UserQuery) (*api.Body[api.ListBody[TokenJSON]], error) {
	p := account.FromContext(ctx)
	tokens, err := h.Directory.Tokens.List(ctx, p, api.UserID(p, in.User))
	return api.PageOf(tokens, "", err, describeToken)
}

func (h *Handlers) createToken(ctx context.Context, in *struct{ Body tokenRequest }) (*api.Body[newTokenJSON], error) {
	scopes, err := account.ParseScopes(strings.Join(in.Body.Scopes, " "))
	if err != nil {
		return nil, &users.InvalidError{Field: "scopes", Reason: err.Error()}
	}
	life := time.Duration(min(in.Body.Days, math.MaxInt16)) * 24 * time.Hour
	text, token, err := h.Directory.Tokens.Create(ctx, account.FromContext(ctx), in.Body.Name, scopes, life)
	return api.BodyOf(newTokenJSON{text, describeToken(token)}, err)
}

func (h *Handlers) revokeToken(ctx context.Context, in *struct {
	Token string `path:"token" maxLength:"64" doc:"ID of a token"`
	api.UserQuery
}) (*api.NoBody, error) {
	p := account.FromContext(ctx)
	return nil, h.Directory.Tokens.Revoke(ctx, p, api.UserID(p, in.User), in.Token)
}
