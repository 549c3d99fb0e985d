package assembly

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/approver"
	"github.com/loadout-dev/loadout/internal/clientaction"
	"github.com/loadout-dev/loadout/internal/decision"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/llm/vendors"
	"github.com/loadout-dev/loadout/internal/servertext"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/mcpserver"
	"github.com/loadout-dev/loadout/session"
)

// ChatSetup opens the setup of a conversation, including its model. It is used as
// the Setup function in [chat.Options].
func (k *Assembler) ChatSetup(ctx context.Context, r chat.Request) (*chat.Setup, error) {
	w, err := parseRequest(r)
	if err != nil {
		return nil, err
	}
	t, err := k.openConversation(ctx, w)
	if errors.Is(err, store.ErrNotFound) || account.IsDenied(err) {
		return nil, fmt.Errorf("agent %s not found or not permitted: %w; start a conversation with another agent", r.Conversation.Agent, err)
	}
	if err != nil {
		return nil, err
	}
	if err := t.stopWhenDisabled(ctx); err != nil {
		return nil, errors.Join(err, t.close())
	}
	return &chat.Setup{
		Runtime: t.setup.Runtime, Model: t.model, ReadsImages: t.readsImages, Agent: t.agentOptions(ctx), Tools: t.tools, SkillTools: t.setup.Tools.ForSessionOf(t.setup.Principal, t.id),
		Preload: t.setup.Preload, PreloadReason: t.setup.PreloadReason, Namespace: t.setup.agentNamespace(), SkillID: t.setup.SkillID, Close: t.close,
	}, nil
}

// parseRequest converts a request from package chat to a [Request].
func parseRequest(r chat.Request) (Request, error) {
	w := Request{Principal: r.Principal, Session: r.Conversation.ID, Model: r.Conversation.Model, Draft: r.Conversation.Draft != "", Trial: r.Conversation.Trial}
	if r.Conversation.Agent == "" {
		return w, nil
	}
	parts := strings.SplitN(r.Conversation.Agent, "/", 3)
	if len(parts) != 3 || parts[0] == "" || parts[2] == "" {
		return w, fmt.Errorf("invalid agent %.200q; start another conversation", r.Conversation.Agent)
	}
	w.Kind, w.Namespace, w.Name = parts[0], parts[1], parts[2]
	return w, nil
}

// conversation holds the open resources of a conversation on this node. It is
// either a user's conversation with an agent, or the conversation of a Team's
// leader with another member.
type conversation struct {
	assembler *Assembler
	setup     *Setup
	id        string // conversation ID
	principal account.Principal
	model     llm.Model
	// readsImages reports whether the model reads images.
	readsImages bool
	window      int // size of the model's context window in tokens; 0 if unknown

	mu      sync.Mutex     // guards the fields below
	closers []func() error // functions for close to call, in opening order
	closed  bool
	served  *approvalContext // nil before the tools are created
}

// openConversation opens a conversation's setup and model.
func (k *Assembler) openConversation(ctx context.Context, w Request) (*conversation, error) {
	kit, err := k.Open(ctx, w)
	if err != nil {
		return nil, err
	}
	t := &conversation{assembler: k, setup: kit, id: w.Session, principal: w.Principal, closers: []func() error{kit.Close}}
	var choice *agents.ModelChoice
	if t.model, choice, err = k.openModel(ctx, w, kit.Profile); err != nil {
		return nil, errors.Join(err, t.close())
	}
	t.window = k.o.Window(t.model.Name())
	if choice == nil {
		t.readsImages = k.o.Images(t.model.Name())
	} else {
		t.readsImages, t.window = choice.ReadsImages(), cmp.Or(choice.Window, t.window)
	}
	return t, nil
}

// errModelGone is returned if a conversation's Model was removed, or its owner may no
// longer use it.
var errModelGone = errors.New("the model chosen for this conversation was removed, or you may no longer use it; choose another model and send the message again")

