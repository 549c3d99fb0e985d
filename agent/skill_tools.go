package agent

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/approver"
	"github.com/loadout-dev/loadout/internal/toolname"
	"github.com/loadout-dev/loadout/mcpserver"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/session"
	"github.com/loadout-dev/loadout/tools"
)

// SkillToolOptions configures [SkillTools] and [ServerTools]. The zero value is
// ready to use with SkillTools; ServerTools requires Tools. The functions must
// be safe for concurrent use.
type SkillToolOptions struct {
	// Tools holds the tools of MCP servers and of skills; nil means none. The
	// model finds them with find_tools and calls them with call_tool. Pass the
	// result of [tools.Set.ForSession] to the session too. The caller must close
	// the set afterwards.
	Tools *tools.Set
	// Principal is the principal of the calls; the zero value means the local
	// user.
	Principal policy.Principal
	// Approvals receives requests to approve tool calls, and the servers'
	// elicitations. Pass the queue to [Options.Approvals] too. If it is nil,
	// the fields Approve and Elicit handle them. The Approve function of
	// [loadout.Options] handles requests to approve scripts.
	Approvals *ApprovalQueue
	// Approve asks the user about tool calls that need approval; it replaces
	// Approvals for them. If both are nil, the Approve function of
	// [loadout.Options] is called.
	Approve loadout.Approver
	// Elicit handles elicitations; it replaces Approvals for them. If both are
	// nil, they are handled as without [tools.Call.Elicit].
	Elicit func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error)
	// Server has further options for the server that implements the tools, such
	// as Workspace, Refresh and OnUse. SkillTools sets its Tools, Session,
	// Principal, ToolsOnly, WithoutNotices, ActiveSkills and InvokedByUser. It may be nil.
	Server *mcpserver.Options
}

// caller returns a tool caller with these options. o may be nil.
func (o *SkillToolOptions) caller(rt *loadout.Runtime, s *session.Session) *toolCaller {
	c := &toolCaller{rt: rt, session: s, principal: policy.LocalUser()}
	if o == nil {
		return c
	}
	c.set, c.approve, c.elicit = o.Tools, o.Approve, o.Elicit
	if o.Principal != (policy.Principal{}) {
		c.principal = o.Principal
	}
	if o.Approvals != nil && c.approve == nil {
		c.approve = approver.New(o.Approvals, s.ID(), c.principal)
	}
	if o.Approvals != nil && c.elicit == nil {
		c.elicit = approver.NewElicitationHandler(o.Approvals, s.ID(), c.principal, 0)
	}
	return c
}

// SkillTools returns the tools that let a model use skills in a session, for
// [Options.Tools] or your own agent loop. They are load_skill, unload_skill,
// search_skills and read_skill_file. run_skill_script is added if the runtime
// runs scripts, and find_tools and call_tool if [SkillToolOptions.Tools] is
// set. The tools are those of package mcpserver, connected in memory, and may
// be called concurrently. A result contains up to 8 images, 5 MiB in total.
//
// ctx is used only until SkillTools returns. o may be nil. The caller must call
// close before closing the session and the runtime. Afterwards, calls of the
// tools fail.
func SkillTools(ctx context.Context, rt *loadout.Runtime, s *session.Session, o *SkillToolOptions) (all []Tool, close func() error, err error) {
	caller := o.caller(rt, s)
	opts := mcpserver.Options{}
	if o != nil && o.Server != nil {
		opts = *o.Server
	}
	opts.Tools, opts.Session, opts.Principal, opts.ToolsOnly, opts.WithoutNotices = caller.set, s.ID(), caller.principal, true, true
	opts.InvokedByUser = func(e *catalog.Entry) bool {
		return slices.ContainsFunc(s.Active(), func(a session.ActiveSkill) bool { return a.Skill.Key() == e.Key() })
	}
	opts.ActiveSkills = s.SkillsInContext
	server := mcpserver.New(rt, &opts)
	c, err := connect(ctx, server, caller.elicit)
	if err != nil {
		return nil, nil, errors.Join(err, server.Close())
	}
	close = func() error { return errors.Join(c.Close(), server.Close()) }
	served, err := servedTools(ctx, c, rt, &opts)
	if err != nil {
		return nil, nil, errors.Join(err, close())
	}
	all = []Tool{loadTool(s, nil, caller.checkLoad), unloadTool(s)}
	for _, t := range served {
		all = append(all, caller.guardReads(t))
	}
	if caller.set != nil {
		all = append(all, caller.callTool())
	}
	return all, close, nil
}

// serverKind identifies servers that have the same tools.
type serverKind struct{ runsScripts, hasTools bool }

// knownTools caches the tools of servers by serverKind. The Call fields of the
// cached tools are nil.
var knownTools sync.Map

// servedTools returns the tools of a server except those that SkillTools replaces.
// It lists the tools of each kind of server only once.
func servedTools(ctx context.Context, c *connection, rt *loadout.Runtime, o *mcpserver.Options) ([]Tool, error) {
	kind := serverKind{rt.RunsScripts(), o.Tools != nil}
	fixed := o.Extend == nil && o.Middleware == nil && o.Compat == "" && o.ToolsFor == nil && !o.Grow
	if known, ok := knownTools.Load(kind); ok && fixed {
		return c.withCalls(known.([]Tool)), nil
	}
	listed, err := c.tools(ctx, toolname.LoadSkill, toolname.CallTool, toolname.ReadTool)
	if err == nil && fixed {
		knownTools.Store(kind, listed)
	}
	return c.withCalls(listed), err
}
