// Package agent runs a conversation: it sends requests to a model, calls the
// tools that the model requests, and repeats until the model is done. Events
// are appended to a session and passed to the caller as they happen.
//
// Requests are rendered from the session's events. Because events are only
// added, each request starts with the previous one until the conversation is
// compacted. The tools stay the same for the whole conversation. Each call that
// may have an effect is recorded before it is made, so that after a crash, a
// call that may already have had its effect is not repeated.
//
// An agent itself has only tools that load and unload skills. [SkillTools] and
// [ServerTools] return others. The package does not depend on a vendor,
// terminal or configuration. Start with [New] and [Agent.RunTurn].
package agent

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/fold"
	"github.com/loadout-dev/loadout/internal/toolname"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// Tool is a tool definition with the function that runs the tool. The zero
// values of its flags are safe for any tool.
type Tool struct {
	llm.Tool
	// Repeatable means that a repeated call does no harm, because the tool is
	// read-only or idempotent. Such a call is repeated after a crash.
	Repeatable bool
	// ReadOnly means that the tool changes nothing. Read-only calls run
	// concurrently; other calls run one after another.
	ReadOnly bool
	// ReportsStart means that Call calls [ReportStart] right before it has an
	// effect. Whatever it does before that, such as asking the user, is
	// repeated after a crash. If ReportsStart is not set, a call counts as
	// started as soon as it is made.
	ReportsStart bool
	// Call runs the tool. args is valid JSON, but need not match the schema. A
	// failure for the model to handle is an outcome; an error ends the turn.
	// The outcome must not be nil without an error. Call must be safe for
	// concurrent use.
	Call func(ctx context.Context, args json.RawMessage) (*Outcome, error)

	// checkLoad is set in the load_skill of [SkillTools]. [New] keeps it for its
	// own load_skill.
	checkLoad loadCheck
}

// Lazy returns a copy of t that, when it is called, calls open and uses the functions
// of the tool that open returns. The copy does not refer to the functions of t, so it
// can be used for another conversation. If open is nil, the copy must not be called.
func (t Tool) Lazy(open func() (Tool, error)) Tool {
	t.Call = func(ctx context.Context, args json.RawMessage) (*Outcome, error) {
		opened, err := open()
		if err != nil {
			return nil, err
		}
		return opened.Call(ctx, args)
	}
	if t.checkLoad != nil {
		t.checkLoad = func(ctx context.Context, skill string, args json.RawMessage) (*Outcome, error) {
			opened, err := open()
			if err != nil {
				return nil, err
			}
			return opened.checkLoad(ctx, skill, args)
		}
	}
	return t
}

// A loadCheck returns nil if a call of load_skill may be made, and otherwise the
// outcome to report instead.
type loadCheck = func(ctx context.Context, skill string, args json.RawMessage) (*Outcome, error)

// Outcome is the result of a call, for the model. A Text longer than 256 KiB is
// truncated in the middle. Images are sent again with each later request.
type Outcome struct {
	Text   string
	Images []llm.Image
	Error  bool // whether the call failed
	// Denied means that policy or the user denied the call, so that it was not
	// made.
	Denied bool
	// Instructions apply for the rest of the conversation. They are sent after
	// the results of all calls, as a notice.
	Instructions string
	// Wait ends the turn. The user's next message continues it.
	Wait bool
}

// Options configures an agent. The zero value is ready to use. New copies it.
// Its functions are called during turns; BeforeCall and LoadSkill may be called
// concurrently.
type Options struct {
	// Instructions is the system prompt of a new conversation; see also
	// RenewInstructions. A resumed conversation keeps its own.
	Instructions string
	// Folder is recorded in the log of a new conversation, for programs that
	// resume it. It is not sent to the model.
	Folder string
	// RenewInstructions returns the instructions to use after a compaction;
	// nil keeps the current ones. If Instructions is "", it also returns those
	// of a new conversation, at the start of its first turn.
	RenewInstructions func() string
	// State is the state of the conversation at [session.Options.State], or after
	// an earlier event; nil is the state before the first event. The agent uses
	// a copy.
	State *fold.State
	// Skills returns the skills that the model may load, such as those of
	// [catalog.Snapshot.ForModel]. Changes are reported to the model at the
	// start of a turn. If it is nil, no skills are reported.
	Skills func() []*catalog.Entry
	// Tools are the agent's tools, in this order, with unique names. The agent
	// adds its own load_skill and unload_skill, and drops other tools with
	// these names. [SkillTools] returns the other tools for skills.
	Tools []Tool
	// BeforeCall, if not nil, is called before each tool call, to apply
	// revoked permissions. If it returns an error, the call is not made, and
	// the model gets the error. It must be safe for concurrent use.
	BeforeCall func(context.Context) error
	// LoadSkill is called when the model loads a skill. It either calls load
	// or returns a different result. For example, it can first ask the user
	// for the permissions that the skill needs. An error ends the turn. If
	// LoadSkill is nil, load is called directly. It must be safe for concurrent
	// use.
	LoadSkill func(ctx context.Context, skill string, load func() (*session.LoadResult, error)) (*session.LoadResult, error)
	// SkillModel returns the model that a skill requests by the name in its
	// frontmatter. The model is used while the skill is active. If SkillModel
	// is nil or returns an error, the conversation's model is used; the error
	// is emitted as a [Notice].
	SkillModel func(name string) (llm.Model, error)
	// Approvals holds the conversation's approval requests, which are emitted
	// as events; nil emits none. Approvals and elicitations that are still
	// pending when a turn starts belong to abandoned calls and are cancelled.
	Approvals *ApprovalQueue
	// MaxSteps is the maximum number of model responses in a turn; 0 means 50.
	// Beyond it, the turn ends with [ErrTooManySteps].
	MaxSteps int
	// TurnTokens is the number of tokens, including prompts, after which no
	// further request is sent in a turn. The turn then ends with
	// [ErrTooManyTokens]. 0 means no limit.
	TurnTokens int
	// MaxTokens and Thinking are those of each [llm.Request].
	MaxTokens, Thinking int
	// ContextWindow is the size of the model's context window in tokens. The
	// conversation is compacted before a request that fills more than 80% of
	// it, by estimate; 0 means never.
	ContextWindow int
	// AttachTokens is the maximum number of tokens of skill instructions that
	// are kept by a compaction; 0 means 25,000.
	AttachTokens int
}

