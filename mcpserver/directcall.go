package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/toolname"
	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/tools"
)

// Models call a tool of another server by the name that find_tools lists, as if
// it were one of this server's own tools. Some clients pass such a call on. Rules
// and prompts apply as for call_tool.

// callByName handles calls to another server's tool by the tool's own name. It
// returns a request that makes the same call through call_tool. If the name is
// not the full name of such a tool, but may refer to one, callByName returns a
// result that names the tools instead. For any other name, it returns req.
func (s *Server) callByName(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolRequest, *mcp.CallToolResult) {
	name := req.Params.Name
	if s.opts.Compat != "" || slices.Contains(ourTools, name) || s.isListed(req, name) {
		return req, nil
	}
	set := s.tools(ctx)
	if set == nil {
		return req, nil
	}
	full := set.FullNames(name)
	switch {
	case len(full) == 1 && full[0] == name, len(full) == 0 && strings.Contains(name, "__"): // perhaps of a skill that is not loaded
		if routed, err := asCallTool(req); err == nil {
			return routed, nil
		}
		return nil, errorResult("The arguments of " + untrusted.New(truncate(name, 100)).ForModel() + " are not valid JSON.")
	}
	msg := "There is no tool " + untrusted.New(truncate(name, 100)).ForModel() + "."
	if len(full) == 0 {
		similar := set.SimilarNames(name)
		if len(similar) == 0 {
			return req, nil
		}
		msg += " Did you mean " + strings.Join(similar, " or ") + "?"
		full = s.readOnlyNames(ctx, similar)
	}
	return nil, errorResult(msg + s.callLines(ctx, toolname.CallTool, full, req.Params.Arguments))
}

// isListed reports whether the connection of req lists a tool that was added by
// the embedding program or by loading a skill.
func (s *Server) isListed(req *mcp.CallToolRequest, name string) bool {
	return s.opts.Extend != nil || s.growth != nil && s.growth.toolsOf(req.Session).contains(name)
}

// misplacedArguments returns the members other than name and arguments that a
// call of call_tool has, or nil if there are none. They belong inside arguments.
func misplacedArguments(args json.RawMessage) json.RawMessage {
	var all map[string]json.RawMessage
	if json.Unmarshal(args, &all) != nil {
		return nil
	}
	delete(all, "name")
	delete(all, "arguments")
	if len(all) == 0 {
		return nil
	}
	js, _ := json.Marshal(all) // decoded from JSON
	return js
}

// readOnlyNames returns the names of the tools that read_tool can call.
func (s *Server) readOnlyNames(ctx context.Context, names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return !s.tools(ctx).IsReadOnly(ctx, &tools.Call{Name: name, Principal: s.principal(ctx), Session: s.opts.Session})
	})
}

// callLines returns calls to up to three of the named tools, in the form in
// which a model writes them. It returns "" if names is empty. The calls use
// call_tool, or read_tool if through is "read_tool" and the tool is read-only.
func (s *Server) callLines(ctx context.Context, through string, names []string, args json.RawMessage) string {
	if len(names) == 0 {
		return ""
	}
	names = names[:min(len(names), 3)]
	var read []string
	if through == toolname.ReadTool {
		read = s.readOnlyNames(ctx, names)
	}
	text := " Call:"
	for _, n := range names {
		through := toolname.CallTool
		if slices.Contains(read, n) {
			through = toolname.ReadTool
		}
		text += "\n" + callLine(through, n, args)
	}
	return text
}

// maxCallLine is the maximum size of the arguments in a result of callLine, in
// bytes.
const maxCallLine = 4000

// callLine returns a call to a tool with its arguments, in the form in which a
// model writes it. It omits arguments that are too long or that cleaning would
// change.
func callLine(through, name string, args json.RawMessage) string {
	var line bytes.Buffer
	if len(args) > maxCallLine || json.Compact(&line, args) != nil || !bytes.HasPrefix(line.Bytes(), []byte("{")) {
		line.Reset()
		line.WriteString("{…}")
	}
	if len(bytes.TrimSpace(args)) == 0 || string(args) == "null" {
		line.Reset()
		line.WriteString("{}")
	}
	shown := line.String()
	if untrusted.New(shown).ForModel() != shown {
		shown = "{…}"
	}
	js, _ := json.Marshal(name) // a string can always be encoded
	return through + ` {"name":` + string(js) + `,"arguments":` + shown + "}"
}
