package hub

import (
	"context"
	"math"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/hub/people"
)

// TokenJSON is an API token, without the token.
type TokenJSON struct {
	ID      string     `json:"id"`
	Name    string     `json:"name"`
	Prefix  string     `json:"prefix" doc:"How the token begins"`
	Scopes  []string   `json:"scopes" nullable:"false"`
	Created time.Time  `json:"created"`
	Expires *time.Time `json:"expires,omitempty" doc:"Not there where it is never"`
	Used    *time.Time `json:"used,omitempty" doc:"Last, to about a minute"`
}

func tokenOf(t account.Token) TokenJSON {
	return TokenJSON{ID: t.ID, Name: t.Name, Prefix: t.Prefix, Scopes: t.Scopes.Names(), Created: t.Made, Expires: when(t.Expires), Used: when(t.Used)}
}

// newTokenJSON is a token that was made, told this once.
type newTokenJSON struct {
	Token string `json:"token" doc:"Send it as Authorization: Bearer TOKEN. It is not shown again"`
	TokenJSON
}

type tokenRequest struct {
	Name   string   `json:"name" minLength:"1" maxLength:"100" doc:"What you know it by"`
	Scopes []string `json:"scopes" nullable:"false" minItems:"1" maxItems:"7" enum:"read,write,run,chat,mcp,review,admin"`
	Days   int      `json:"days,omitempty" minimum:"0" maximum:"3650" doc:"How long it is good for; 0 is for ever"`
}

// TokenOwner names a user in a query.
type TokenOwner struct {
	User string `query:"user" maxLength:"64" default:"me" doc:"The id of a user, or me"`
}

func (h *Hub) tokens(api huma.API) {
	add(h, api, operation("list-tokens", "GET", "/tokens", "Tokens of a user"), h.listTokens)
	add(h, api, created(operation("make-token", "POST", "/tokens", "Make a token of your own, with scopes that you have")), h.makeToken)
	add(h, api, operation("end-token", "DELETE", "/tokens/{token}", "Withdraw a token"), h.endToken)
}

func (h *Hub) listTokens(ctx context.Context, in *TokenOwner) (*body[listed[TokenJSON]], error) {
	p := account.FromContext(ctx)
	tokens, err := h.people.Tokens.Of(ctx, p, userID(p, in.User))
	return page(tokens, "", err, tokenOf)
}

func (h *Hub) makeToken(ctx context.Context, in *struct{ Body tokenRequest }) (*body[newTokenJSON], error) {
	scopes, err := account.ParseScopes(strings.Join(in.Body.Scopes, " "))
	if err != nil {
		return nil, &people.InvalidError{Field: "scopes", Why: err.Error()}
	}
	life := time.Duration(min(in.Body.Days, math.MaxInt16)) * 24 * time.Hour
	text, token, err := h.people.Tokens.Make(ctx, account.FromContext(ctx), in.Body.Name, scopes, life)
	return answered(newTokenJSON{text, tokenOf(token)}, err)
}

func (h *Hub) endToken(ctx context.Context, in *struct {
	Token string `path:"token" maxLength:"64" doc:"The id of a token"`
	TokenOwner
}) (*nothing, error) {
	p := account.FromContext(ctx)
	return nil, h.people.Tokens.End(ctx, p, userID(p, in.User), in.Token)
}
