package mcpserver

import (
	"context"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/clientprofile"
	"github.com/loadout-dev/loadout/internal/toolname"
)

// To clients that show a model only the structured content of a result, the tools
// that deliver texts declare no output schema and send the text alone. Other clients
// get both. There are only these two variants of the tools.

// textTools lists the tools that omit structured content for clients that would
// show a model only that content.
var textTools = []string{toolname.LoadSkill, toolname.ReadSkillFile}

// profileOf returns the profile of the client that sent a request.
func profileOf(req mcp.Request) *clientprofile.Profile {
	if call, ok := req.(*mcp.CallToolRequest); ok && call.Params != nil {
		info, _ := call.Params.GetMeta()[mcp.MetaKeyClientInfo].(map[string]any)
		if name, _ := info["name"].(string); name != "" { // the SDK would encode and decode it
			return clientprofile.Named(name)
		}
	}
	if r, ok := req.(interface{ ClientInfo() *mcp.Implementation }); ok {
		if c := r.ClientInfo(); c != nil && c.Name != "" {
			return clientprofile.Named(c.Name)
		}
	}
	if extra := req.GetExtra(); extra != nil && extra.Header != nil {
		return clientprofile.WithUserAgent(extra.Header.Get("User-Agent"))
	}
	return clientprofile.Unknown()
}

type textOnlyKey struct{}

// withTextOnly marks the context of a request whose client gets only text from
// the tools in [textTools].
func withTextOnly(ctx context.Context) context.Context {
	return context.WithValue(ctx, textOnlyKey{}, true)
}

// isTextOnly reports whether ctx was marked by withTextOnly.
func isTextOnly(ctx context.Context) bool { return ctx.Value(textOnlyKey{}) != nil }

// removeTextSchemas removes the output schemas of the tools in [textTools] from
// a list of tools.
func (s *Server) removeTextSchemas(list *mcp.ListToolsResult) {
	if s.opts.Compat != "" {
		return
	}
	for i, t := range list.Tools {
		if slices.Contains(textTools, t.Name) {
			tool := *t
			tool.OutputSchema = nil
			list.Tools[i] = &tool
		}
	}
}
