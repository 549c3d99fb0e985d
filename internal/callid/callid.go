// Package callid passes the ID of an agent's tool call to code that runs in the
// call. Package agent stores the ID; tools and approval requests read it. It
// stores nothing else about the call.
package callid

import "context"

type key struct{}

// With returns a copy of ctx that carries the ID of a tool call.
func With(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, key{}, id)
}

// From returns the ID of the call that ctx belongs to, or "". The ID is unique
// in the conversation and stays the same if the call is resumed after a crash.
func From(ctx context.Context) string {
	id, _ := ctx.Value(key{}).(string)
	return id
}
