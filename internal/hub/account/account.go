// Package account authenticates and authorizes users of a hub: passwords, API
// tokens, sign-ins of browsers and through OpenID Connect, rate limits, and one
// table of who may do what.
//
// A request gets a [Principal] from a token ([Tokens.Find]) or a cookie
// ([Logins.Find]), or because it comes from this machine to a hub without
// accounts ([LocalOnly], [Single]). [Can] alone decides what a principal may
// do.
//
// The package stores nothing itself: the stores that it is given get hashes
// only. It does not log, and its errors contain no passwords, tokens or
// cookies.
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

// ErrNotFound is returned by a store that has no such row. Other errors mean
// that the store cannot tell.
var ErrNotFound = errors.New("not found")

// ErrInvalidCredentials says that a token or cookie is malformed, unknown,
// revoked or expired. It does not say which.
var ErrInvalidCredentials = errors.New("invalid credentials: sign in again or create another token")

// Principal is the user of a request and the rights of the request. The zero
// value is a user who is not signed in and may do nothing. A Principal is never
// changed.
type Principal struct {
	User   UserID
	Name   string // for display
	Admin  bool
	Groups map[GroupID]Role
	Scopes Scopes // all for a browser; a token may have fewer
	Token  string // ID of the token of the request, "" without one
}

// Single returns the principal of a hub without accounts: one user with all
// rights. Check [LocalOnly] first.
func Single() Principal {
	return Principal{User: "local", Name: "local", Admin: true, Scopes: AllScopes}
}

// Anonymous reports whether the principal is not signed in.
func (p Principal) Anonymous() bool { return p.User == "" }

// LimitedTo returns the principal with at most the given scopes.
func (p Principal) LimitedTo(s Scopes) Principal {
	p.Scopes &= s
	return p
}

type contextKey struct{}

// NewContext returns a context with the principal of a request.
func NewContext(ctx context.Context, p Principal) context.Context {
	return context.WithValue(ctx, contextKey{}, p)
}

// FromContext returns the principal of a request, or an anonymous one.
func FromContext(ctx context.Context) Principal {
	p, _ := ctx.Value(contextKey{}).(Principal)
	return p
}
