package mcpserver

import (
	"context"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/toolname"
)

// Some clients show a model only the structured content of a result if there is
// one. A model then reads instructions as one line of JSON, which costs up to 1.8
// times as many tokens, and never reads the text. To these clients, the tools that
// deliver texts declare no output schema and send the text alone. Other clients get
// both. There are only these two variants of the tools.

// structuredOnly lists clients by the names that they send. If a result has
// structured content, they show a model nothing else.
var structuredOnly = []string{
	"claude-code",                   // anthropics/claude-code#79944; recorded with 2.1.197
	"codex-mcp-client",              // as_function_call_output_payload in openai/codex; recorded with 0.169
	"opencode",                      // since anomalyco/opencode#32074; 1.18 shows the text
	"Visual Studio Code",            // nameLong of the product; see mcpServerRequestHandler.ts and
	"Visual Studio Code - Insiders", // mcpLanguageModelToolContribution.ts in microsoft/vscode
	"Code - OSS",                    // the same, built from source
}

// textTools lists the tools that send only text to clients in structuredOnly.
var textTools = []string{toolname.LoadSkill, toolname.ReadSkillFile}

// userAgents lists prefixes of the User-Agent headers of clients in
// structuredOnly. In protocol versions before 2026-07-28, an HTTP request
// without a session identifies its client only by this header. Visual Studio
// Code sends NAME/VERSION, where NAME is in structuredOnly (extHostMcp.ts).
var userAgents = []string{"claude-code/", "codex", "Visual Studio Code", "Code - OSS/"}

// isStructuredOnly reports whether the client of a request shows a model only the
// structured content of results.
func isStructuredOnly(req mcp.Request) bool {
	if call, ok := req.(*mcp.CallToolRequest); ok && call.Params != nil {
		info, _ := call.Params.GetMeta()[mcp.MetaKeyClientInfo].(map[string]any)
		if name, _ := info["name"].(string); name != "" { // the SDK would encode and decode it
			return slices.Contains(structuredOnly, name)
		}
	}
	if r, ok := req.(interface{ ClientInfo() *mcp.Implementation }); ok {
		if c := r.ClientInfo(); c != nil && c.Name != "" {
			return slices.Contains(structuredOnly, c.Name)
		}
	}
	extra := req.GetExtra()
	if extra == nil || extra.Header == nil {
		return false
	}
	agent := extra.Header.Get("User-Agent")
	return slices.ContainsFunc(userAgents, func(prefix string) bool { return strings.HasPrefix(agent, prefix) })
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
