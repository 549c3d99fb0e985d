// Package agent runs a conversation: it sends requests to a model, calls the
// tools that the model asks for, and repeats until the model is done. Events
// are appended to a session and passed to the caller as they happen.
//
// Requests are rendered from the session's events. Events are only ever added,
// so each request begins with the previous one until the conversation is
// compacted. The tools stay the same for the whole conversation. A call is
// recorded before it is made. After a crash, a call that may have run is
// therefore not repeated.
//
// The package has no tools of its own except those that load and unload skills.
// It depends on no vendor, terminal or configuration. Start reading at
// [Agent.RunTurn].
package agent

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/toolname"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// Tool is a tool that the agent can call.
type Tool struct {
	llm.Tool
	// Repeatable says that calling it twice does no harm: it only reads, or is
	// idempotent. Such a call is repeated after a crash.
	Repeatable bool
	// ReadOnly says that it changes nothing. Such calls run concurrently,
	// others one after the other.
	ReadOnly bool
	// ReportsStart says that Call calls [ReportStart] when it begins to have an
	// effect. What it does before that, such as asking the user, is repeated
	// after a crash. Otherwise a call counts as started when it is made.
	ReportsStart bool
	// Call runs the tool. A failure is an outcome for the model; an error ends
	// the turn. Call must be safe for concurrent use.
	Call func(ctx context.Context, args json.RawMessage) (*Outcome, error)
}

// Outcome is the result of a call, for the model. A Text over 256 KiB is
// shortened in the middle.
type Outcome struct {
	Text   string
	Images []session.Image
	Error  bool
	// Denied says that the call was not made, because policy or the user denied
	// it.
	Denied bool
	// Instructions apply for the rest of the conversation. They follow the
	// results of all calls, as a message of the program.
	Instructions string
	// Wait ends the turn. The next message of the user continues it.
	Wait bool
}

// Options configure an agent.
type Options struct {
	// Instructions are the system instructions of a new conversation. A resumed
	// one keeps its own.
	Instructions string
	// Folder is recorded in the log of a new conversation, for programs that
	// resume it. The model does not see it.
	Folder string
	// RenewInstructions returns the current instructions after a compaction;
	// nil keeps the old ones.
	RenewInstructions func() string
	// Skills returns the skills that the model may load, such as those of
	// [catalog.Snapshot.ForModel]. Changes are reported to the model at the
	// start of a turn. If nil, none are reported.
	Skills func() []*catalog.Entry
	// Tools are the tools of the agent in this order. The agent adds load_skill
	// and unload_skill; [SkillTools] returns the others for skills.
	Tools []Tool
	// BeforeCall is called before each tool call, so that revoked permissions
	// take effect. If it fails, the call is not made. It may be nil.
	BeforeCall func(context.Context) error
	// LoadSkill is called for each load by the model and calls load, or returns
	// another result. It can ask the user first for what the skill will need.
	// If nil, load is called directly.
	LoadSkill func(ctx context.Context, skill string, load func() (*session.LoadResult, error)) (*session.LoadResult, error)
	// SkillModel returns the model that a skill names, used while the skill is
	// active. If it is nil or fails, the conversation's model is used.
	SkillModel func(name string) (llm.Model, error)
	// Approvals holds the approval requests of the conversation, which are
	// emitted as events; nil emits none. Approvals and elicitations that are
	// still pending when a turn begins belong to abandoned calls and are
	// cancelled.
	Approvals *ApprovalQueue
	// MaxSteps limits the answers of the model in one turn; default 50.
	MaxSteps int
	// TurnTokens limits the tokens of all answers of one turn, including
	// prompts; 0 means no limit.
	TurnTokens int
	// MaxTokens limits each answer, and Thinking the tokens for thinking before
	// it; 0 is the model's default.
	MaxTokens, Thinking int
	// ContextWindow is the model's context window in tokens. The conversation
	// is compacted before a request comes near it; 0 means never.
	ContextWindow int
	// AttachTokens limits the tokens of skill instructions that a compaction
	// keeps; default 25,000.
	AttachTokens int
}

// Agent runs one conversation. Its methods are safe for concurrent use; turns
// run one after the other.
type Agent struct {
	session *session.Session
	opts    Options
	tools   []Tool

	mu    sync.Mutex
	own   llm.Model       // model of the conversation
	noted map[string]bool // notices that were shown already

	turns sync.Mutex // held for a turn
}

// New returns an agent that runs the conversation of a session with a model.
// The agent does not close the session.
func New(model llm.Model, s *session.Session, o *Options) *Agent {
	a := &Agent{own: model, session: s, noted: map[string]bool{}}
	if o != nil {
		a.opts = *o
	}
	if a.opts.MaxSteps == 0 {
		a.opts.MaxSteps = 50
	}
	if a.opts.AttachTokens == 0 {
		a.opts.AttachTokens = 25_000
	}
	given := slices.DeleteFunc(slices.Clone(a.opts.Tools), func(t Tool) bool { return t.Name == toolname.LoadSkill || t.Name == toolname.UnloadSkill })
	a.tools = append(given, loadTool(s, a.opts.LoadSkill), unloadTool(s))
	return a
}

// Model returns the model of the conversation. Active skills may use another
// one.
func (a *Agent) Model() llm.Model {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.own
}

// SetModel changes the model from the next request on.
func (a *Agent) SetModel(m llm.Model) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.own = m
}

// Tools returns the tools that the model can call. They stay the same for the
// whole conversation.
func (a *Agent) Tools() []llm.Tool {
	out := make([]llm.Tool, len(a.tools))
	for i, t := range a.tools {
		out[i] = t.Tool
	}
	return out
}

// UsageByModel returns the tokens that the conversation used so far, by name of
// the model.
func (a *Agent) UsageByModel() map[string]llm.Usage {
	out := map[string]llm.Usage{}
	for _, e := range a.session.Events(0) {
		if model, u := usageOf(e); u != nil {
			out[model] = out[model].Add(llm.Usage(*u))
		}
	}
	return out
}

// usageOf returns the model and the usage recorded in an event, or nil.
func usageOf(e session.Event) (model string, u *session.Usage) {
	switch {
	case e.Message != nil:
		return e.Message.Model, e.Message.Usage
	case e.Compacted != nil:
		return e.Compacted.Model, e.Compacted.Usage
	}
	return "", nil
}

// Errors that end a turn.
var (
	ErrTooManySteps  = errors.New("turn reached the limit of steps; send a message to continue")
	ErrTooManyTokens = errors.New("turn reached the limit of tokens; send a message to continue")
)

func (a *Agent) tool(name string) *Tool {
	for i := range a.tools {
		if a.tools[i].Name == name {
			return &a.tools[i]
		}
	}
	return nil
}