// openModel returns a model with its API key: the one that the request selects, else
// that of the profile, else the hub's own model. choice is nil for the operator's model
// and the demo.
func (k *Assembler) openModel(ctx context.Context, w Request, profile *agents.Profile) (m llm.Model, choice *agents.ModelChoice, err error) {
	switch {
	case w.Model != "":
		choice, err = k.o.Agents.Model(ctx, w.Principal, w.Model)
		if errors.Is(err, store.ErrNotFound) || account.IsDenied(err) {
			err = errModelGone
		}
	case profile != nil:
		choice = profile.Model
	}
	if err != nil {
		return nil, nil, err
	}
	if choice == nil {
		own, connected, err := k.OwnModel(ctx, w.Principal)
		if err != nil || connected == nil {
			return own, nil, err
		}
		choice = connected.ModelChoice
	}
	key, err := k.o.Agents.Secrets().ModelKey(ctx, w.Principal, choice)
	if err != nil {
		return nil, nil, err
	}
	m, err = k.NewModel(choice, key)
	return m, choice, err
}

// OwnModel returns the model of agents without a Model: the one that the operator
// configured, else the one that an administrator connected, else the demo. For a
// connected model, own is the demo.
func (k *Assembler) OwnModel(ctx context.Context, p account.Principal) (own llm.Model, connected *agents.AvailableModel, err error) {
	if own, err = k.o.Model(nil, ""); err != nil || !vendors.IsDemo(own.Name()) {
		return own, nil, err
	}
	connected, err = k.o.Agents.DefaultModel(ctx, p)
	return own, connected, err
}

// NewModel creates a model with its API key.
func (k *Assembler) NewModel(choice *agents.ModelChoice, key string) (llm.Model, error) {
	c := *choice
	c.Local = k.o.Single
	return k.o.Model(&c, key)
}

// onClose registers a function to be called by close. If the conversation is
// already closed, it calls the function and returns an error.
func (t *conversation) onClose(f func() error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return errors.Join(errors.New("the turn has ended"), f())
	}
	t.closers = append(t.closers, f)
	return nil
}

func (t *conversation) isClosed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.closed
}

