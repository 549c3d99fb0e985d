// Package account authenticates and authorizes the users of a hub. It checks
// passwords, API tokens, browser sign-ins and OpenID Connect sign-ins, and limits
// their rates. A table defines who may perform which action.
//
// A request gets a [Principal] from a token ([Tokens.Find]) or a cookie
// ([Logins.Find]), or because it comes from this machine to a hub without accounts
// ([LocalOnly], [SinglePrincipal]). Only [Can] decides what a principal may do.
//
// The package stores nothing itself; callers pass stores, which receive only
// hashes. It does not log, and its errors contain no passwords, tokens or cookies.
package account

import (
	"context"
	"errors"
)

// UserID and GroupID permanently identify a user and a group.
type (
	UserID  string
	GroupID string
)

// ErrNotFound is returned by a store if the row does not exist. Any other error
// means that the store failed.
var ErrNotFound = errors.New("not found")

// ErrInvalidCredentials is returned if a token or cookie is malformed, unknown,
// revoked or expired. It does not say which.
var ErrInvalidCredentials = errors.New("invalid credentials: sign in again or create another token")

// Principal holds the user and the permissions of a request. The zero value is a
// user who is not signed in and has no permissions. A Principal must not be
// modified.
type Principal struct {
	User   UserID
	Name   string // display name
	Admin  bool
	Groups map[GroupID]Role
	Scopes Scopes // all for a browser; a token may have fewer
	Token  string // ID of the API token; "" if the request has none
}

// SinglePrincipal returns the principal of a hub without accounts: a single user
// with all permissions. Check [LocalOnly] first.
func SinglePrincipal() Principal {
	return Principal{User: "local", Name: "local", Admin: true, Scopes: AllScopes}
}

// Anonymous reports whether the principal is not signed in.
func (p Principal) Anonymous() bool { return p.User == "" }

// LimitedTo returns a copy of the principal with only the scopes that are also in
// s.
func (p Principal) LimitedTo(s Scopes) Principal {
	p.Scopes &= s
	return p
}

type contextKey struct{}

// NewContext returns a context that carries the principal of a request.
func NewContext(ctx context.Context, p Principal) context.Context {
	return context.WithValue(ctx, contextKey{}, p)
}

// FromContext returns the principal in a context, or an anonymous principal if
// there is none.
func FromContext(ctx context.Context) Principal {
	p, _ := ctx.Value(contextKey{}).(Principal)
	return p
}
