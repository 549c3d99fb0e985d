package chat

import (
	"context"
	"os"
	"path/filepath"

	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/approval"
	"github.com/loadout-dev/loadout/internal/approver"
	"github.com/loadout-dev/loadout/internal/chatlog"
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/outputlink"
	"github.com/loadout-dev/loadout/internal/profile"
	"github.com/loadout-dev/loadout/internal/setup"
	"github.com/loadout-dev/loadout/internal/terminal"
	"github.com/loadout-dev/loadout/internal/usage"
	"github.com/loadout-dev/loadout/internal/workspace"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/mcpserver"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/session"
)

// conversationOptions holds the settings of a conversation.
type conversationOptions struct {
	config *config.Config
	flags  *Flags
	model  llm.Model
	asks   bool                 // whether calls need the user's approval
	input  *terminal.LineReader // reads the answers; nil if a screen shows prompts
}

// openConversation opens a conversation. The caller must close it.
func (h *Host) openConversation(ctx context.Context, o conversationOptions) (*conversation, error) {
	p, err := h.FindProfile(o.flags.Profile)
	if err != nil {
		return nil, err
	}
	b := &conversationBuilder{conversationOptions: o, host: h, profile: p,
		conversation: &conversation{queue: approval.NewQueue(h.approvalStore())}}
	for _, open := range []func(context.Context) error{b.openLog, b.openFolder, b.openSkills, b.openTools, b.openSession, b.connectAgent, b.preload} {
		if err := open(ctx); err != nil {
			b.close()
			return nil, err
		}
	}
	b.onClose(h.answerPrompts(ctx, b.queue, o.input))
	return b.conversation, nil
}

// conversationBuilder opens the parts of a conversation in order of their
// dependencies. The conversation owns and closes them.
type conversationBuilder struct {
	*conversation
	conversationOptions
	host    *Host
	profile *profile.Profile // nil if none
	log     session.Log
	rules   policy.Rules // policy rules for the working directory
	watcher *setup.ConfigWatcher
	// approveChanges asks the user about held changes; nil if no user can answer.
	approveChanges approveChanges
}

// openLog opens the transcript of a resumed conversation, or creates a new one.
func (b *conversationBuilder) openLog(context.Context) error {
	log, id, err := b.host.openChatLog(b.flags.Session)
	if err != nil {
		return err
	}
	b.log, b.id = log, id
	b.onClose(func() { log.Close() })
	return nil
}

// openFolder opens the working directory: the one that the user specified for
// this run or, if there is none, the one specified when the conversation began.
// If neither was specified, the conversation gets its own directory.
func (b *conversationBuilder) openFolder(ctx context.Context) (err error) {
	if b.flags.Workspace == "" {
		if b.flags.Workspace, err = chatlog.Folder(ctx, b.log); err != nil {
			return err
		}
		if named := b.flags.Workspace; named != "" && !isDir(named) {
			return exit.Errorf(exit.NotFound, "name its new location with --workspace", "directory %s of the conversation not found", named)
		}
	}
	b.folder, b.rules, err = b.host.openWorkFolder(b.flags.Workspace, b.id)
	if b.flags.Workspace != "" {
		b.named = b.folder
	}
	return err
}

// openSkills opens the skills, including those of the project if the user
// allows it.
func (b *conversationBuilder) openSkills(ctx context.Context) error {
	if err := b.host.confirmProjectSkills(ctx, b.config, b.flags); err != nil {
		return err
	}
	rt, err := b.host.newChatRuntime(ctx, b.config, b.flags, setup.ProfileSkills(b.profile))
	if err != nil {
		return err
	}
	b.runtime = rt
	b.onClose(func() { rt.Close() })
	if b.named != "" {
		if err := rt.CheckWorkspace(b.named); err != nil {
			return exit.Errorf(exit.Refused, "name another directory, or omit --workspace", "%w", err)
		}
	}
	return nil
}

