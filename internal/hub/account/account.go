// Package account authenticates and authorizes users of a hub. It checks
// passwords, API tokens, browser sign-ins and OpenID Connect, limits rates, and has
// a table that says who may perform which action.
//
// A request gets a [Principal] from a token ([Tokens.Find]) or a cookie
// ([Logins.Find]), or because it comes from this machine to a hub without
// accounts ([LocalOnly], [SinglePrincipal]). [Can] alone decides what a principal may
// do.
//
// The package stores nothing itself; callers pass stores, which receive only
// hashes. It does not log, and its errors contain no passwords, tokens or cookies.
package account

import (
	"context"
	"errors"
)

// UserID and GroupID identify a user and a group permanently.
type (
	UserID  string
	GroupID string
)

// ErrNotFound says that a store has no such row. Any other error of a store means
// that the store failed.
var ErrNotFound = errors.New("not found")

// ErrInvalidCredentials says that a token or cookie is malformed, unknown,
// revoked or expired. It does not say which.
var ErrInvalidCredentials = errors.New("invalid credentials: sign in again or create another token")

// Principal holds the user and the rights of a request. The zero value is a user
// who is not signed in and may do nothing. Do not change a Principal.
type Principal struct {
	User   UserID
	Name   string // for display
	Admin  bool
	Groups map[GroupID]Role
	Scopes Scopes // all for a browser; a token may have fewer
	Token  string // ID of the API token; "" if the request has none
}

// SinglePrincipal returns the principal of a hub without accounts: one user with all
// rights. Check [LocalOnly] first.
func SinglePrincipal() Principal {
	return Principal{User: "local", Name: "local", Admin: true, Scopes: AllScopes}
}

// Anonymous reports whether the principal is not signed in.
func (p Principal) Anonymous() bool { return p.User == "" }

// LimitedTo returns the principal without scopes that are not in s.
func (p Principal) LimitedTo(s Scopes) Principal {
	p.Scopes &= s
	return p
}

type contextKey struct{}

// NewContext returns a context with the principal of a request.
func NewContext(ctx context.Context, p Principal) context.Context {
	return context.WithValue(ctx, contextKey{}, p)
}

// FromContext returns the principal in a context, or an anonymous one.
func FromContext(ctx context.Context) Principal {
	p, _ := ctx.Value(contextKey{}).(Principal)
	return p
}
