// Package account says who is there and what they may do: passwords, API tokens,
// sign-ins of browsers and by OpenID Connect, limits to attempts, and the one table
// of who may do what.
//
// A request becomes a [Principal] by a token ([Tokens.Find]), a cookie
// ([Logins.Find]), or because it comes from this machine to a hub of one person
// ([LocalOnly], [Single]). Whether a principal may do something is [Can] alone.
//
// It keeps nothing: rows are in the stores that it is given, which get hashes and
// never what they are of. It writes no log, and neither passwords nor tokens nor
// cookies are in its errors.
package account

import (
	"context"
	"errors"
)

// UserID and GroupID name a user and a group, for ever.
type (
	UserID  string
	GroupID string
)

// ErrUnknown is what a store answers where it has no row; other errors mean that it
// cannot say.
var ErrUnknown = errors.New("unknown")

// ErrRefused says that a token or cookie is good for nothing: it is malformed,
// unknown, withdrawn or expired, and nobody is told which.
var ErrRefused = errors.New("not accepted: sign in again, or make another token")

// Principal is who a request is from. The zero value is somebody who has not signed
// in, and may do nothing. It is not changed after it was made.
type Principal struct {
	User   UserID
	Name   string // of the user, for people
	Admin  bool
	Groups map[GroupID]Role
	Scopes Scopes // what the way in allows: all for a browser, some for a token
	Token  string // the ID of the token that is the way in, "" for another way
}

// Single is the principal of a hub that has one user, who does everything and signs
// in nowhere: who comes past [LocalOnly].
func Single() Principal {
	return Principal{User: "local", Name: "local", Admin: true, Scopes: AllScopes}
}

// Anonymous reports whether nobody signed in.
func (p Principal) Anonymous() bool { return p.User == "" }

// Limited is the principal for a way in that allows these scopes at most.
func (p Principal) Limited(s Scopes) Principal {
	p.Scopes &= s
	return p
}

type contextKey struct{}

// NewContext returns a context that has the principal of a request.
func NewContext(ctx context.Context, p Principal) context.Context {
	return context.WithValue(ctx, contextKey{}, p)
}

// FromContext returns the principal of a request, who is anonymous where none was
// put there.
func FromContext(ctx context.Context) Principal {
	p, _ := ctx.Value(contextKey{}).(Principal)
	return p
}
