package mcpserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/rpcmessage"
	"github.com/loadout-dev/loadout/internal/skilltext"
	"github.com/loadout-dev/loadout/internal/toolname"
	"github.com/loadout-dev/loadout/internal/toolresult"
	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/tools"
)

// addUpstreamTools adds the tools that find and call the tools of other
// servers.
func (s *Server) addUpstreamTools(sdk *mcp.Server) {
	if !s.hasTools() || s.opts.Compat != "" {
		return
	}
	addTool(sdk, &mcp.Tool{Name: toolname.FindTools, Title: "Find tools", Annotations: readOnly, InputSchema: schemaOf[findArgs](),
		Description: findLead}, (*Server).findTools)
	sdk.AddTool(&mcp.Tool{Name: toolname.CallTool, Title: "Call a tool", Annotations: destructive, InputSchema: callSchema,
		Description: "Call a tool that load_skill or find_tools named."},
		func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return serverOf(ctx).callTool(ctx, req)
		})
	sdk.AddTool(&mcp.Tool{Name: toolname.ReadTool, Title: "Read with a tool", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}, InputSchema: callSchema,
		Description: "Like call_tool, for tools that find_tools marks [read_tool]."},
		func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return serverOf(ctx).callTool(ctx, req)
		})
}

// hasTools reports whether the tools of other servers may be available to a
// request.
func (s *Server) hasTools() bool { return s.opts.Tools != nil || s.opts.ToolsFor != nil }

var callSchema = &jsonschema.Schema{Type: "object", Required: []string{"name"}, Properties: map[string]*jsonschema.Schema{
	"name": {Type: "string"}, "arguments": {Type: "object", Description: "by the tool's inputSchema"},
}, PropertyOrder: []string{"name", "arguments"}}

type findArgs struct {
	Query   string `json:"query,omitempty" jsonschema:"a few words; none lists all"`
	Skill   string `json:"skill,omitempty" jsonschema:"only of this skill"`
	Server  string `json:"server,omitempty" jsonschema:"only of this server"`
	Schemas *bool  `json:"schemas,omitempty" jsonschema:"default: for few tools"`
	Cursor  string `json:"cursor,omitempty"`
}

// toolInfo describes an upstream tool to clients.
type toolInfo struct {
	Name             string `json:"name"`
	Title            string `json:"title,omitempty"`
	Description      string `json:"description"`
	InputSchema      any    `json:"inputSchema,omitempty"`
	Server           string `json:"server"`
	State            string `json:"state"`
	RequiresApproval bool   `json:"requires_approval"`
	ReadOnly         bool   `json:"read_only,omitempty"`
}

type findResult struct {
	Tools        []toolInfo       `json:"tools"`
	Servers      []serverInfo     `json:"servers,omitempty"`
	Instructions string           `json:"instructions,omitempty"`
	Next         string           `json:"next,omitempty"`
	Problems     []untrusted.Text `json:"problems,omitempty"`
	notice
}

const (
	toolPage = 50
	// maxToolText is the maximum length of a description in characters, and
	// pageBytes the maximum size of a page. Servers may send descriptions of
	// any length.
	maxToolText = 4000
	pageBytes   = 64 << 10
)

func (s *Server) findTools(ctx context.Context, in findArgs) (*mcp.CallToolResult, *findResult, error) {
	if s.view().snap.Disabled && in.Skill != "" {
		return errorResult(skillsDisabled), nil, nil
	}
	skip, err := decodeCursor(in.Cursor)
	if err != nil {
		return errorResult(err.Error()), nil, nil
	}
	set := s.tools(ctx)
	if set == nil {
		return errorResult(noToolsText), nil, nil
	}
	found, err := set.Find(ctx, tools.Query{Text: in.Query, Skill: in.Skill, Server: in.Server})
	if err != nil {
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		return errorResult(s.errorText(err) + "."), nil, nil
	}
	out := &findResult{Problems: untrusted.List(found.Problems), Servers: serverInfos(found.Servers)}
	if in.Cursor == "" {
		out.Instructions = serverInstructions(in.Server, found.Instructions, in.Query != "")
	}
	page := found.Tools[min(skip, len(found.Tools)):]
	if fit := pageLength(page); fit < len(page) {
		page, out.Next = page[:fit], encodeCursor(skip+fit)
	}
	s.markApprovals(ctx, page)
	var schemas bool
	out.Tools, schemas = toolInfos(page, in.Schemas)
	return textResult(toolText(page, out, schemas)), out, nil
}

