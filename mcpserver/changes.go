package mcpserver

import (
	"context"
	"errors"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/approver"
	"github.com/loadout-dev/loadout/internal/rpcmessage"
)

// approveChanges returns a function that asks the user about held changes of a
// script, or nil if no user can answer.
func (s *Server) approveChanges(req *mcp.CallToolRequest) func(context.Context, []loadout.HeldChange) (bool, error) {
	if s.opts.ApproveChanges != nil {
		return s.opts.ApproveChanges
	}
	// The modern protocol asks by repeating the call, which would run the
	// script again.
	if longLivedSession(req) == nil || !canElicit(req) || req.ProtocolVersion() >= rpcmessage.ModernVersion {
		return nil
	}
	return func(ctx context.Context, changes []loadout.HeldChange) (bool, error) {
		msg, err := approver.ChangesMessage(changes)
		if err != nil {
			return false, err
		}
		res, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: msg, RequestedSchema: changesSchema})
		if err != nil {
			return false, err
		}
		decision := res.Content["decision"]
		switch {
		case res.Action == "accept" && decision == "apply":
			return true, nil
		case res.Action == "decline", res.Action == "accept" && decision == "no":
			return false, nil
		}
		return false, errors.New("user did not answer")
	}
}

// changesSchema is the schema of the user's decision about held changes. The
// decision is required and has no default.
var changesSchema = &jsonschema.Schema{Type: "object", Required: []string{"decision"}, Properties: map[string]*jsonschema.Schema{
	"decision": {Type: "string", Title: "Apply them?", Enum: []any{"apply", "no"}, Description: "apply: all of them; no: none"},
}}
