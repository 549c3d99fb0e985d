package agent

import (
	"context"
	"errors"
	"slices"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/toolname"
	"github.com/loadout-dev/loadout/mcpserver"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/session"
	"github.com/loadout-dev/loadout/tools"
)

// SkillToolOptions configures [SkillTools]. The zero value is ready to use.
type SkillToolOptions struct {
	// Tools holds the tools of MCP servers and of skills; nil means none. The
	// model finds them with find_tools and calls them with call_tool. Pass the
	// result of [tools.Set.ForSession] to the session too.
	Tools *tools.Set
	// Principal is the principal of the calls; the zero value means the local
	// user.
	Principal policy.Principal
	// Approve asks the user about tool calls that need approval. If it is nil,
	// the Approve function of [loadout.Options] is called.
	Approve loadout.Approver
	// Workspace is a user's directory that scripts can read as /workspace; ""
	// mounts none.
	Workspace string
}

// SkillTools returns the tools with which a model uses skills in a session, for
// [Options.Tools] or your own agent loop. They are load_skill, unload_skill,
// search_skills and read_skill_file. run_skill_script is added if the runtime
// runs scripts, and find_tools and call_tool if [SkillToolOptions.Tools] is
// set. The tools are those of package mcpserver, connected in memory. The
// caller must call close before closing the session and the runtime.
func SkillTools(ctx context.Context, rt *loadout.Runtime, s *session.Session, o *SkillToolOptions) (all []Tool, close func() error, err error) {
	opts := SkillToolOptions{}
	if o != nil {
		opts = *o
	}
	if opts.Principal == (policy.Principal{}) {
		opts.Principal = policy.LocalUser()
	}
	server := mcpserver.New(rt, &mcpserver.Options{
		Tools: opts.Tools, Session: s.ID(), Principal: opts.Principal, Workspace: opts.Workspace, ToolsOnly: true, WithoutNotices: true,
		InvokedByUser: func(e *catalog.Entry) bool {
			return slices.ContainsFunc(s.Active(), func(a session.ActiveSkill) bool { return a.Skill.Key() == e.Key() })
		},
	})
	c, err := Connect(ctx, server, nil)
	if err != nil {
		return nil, nil, errors.Join(err, server.Close())
	}
	close = func() error { return errors.Join(c.Close(), server.Close()) }
	served, err := c.Tools(ctx, toolname.LoadSkill, toolname.CallTool)
	if err != nil {
		return nil, nil, errors.Join(err, close())
	}
	all = append([]Tool{loadTool(s, nil), unloadTool(s)}, served...)
	if opts.Tools != nil {
		caller := &ToolCaller{Set: opts.Tools, Session: s, Principal: opts.Principal, Approve: opts.Approve}
		all = append(all, caller.CallTool())
	}
	return all, close, nil
}