// markApprovals marks the tools that need approval. It does not consider grants
// for a single connection.
func (s *Server) markApprovals(ctx context.Context, all []tools.Tool) {
	s.tools(ctx).ResolveApprovals(ctx, all, &tools.Call{Principal: s.principal(ctx), Session: s.opts.Session})
}

// pageLength returns the number of tools that fit in a page.
func pageLength(all []tools.Tool) int {
	size := 0
	for i, t := range all {
		b, _ := json.Marshal(t.Definition.InputSchema)
		if size += len(b) + min(len(t.Definition.Description), maxToolText); i > 0 && size > pageBytes || i == toolPage {
			return i
		}
	}
	return len(all)
}

// toolInfos converts tools for clients. It includes schemas if *want is true,
// or if want is nil and they fit.
func toolInfos(page []tools.Tool, want *bool) ([]toolInfo, bool) {
	out := make([]toolInfo, 0, len(page))
	size := 0
	for _, t := range page {
		d := t.Definition
		b, _ := json.Marshal(d.InputSchema)
		if size += len(b); len(b) > pageBytes {
			b = nil // too large for a model
		}
		out = append(out, toolInfo{Name: t.Name, Title: truncate(untrusted.New(d.Title).ForModel(), 200), Description: truncate(untrusted.New(d.Description).ForModelLines(), maxToolText),
			InputSchema: untrusted.CleanJSON(b), Server: t.Server, State: string(t.State), RequiresApproval: t.NeedsApproval, ReadOnly: t.ReadOnly})
	}
	schemas := size <= skilltext.MaxSchemaBytes
	if want != nil {
		schemas = *want
	}
	if !schemas {
		for i := range out {
			out[i].InputSchema, out[i].Title = nil, ""
			out[i].Description = oneLine(out[i].Description)
		}
	}
	return out, schemas
}

// oneLine returns a description on one line, truncated to 160 characters.
func oneLine(s string) string {
	return truncate(untrusted.New(s).ForModel(), 160)
}

// truncate truncates s to limit characters.
func truncate(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	if r := []rune(s); len(r) > limit {
		s = string(r[:limit-1]) + "…"
	}
	return s
}

// toolText returns a description of a page of tools for a model.
func toolText(page []tools.Tool, out *findResult, schemas bool) string {
	var b strings.Builder
	writeTools(&b, out.Tools)
	switch {
	case len(page) == 0 && len(out.Servers) > 0 && len(out.Problems) == 0:
		b.WriteString("No tool fits. Try other words, or server with the name of one of these MCP servers:\n" + listServers(out.Servers))
	case len(page) == 0 && len(out.Problems) == 0:
		b.WriteString("No tool fits. Try other words, or none for the whole list.\n")
	case !schemas && len(page) > 0:
		b.WriteString("For their arguments: find_tools with schemas true and a narrower query.\n")
	}
	for _, p := range out.Problems {
		b.WriteString("Problem: " + p.ForModel() + "\n")
	}
	b.WriteString(out.Instructions)
	if out.Next != "" {
		fmt.Fprintf(&b, "There are more: search again with cursor %q.\n", out.Next)
	}
	return b.String()
}

func writeTools(b *strings.Builder, infos []toolInfo) {
	all := make([]skilltext.Tool, len(infos))
	for i, t := range infos {
		raw, _ := t.InputSchema.(json.RawMessage)
		all[i] = skilltext.Tool{Name: t.Name, Description: t.Description, InputSchema: raw, Server: t.Server, State: t.State, NeedsApproval: t.RequiresApproval, ReadOnly: t.ReadOnly}
	}
	skilltext.WriteTools(b, all, true)
}

