package catalog

import (
	"context"
	"errors"
)

// ErrNotFetched is returned for a file of a skill of an MCP server that is not in
// the cache, if the context comes from [CachedOnly].
var ErrNotFetched = errors.New("file not fetched yet")

type cachedOnlyKey struct{}

// CachedOnly returns a copy of ctx for reading skills of MCP servers from the cache only:
// a file that is not in it is not fetched.
func CachedOnly(ctx context.Context) context.Context {
	return context.WithValue(ctx, cachedOnlyKey{}, true)
}

// IsCachedOnly reports whether ctx comes from [CachedOnly]. Sources must call it
// before they fetch a file.
func IsCachedOnly(ctx context.Context) bool { return ctx.Value(cachedOnlyKey{}) != nil }