// openTools opens the MCP servers and the tools of the working directory. It
// also applies later configuration changes to them.
func (b *conversationBuilder) openTools(ctx context.Context) error {
	root, err := os.OpenRoot(b.folder)
	if err != nil {
		return err
	}
	b.onClose(func() { root.Close() })
	rt := b.runtime
	if b.asks {
		b.approveChanges = approver.NewForChanges(b.queue, b.id, policy.LocalUser())
	}
	approve := b.approveChanges
	own := b.flags.Workspace == ""
	project := b.host.skillProjectDir(b.flags.Workspace)
	onSave := func(ctx context.Context, name string) error {
		b.host.RecordListed(ctx, filepath.Join(project, ".loadout", "skills"), []string{name}) // the user agreed to save it
		return rt.Catalog().Reload(ctx)
	}
	active := func() []session.ActiveSkill { return b.session.SkillsInContext() }
	files := workspace.New(root, &workspace.Options{Run: newCommandRunner(rt, b.folder, own, approve, b.id, active), Own: own, Agree: approve.agreeCallback(), ReadOutput: func(link string) ([]byte, error) { return outputlink.Read(rt, link) },
		Hint: b.explainSkillPath, Project: project, OnSave: onSave})
	b.set, _, err = b.host.NewToolsetWith(ctx, b.config, rt, setup.ToolsetOptions{Files: b.flags.Files, Profile: b.profile, Rules: b.rules, Session: b.id, Folder: b.folder, Builtin: files})
	if err != nil {
		return err
	}
	b.onClose(func() { b.set.Close() })
	b.watcher = b.host.NewConfigWatcher(rt, b.config, b.set, b.profile)
	b.onClose(b.watcher.Start(ctx))
	return nil
}

// openSession restores the conversation from its log.
func (b *conversationBuilder) openSession(ctx context.Context) error {
	s, err := b.runtime.NewSession(ctx, &session.Options{Log: b.host.CountLog(b.log, b.config, b.runtime), ID: b.id, Tools: b.set.ForSessionOf(policy.LocalUser(), b.id),
		RetentionTurns: b.config.Skills.Keep, Budget: b.config.Skills.Budget, Updates: session.UpdateMode(b.config.Skills.Update)})
	if err != nil {
		return err
	}
	b.session = s
	b.onClose(func() { s.Close() })
	return nil
}

// connectAgent creates the agent, with the tools from agentTools. If the user
// can answer prompts, the agent asks for consent when it loads a skill.
func (b *conversationBuilder) connectAgent(ctx context.Context) error {
	a := b.host
	consent := &skillConsent{Host: a, rt: b.runtime, config: b.config, queue: b.queue, id: b.id}
	tools, err := b.agentTools(ctx)
	if err != nil {
		return err
	}
	rt, set, lead := b.runtime, b.set, setup.ProfilePrompt(b.profile)
	instructions := func() string { return buildInstructions(rt, set.Summaries(), lead) }
	o := &agent.Options{RenewInstructions: instructions, Folder: b.named, Tools: tools, BeforeCall: b.watcher.Refresh,
		Skills: func() []*catalog.Entry { return rt.Catalog().Snapshot().ForModel() }, SkillModel: a.ModelResolver(ctx, b.config), Approvals: b.queue, MaxTokens: b.config.Models.MaxTokens, ContextWindow: b.config.Models.Window}
	if b.asks {
		o.LoadSkill = consent.loadSkill
	}
	b.Agent = agent.New(b.model, b.session, o)
	return nil
}

// agentTools returns the tools for skills and those of the built-in servers.
func (b *conversationBuilder) agentTools(ctx context.Context) ([]agent.Tool, error) {
	o := &agent.SkillToolOptions{Tools: b.set.Set, Server: &mcpserver.Options{Workspace: b.folder, ApproveChanges: b.approveChanges, HowToApprove: b.host.HowToApprove, HowToRevoke: setup.RevokeCommand,
		Refresh: b.watcher.Refresh, OnUse: b.host.RecordSkillUse(b.config, usage.InterfaceChat), Version: setup.ReadVersion().Version, Logger: b.host.Logger()}}
	if b.asks {
		o.Approvals = b.queue
	}
	skills, closeSkills, err := agent.SkillTools(ctx, b.runtime, b.session, o)
	if err != nil {
		return nil, err
	}
	b.onClose(func() { closeSkills() })
	builtin, err := agent.ServerTools(ctx, b.runtime, b.session, setup.BuiltinName, o)
	if err != nil {
		return nil, err
	}
	return append(skills, builtin...), nil
}

// preload loads the skills that are to be active for the whole conversation.
func (b *conversationBuilder) preload(ctx context.Context) error {
	marked, err := b.host.skillsToPreload(ctx, b.conversation, b.flags)
	if err != nil {
		return err
	}
	for _, name := range b.flags.Preload {
		if refused := setup.TextRefusal(ctx, b.runtime, name); refused != nil {
			return exit.Errorf(exit.Refused, "review it: "+b.host.ApproveHint(refused), "preload: %w", refused)
		}
	}
	return b.preloadSkills(ctx, append(marked, b.flags.Preload...))
}