// callTool handles call_tool and read_tool: it forwards the call and returns the
// tool's result.
func (s *Server) callTool(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var in struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if err := json.Unmarshal(req.Params.Arguments, &in); err != nil || in.Name == "" {
		return errorResult("Give the name of a tool, as find_tools lists them, and its arguments as an object."), nil
	}
	if slices.Contains(ourTools, in.Name) {
		return errorResult(in.Name + " is a tool of this server: call it directly."), nil
	}
	if misplaced := misplacedArguments(req.Params.Arguments); len(in.Arguments) == 0 && misplaced != nil {
		return errorResult("Give the arguments as an object. Call:\n" + callLine(req.Params.Name, in.Name, misplaced)), nil
	}
	if string(in.Arguments) == "null" {
		in.Arguments = nil
	}
	return s.call(ctx, req, in.Name, in.Arguments)
}

// call calls another server's tool. If policy requires approval and the client
// supports it, call asks the user first.
func (s *Server) call(ctx context.Context, req *mcp.CallToolRequest, name string, args json.RawMessage) (*mcp.CallToolResult, error) {
	p := req.Params
	if s.opts.Refresh != nil { // tools disabled in the meantime are refused
		if err := s.opts.Refresh(ctx); err != nil {
			return errorResult("Nothing is called while the configuration cannot be read: " + s.errorText(err) + "."), nil
		}
	}
	set := s.tools(ctx)
	if set == nil {
		return errorResult(noToolsText), nil
	}
	c := s.caller(ctx, req)
	c.Name, c.Arguments, c.Meta, c.ReadOnly = name, args, p.Meta, p.Name == toolname.ReadTool
	if no := s.applyAnswer(ctx, c, name, s.approvals.readAnswer(ctx, name, args, p.RequestState, p.InputResponses)); no != nil {
		return no, nil
	}
	c.RequestState, c.InputResponses = s.approvals.innerState(p.RequestState, p.InputResponses)
	if token := p.GetProgressToken(); token != nil {
		tell, done := progressTo(ctx, req.Session, token)
		defer done()
		c.Progress = tell
	}
	if longLivedSession(req) != nil && canElicit(req) && req.ProtocolVersion() < rpcmessage.ModernVersion {
		c.Elicit = req.Session.Elicit
	}
	res, err := set.Call(toolresult.WithForwarding(ctx, &s.memory), c)
	if err == nil {
		if res.NeedsInput() && c.Approved { // the tool server asks its own question after the user approved the call
			res.RequestState = s.approvals.wrapState(name, args, c.Subject, res.RequestState)
		}
		if res.IsError {
			if text := set.DescribeAlternatives(ctx, nil, c); text != "" {
				res.Content = append(slices.Clip(res.Content), &mcp.TextContent{Text: strings.TrimSpace(text)})
			}
		}
		return res, nil
	}
	if refused, ok := errors.AsType[*loadout.RefusedError](err); ok && refused.NeedsApproval && canElicit(req) {
		return s.askUser(ctx, refused, c), nil
	}
	return s.callError(ctx, err, p.Name, args)
}

// caller returns a call with the request's principal and session.
func (s *Server) caller(ctx context.Context, req *mcp.CallToolRequest) *tools.Call {
	return &tools.Call{Principal: s.principal(ctx), Session: cmp.Or(s.opts.Session, s.approvals.sessionName(s.sessions(), req)), Presence: presenceOf(req),
		ReadOnlyShown: true} // see askUser
}

func notApproved(tool string) *mcp.CallToolResult {
	return errorResult("The user declined the call of " + tool + ". Do not try it again unless they ask for it.")
}

// progressTo returns a function that forwards progress notifications to a
// client without blocking. It drops notifications if the client is slow. done
// waits until the remaining ones have been sent.
func progressTo(ctx context.Context, client *mcp.ServerSession, token any) (tell func(*mcp.ProgressNotificationParams), done func()) {
	queue := make(chan *mcp.ProgressNotificationParams, 32)
	notified := make(chan struct{})
	go func() {
		defer close(notified)
		for n := range queue {
			_ = client.NotifyProgress(ctx, n) // the client may have disconnected
		}
	}()
	var mu sync.Mutex // prevents progress after done
	open := true
	tell = func(n *mcp.ProgressNotificationParams) {
		mu.Lock()
		defer mu.Unlock()
		n.ProgressToken = token
		if open {
			select {
			case queue <- n:
			default:
			}
		}
	}
	return tell, func() {
		mu.Lock()
		open = false
		close(queue)
		mu.Unlock()
		<-notified
	}
}

