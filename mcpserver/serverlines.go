package mcpserver

import (
	"context"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/clientprofile"
	"github.com/loadout-dev/loadout/internal/servertext"
	"github.com/loadout-dev/loadout/internal/toolname"
	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/tools"
)

// A model chooses a server by one line, in the description of find_tools. It is
// there and not in the instructions, which the catalog of skills needs: Claude
// Code truncates the instructions and each description separately, at 2,048
// characters. The other recorded clients truncate neither.

const (
	findLead    = "Find tools of MCP servers and loaded skills, to call with call_tool."
	serverGuide = "The description of find_tools lists the user's other MCP servers." // in the instructions
	// serverBytes is the maximum size of all lines together, in bytes, for clients
	// that may truncate descriptions.
	serverBytes = 1800
)

// serverInfo describes a server to clients.
type serverInfo struct {
	Name    string `json:"name"`
	Purpose string `json:"purpose,omitempty"`
	Tools   int    `json:"tools" jsonschema:"-1: unknown"`
	Problem string `json:"problem,omitempty"`
	summary tools.ServerSummary
}

func serverInfos(all []tools.ServerSummary) []serverInfo {
	var out []serverInfo
	for _, sum := range all[:min(len(all), servertext.MaxServers)] {
		out = append(out, serverInfo{Name: sum.Name, Purpose: servertext.Purpose(sum, 200), Tools: sum.Tools, Problem: sum.Problem, summary: sum})
	}
	return out
}

// listServers returns a list of servers for a model whose search found no tool.
func listServers(all []serverInfo) string {
	var b strings.Builder
	for _, s := range all {
		b.WriteString(servertext.Line(s.summary, 200))
		switch {
		case s.Problem != "" && s.Tools < 0:
			b.WriteString(" [not available: " + s.Problem + "]")
		case s.Problem != "":
			b.WriteString(" [not working]")
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// serversFor returns the description of find_tools for the client of req, with a
// line for each server. The description for a connection does not change.
func (t *catalogTexts) serversFor(ctx context.Context, s *Server, req mcp.Request) string {
	c := t.conn(s, req)
	if c == nil {
		return s.serverText(ctx, profileOf(req))
	}
	c.serversOnce.Do(func() { c.servers = s.serverText(ctx, c.profile) })
	return c.servers
}

// serverText returns the description of find_tools for the principal of ctx and
// clients with the given profile.
func (s *Server) serverText(ctx context.Context, p *clientprofile.Profile) string {
	if s.opts.Compat != "" || s.opts.ToolsOnly || !s.hasTools() {
		return findLead
	}
	set := s.tools(ctx)
	if set == nil {
		return findLead
	}
	describe := set.Summaries
	if s.opts.SharedAnswers != nil { // nodes know different tools, but must list the same
		describe = set.ConfiguredSummaries
	}
	all := describe()
	if len(all) == 0 {
		return findLead
	}
	limit := serverBytes
	if p.Description == clientprofile.All {
		limit = servertext.MaxBytes
	}
	return findLead + " Its query matches words. Servers:\n" + servertext.Lines(all, limit)
}

// setServers sets the description of find_tools, which lists servers, in a list
// of tools.
func setServers(list *mcp.ListToolsResult, description string) {
	i := slices.IndexFunc(list.Tools, func(t *mcp.Tool) bool { return t.Name == toolname.FindTools })
	if i < 0 || list.Tools[i].Description == description {
		return
	}
	tool := *list.Tools[i]
	tool.Description = description
	list.Tools[i] = &tool
}

// shortInstructions is the maximum size of a server's instructions in the result
// of a search with a query, in bytes. Without a query, they are complete.
const shortInstructions = 2 << 10

// serverInstructions returns a server's own instructions for a model, or "" if it
// has none. If short is set, they are truncated. They are cleaned, and each line is quoted, so that they cannot look
// like text of this server.
func serverInstructions(server, text string, short bool) string {
	text = strings.TrimSpace(untrusted.New(text).ForModelLines())
	if short && len(text) > shortInstructions {
		text = servertext.Cut(text, shortInstructions)
	}
	if text == "" {
		return ""
	}
	return "MCP server " + untrusted.New(server).ForModel() + " says about itself (text of that server, not of the user):\n> " + strings.ReplaceAll(text, "\n", "\n> ") + "\n"
}
