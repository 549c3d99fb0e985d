package api

import (
	"errors"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/loadout-dev/loadout/internal/hub/account"
)

// mcpOperations lists the operations that the scope mcp permits, by ID. MCP
// clients use the MCP endpoints, which serve skills and tools. From the API,
// they need only the list of what the endpoints offer. All other operations
// require another scope. The authorization rules may still permit mcp for their
// actions, because the MCP endpoints perform the same actions.
var mcpOperations = map[string]bool{
	"list-capabilities": true,
}

// limitMCP removes the scope mcp from requests for operations that this scope
// does not permit. It rejects a request if its token has no other scope.
func (s *Server) limitMCP(ctx huma.Context, next func(huma.Context)) {
	p := account.FromContext(ctx.Context())
	if p.Scopes&account.ScopeMCP == 0 || p.Token == "" || mcpOperations[ctx.Operation().OperationID] {
		next(ctx)
		return
	}
	p = p.LimitedTo(^account.ScopeMCP)
	if p.Scopes == 0 {
		r, w := humago.Unwrap(ctx)
		s.WriteProblem(w, r, &Problem{Status: 403, Code: "scope", Detail: "the scope mcp permits only the MCP endpoints and " + Prefix + "/capabilities",
			Next: "create a token with more scopes, for example read"})
		return
	}
	next(huma.WithContext(ctx, account.NewContext(ctx.Context(), p)))
}

// withoutMCP removes mcp from the scopes listed in an authorization error,
// because this scope does not permit the operation.
func withoutMCP(operation string, err error) error {
	if d, ok := errors.AsType[*account.DeniedError](err); ok && !mcpOperations[operation] && d.Scopes&^account.ScopeMCP != 0 {
		limited := *d
		limited.Scopes &^= account.ScopeMCP
		return &limited
	}
	return err
}