// Authorize decides whether another server's tool may be called under its own
// name. It is for servers that list such tools directly. The principal of ctx
// must have tools; see [Options.Tools] and [Options.ToolsFor].
//
// If res and err are nil, the call is allowed. Otherwise return both to the
// client. If policy requires approval, res asks the user through the client.
// Authorize removes its own state from req. If the user approved this call,
// keep adds the approval to the state of a question that the tool's server
// asks. Otherwise, keep is nil.
func (s *Server) Authorize(ctx context.Context, req *mcp.CallToolRequest, server, tool string) (res *mcp.CallToolResult, keep func(state string) string, err error) {
	p, name := req.Params, upstream.ToolName(server, tool)
	if s.opts.Refresh != nil {
		if err := s.opts.Refresh(ctx); err != nil {
			return errorResult("Nothing is called while the configuration cannot be read: " + s.errorText(err) + "."), nil, nil
		}
	}
	c := s.caller(ctx, req)
	c.Name, c.Arguments = tool, p.Arguments
	if no := s.applyAnswer(ctx, c, name, s.approvals.readAnswer(ctx, name, p.Arguments, p.RequestState, p.InputResponses)); no != nil {
		return no, nil, nil
	}
	p.RequestState, p.InputResponses = s.approvals.innerState(p.RequestState, p.InputResponses)
	if c.Approved {
		keep = func(state string) string { return s.approvals.wrapState(name, c.Arguments, c.Subject, state) }
	}
	err = s.tools(ctx).Authorize(ctx, server, c)
	if err == nil {
		return nil, keep, nil
	}
	if refused, ok := errors.AsType[*loadout.RefusedError](err); ok && refused.NeedsApproval && canElicit(req) {
		return s.askUser(ctx, refused, c), nil, nil
	}
	res, err = s.callError(ctx, err, toolname.CallTool, c.Arguments)
	return res, nil, err
}

// callError returns a tool result for a failed call with the given arguments
// through call_tool or read_tool.
// Protocol errors are returned as errors with their code and data.
func (s *Server) callError(ctx context.Context, err error, through string, args json.RawMessage) (*mcp.CallToolResult, error) {
	if wire, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return nil, wire
	}
	msg := err.Error()
	if !strings.HasSuffix(msg, "?") {
		msg += "."
	}
	alternatives := s.tools(ctx).DescribeAlternatives(ctx, err, &tools.Call{Principal: s.principal(ctx), Session: s.opts.Session})
	switch e := err.(type) {
	case *loadout.RefusedError:
		switch how := cmp.Or(s.howToApprove(e), e.Decision.Hint); {
		case e.NeedsApproval && isUserAction(how):
			msg = "The user can " + how + ": " + msg + " This client cannot ask the user."
		case e.NeedsApproval:
			msg += " This client cannot ask the user; " + how + "."
		}
	case *tools.FailedError:
	case *tools.UnknownToolError:
		if strings.HasPrefix(msg, "the user can ") {
			return errorResult("T" + msg[1:]), nil
		}
		full := s.tools(ctx).FullNames(e.Name)
		switch {
		case len(full) == 0 && len(e.Similar) == 0:
			return errorResult(msg + " Find tools with find_tools." + alternatives), nil
		case len(full) == 0:
			full = s.readOnlyNames(ctx, e.Similar)
		}
		return errorResult(msg + s.callLines(ctx, through, full, args)), nil
	case *tools.ArgumentsError:
		return errorResult(msg), nil
	case *tools.NotReadOnlyError:
		if how := s.howToApprove(e); isUserAction(how) {
			msg += " To allow it, the user can " + how + "."
		}
		return errorResult(msg + " Call:\n" + callLine(toolname.CallTool, e.Tool.Name, args)), nil
	default:
		return nil, err
	}
	return errorResult(msg + alternatives), nil
}