// Agent runs a conversation. Its methods are safe for concurrent use; a turn
// waits until the current one has ended. Turns of two agents for one session
// are not serialized. An agent need not be closed.
type Agent struct {
	session *session.Session
	opts    Options
	tools   []Tool

	mu    sync.Mutex
	own   llm.Model       // the conversation's model
	noted map[string]bool // notices already shown
	state *fold.State     // state of the conversation up to some event; see folded

	turns sync.Mutex // held during a turn
}

// New returns an agent that runs a session's conversation with a model. The
// agent does not close the session. o may be nil.
func New(model llm.Model, s *session.Session, o *Options) *Agent {
	a := &Agent{own: model, session: s, noted: map[string]bool{}, state: &fold.State{}}
	if o != nil {
		a.opts = *o
	}
	if a.opts.State != nil {
		a.state = a.opts.State.Clone()
	}
	if a.opts.MaxSteps == 0 {
		a.opts.MaxSteps = 50
	}
	if a.opts.AttachTokens == 0 {
		a.opts.AttachTokens = 25_000
	}
	given := slices.DeleteFunc(slices.Clone(a.opts.Tools), func(t Tool) bool { return t.Name == toolname.LoadSkill || t.Name == toolname.UnloadSkill })
	var check loadCheck
	for _, t := range a.opts.Tools {
		if t.checkLoad == nil {
			continue
		}
		check = func(ctx context.Context, skill string, args json.RawMessage) (*Outcome, error) {
			if !slices.ContainsFunc(s.SkillsInContext(), isServed) {
				return nil, nil // a lazy tool need not be opened
			}
			return t.checkLoad(ctx, skill, args)
		}
	}
	a.tools = append(given, loadTool(s, a.opts.LoadSkill, check), unloadTool(s))
	return a
}

// Model returns the conversation's model. While a skill is active, requests may
// use the model that it requests instead.
func (a *Agent) Model() llm.Model {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.own
}

// SetModel sets the conversation's model, starting with the next request, even
// in the current turn.
func (a *Agent) SetModel(m llm.Model) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.own = m
}

// Tools returns the tools that the model can call, including load_skill and
// unload_skill. They stay the same for the whole conversation.
func (a *Agent) Tools() []llm.Tool {
	out := make([]llm.Tool, len(a.tools))
	for i, t := range a.tools {
		out[i] = t.Tool
	}
	return out
}

// UsageByModel returns the number of tokens used so far on the current branch of
// the conversation, by [llm.Model] name. It includes compactions and earlier runs of
// the program.
func (a *Agent) UsageByModel() map[string]llm.Usage {
	return a.folded().Usage()
}

// folded applies the session's new events to the state of the conversation and
// returns a copy of the state.
func (a *Agent) folded() *fold.State {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, e := range a.session.Events(a.state.Seq()) {
		a.state.Apply(e)
	}
	return a.state.Clone()
}

// Errors of a turn that reached a limit. Its events stay in the session, and
// the next turn continues from there.
var (
	// ErrTooManySteps is returned after [Options.MaxSteps] responses.
	ErrTooManySteps = errors.New("turn reached the step limit; send a message to continue")
	// ErrTooManyTokens is returned after [Options.TurnTokens] tokens.
	ErrTooManyTokens = errors.New("turn reached the token limit; send a message to continue")
)

func (a *Agent) tool(name string) *Tool {
	for i := range a.tools {
		if a.tools[i].Name == name {
			return &a.tools[i]
		}
	}
	return nil
}
