package mcpserver

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/clientprofile"
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
	// serverBytes is the maximum size of all lines together, in bytes, or
	// allServerBytes for clients that show descriptions of any length. maxServers
	// is the maximum number of lines.
	serverBytes    = 1800
	allServerBytes = 6000
	maxServers     = 40
)

// lineBytes lists the possible sizes of a line, in bytes. The largest one that
// fits is used. A line of size 0 has only the name and the number of tools.
var lineBytes = []int{240, 210, 180, 150, 120, minWithExamples, 75, 60, 45, 0}

// minWithExamples is the minimum size of a line that names tools, in bytes.
const minWithExamples = 90

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
	for _, sum := range all[:min(len(all), maxServers)] {
		out = append(out, serverInfo{Name: sum.Name, Purpose: purposeOf(sum, 200), Tools: sum.Tools, Problem: sum.Problem, summary: sum})
	}
	return out
}

// listServers lists servers for a model that found no tool.
func listServers(all []serverInfo) string {
	var b strings.Builder
	for _, s := range all {
		b.WriteString(strings.TrimSuffix(serverLine(s.summary, 200), "\n"))
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

// describeServers returns one line for each server, with a total size of at most
// limit bytes. The lines depend only on the configuration and the known tools, not
// on the state of the servers. If some servers do not fit, the last line gives
// their number.
func describeServers(all []tools.ServerSummary, limit int) string {
	shown := all[:min(len(all), maxServers)]
	for {
		rest := ""
		if n := len(all) - len(shown); n > 0 {
			rest = fmt.Sprintf("… and %d more: find_tools finds their tools too\n", n)
		}
		for _, size := range lineBytes {
			var b strings.Builder
			for _, sum := range shown {
				b.WriteString(serverLine(sum, size))
			}
			if b.WriteString(rest); b.Len() <= limit || len(shown) == 0 {
				return b.String()
			}
		}
		shown = shown[:len(shown)-1]
	}
}

// serverLine describes a server in about limit bytes.
func serverLine(sum tools.ServerSummary, limit int) string {
	line := "- " + truncate(sum.Name, 60)
	facts := ""
	switch {
	case sum.Tools == 1:
		facts = "1 tool"
	case sum.Tools >= 0:
		facts = fmt.Sprintf("%d tools", sum.Tools)
	}
	if limit >= minWithExamples && len(sum.Examples) > 0 {
		facts += ": " + strings.Join(sum.Examples, ", ")
	}
	if facts != "" {
		facts = " (" + facts + ")"
	}
	if purpose := purposeOf(sum, limit-len(line)-len(facts)-2); purpose != "" {
		line += ": " + purpose
	}
	return line + facts + "\n"
}

// purposeOf returns what a server is for, in at most limit bytes: its purpose and
// as many topics of its tools as fit.
func purposeOf(sum tools.ServerSummary, limit int) string {
	text := ""
	switch {
	case sum.Project:
		text = "[project]"
	case sum.Shared:
		text = "[shared]"
	}
	if sum.Purpose != "" && limit > 20 {
		text = strings.TrimSpace(text + " " + sum.Purpose)
		if len(text) > limit {
			text = cutBytes(text, limit)
		}
	}
	sep := "; "
	if sum.Purpose == "" {
		sep = " "
	}
	for _, topic := range sum.Topics {
		if len(text)+len(sep)+len(topic) > limit {
			break
		}
		text = strings.TrimSpace(text + sep + topic)
		sep = ", "
	}
	return text
}

// cutBytes truncates s to n bytes.
func cutBytes(s string, n int) string {
	return strings.ToValidUTF8(s[:max(n-len("…"), 0)], "") + "…"
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
// clients with a profile.
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
		limit = allServerBytes
	}
	return findLead + " Its query matches words. Servers:\n" + describeServers(all, limit)
}

// setServers adds the lines about servers to a list of tools.
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
		text = cutBytes(text, shortInstructions)
	}
	if text == "" {
		return ""
	}
	return "MCP server " + untrusted.New(server).ForModel() + " says about itself (text of that server, not of the user):\n> " + strings.ReplaceAll(text, "\n", "\n> ") + "\n"
}