func (t *conversation) close() error {
	t.mu.Lock()
	all := t.closers
	t.closers, t.closed = nil, true
	t.mu.Unlock()
	var errs []error
	for _, f := range slices.Backward(all) {
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}

// stopWhenDisabled stops the current turn when skills are disabled. It returns an
// error if they are already disabled.
func (t *conversation) stopWhenDisabled(ctx context.Context) error {
	var under []store.Namespace
	if t.setup.Profile != nil {
		under = t.setup.Profile.SettingsNamespaces
	}
	held, stop, err := t.assembler.o.Agents.WithKillSwitch(context.WithoutCancel(ctx), under...)
	if err != nil {
		return err
	}
	ended := context.AfterFunc(held, func() {
		why := context.Cause(held)
		if _, off := errors.AsType[*agents.DisabledError](why); off && t.assembler.o.StopTurn != nil {
			t.assembler.o.StopTurn(t.id, why.Error())
		}
	})
	return t.onClose(func() error {
		ended()
		stop()
		return nil
	})
}

// maxAnnounced is the maximum size of a catalog whose added and removed skills
// are announced to the model. In a larger catalog, the model must search for
// skills.
const maxAnnounced = 1000

func (t *conversation) agentOptions(ctx context.Context) agent.Options {
	instructions := func() string { return t.instructions(context.WithoutCancel(ctx)) }
	o := agent.Options{RenewInstructions: instructions, BeforeCall: t.setup.Refresh, ContextWindow: t.window}
	if len(t.setup.base.publishers) > 0 {
		o.LoadSkill = t.loadSkill
	}
	if t.setup.Runtime.Catalog().Snapshot().Count() <= maxAnnounced {
		o.Skills = func() []*catalog.Entry { return t.setup.Runtime.Catalog().Snapshot().ForModel() }
	}
	return o
}

// instructions returns the system prompt: the agent's own prompt, the general
// instructions, the skill catalog and the MCP servers.
func (t *conversation) instructions(ctx context.Context) string {
	text := "You help the user. Your working directory contains the files of this conversation. Read and write them, and run commands there in a sandbox. " +
		"Skills are instructions for kinds of tasks: before a task that a skill covers, load it with load_skill and follow it. " +
		"Call the tools that it provides with call_tool, and run its scripts with run_skill_script. Say plainly what failed.\n"
	if p := t.setup.Profile; p != nil && p.SystemPrompt != "" {
		text = p.SystemPrompt + "\n\n" + text
	}
	if skills := t.setup.base.catalogText(ctx); skills != "" {
		text += "\nSkills:\n" + skills
	}
	return text + servertext.Section(t.setup.Tools.Summaries())
}

// tools returns all tools of a conversation: those of skills, servers and the
// working directory, the tool for handing tasks to team members, and the tool for
// drawing diagrams.
func (t *conversation) tools(ctx context.Context, c *chat.ToolContext) ([]agent.Tool, error) {
	all, err := t.baseTools(ctx, c, c.Session)
	if err != nil {
		return nil, err
	}
	if p := t.setup.Profile; p != nil && p.HandOff != nil {
		all = append(all, t.handOffTool(c))
	}
	return append(all, newDiagramTool(c)), nil
}

// baseTools returns the tools of skills, servers and the working directory.
func (t *conversation) baseTools(ctx context.Context, c *chat.ToolContext, s *session.Session) ([]agent.Tool, error) {
	t.setApprovalContext(c, s)
	client := &clientaction.Client{Approvals: c.Approvals, Session: c.ID, Principal: c.User}
	o := &agent.SkillToolOptions{Tools: t.setup.Tools, Principal: c.User, Approvals: c.Approvals,
		Elicit: client.Elicit(approver.NewElicitationHandler(c.Approvals, c.ID, c.User, elicitTimeout)),
		Server: &mcpserver.Options{Workspace: c.FolderPath, HowToApprove: approvalHint, Refresh: t.prepareRun(c), OnUse: t.setup.RecordRun, Version: t.assembler.o.Version, Logger: t.assembler.o.Logger}}
	skills, err := t.lazyTools(ctx, toolList{runs: t.setup.Runtime.RunsScripts()}, func(ctx context.Context) ([]agent.Tool, error) {
		all, closeAll, err := agent.SkillTools(ctx, t.setup.Runtime, s, o)
		if err != nil {
			return nil, err
		}
		return all, t.onClose(closeAll)
	})
	if err != nil {
		return nil, err
	}
	runs, err := t.runsCommands(ctx, c)
	if err != nil {
		return nil, err
	}
	folder, err := t.lazyTools(ctx, toolList{folder: true, runs: runs}, func(ctx context.Context) ([]agent.Tool, error) {
		root, err := c.OpenFolder(ctx)
		if err != nil {
			return nil, err
		}
		var run runFunc
		if runs {
			run = t.commandRunner(c.FolderPath, s)
		}
		return t.folderTools(ctx, root, run, s, *o)
	})
	if err != nil {
		return nil, err
	}
	return append(skills, folder...), nil
}

// prepareRun returns a function that must be called before code runs in the
// working directory.
func (t *conversation) prepareRun(c *chat.ToolContext) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := t.setup.Refresh(ctx); err != nil {
			return err
		}
		if _, err := c.OpenFolder(ctx); err != nil {
			return err
		}
		return chownToSandbox(c.FolderPath)
	}
}

// approvalHint explains how to get refused code approved.
func approvalHint(err error) string {
	refused, ok := errors.AsType[*loadout.RefusedError](err)
	_, served := PublisherOf(err)
	switch {
	case !ok:
		return ""
	case served:
		return "approve it when it is loaded, or on the page of its MCP server"
	case refused.Decision.Code == decision.Changed || refused.Decision.Code == decision.Expired || refused.Decision.Code == decision.HiddenText:
		return "ask a reviewer to review it"
	}
	return refused.Decision.Hint
}
