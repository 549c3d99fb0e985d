// Package agent is the loop of a conversation: it asks a model, calls the tools that
// the model wants, and goes on until the model is done. What happens is appended to
// a session and told as it happens.
//
// What a model is sent is rendered from the session's events, which are only ever
// added to: each request begins with the one before, until the conversation is
// compacted. Its tools are the same for the whole conversation. A call is recorded
// before it is made, so that after a crash nothing is repeated of which it is not
// known whether it ran.
//
// The package has no tools of its own but those that load and unload skills, and
// knows no vendor, no terminal and no configuration.
package agent

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"github.com/loadout-dev/loadout/ask"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// Tool is something that the agent can do.
type Tool struct {
	llm.Tool
	// Repeatable says that calling it twice does no harm: it only reads, or comes to
	// the same. Such a call is made again after a crash.
	Repeatable bool
	// Reads says that it changes nothing: such calls are made at once, others one
	// after the other.
	Reads bool
	// Begins says that Call tells by [Begin] when it begins to have an effect; what
	// it does before, as asking a person, is done again after a crash. Else a call
	// has begun when it is made.
	Begins bool
	// Call does it. What goes wrong in doing it is an outcome, for the model; an error
	// ends the turn. It may be called several times at once.
	Call func(ctx context.Context, args json.RawMessage) (*Outcome, error)
}

// Outcome is what came of a call, for the model.
type Outcome struct {
	Text   string
	Images []session.Image
	Error  bool
	// Denied says that the call was not made, as policy or a person did not let it.
	Denied bool
	// Instructions are what holds for the rest of the conversation. They are told
	// after the results of all calls, as a message of the program.
	Instructions string
	// Wait ends the turn: what is wanted comes with the next message of the person.
	Wait bool
}

// Options adjust an agent.
type Options struct {
	// Instructions are what the model is told first, in a conversation that begins.
	// One that goes on has its own.
	Instructions string
	// Folder is kept in the log of a conversation that begins, for who opens it again;
	// the model is not told of it.
	Folder string
	// Renew returns the instructions as they are now, for a conversation that was
	// compacted; nil keeps those that it has.
	Renew func() string
	// Skills are those that the model may load, as it was told first: what comes and
	// goes after that is told to it when a turn begins. Nil tells nothing.
	Skills func() []Offer
	// Tools are what the agent can do, in this order, besides what it does with
	// skills.
	Tools []Tool
	// Before is called before each call of a tool, so that what was withdrawn by then
	// counts; where it fails, nothing is called. Nil does nothing.
	Before func(context.Context) error
	// Load is called for each load of a model and calls load, or returns what came of
	// it otherwise: a place to ask a person, before it, for what the skill will need.
	// Nil calls load.
	Load func(ctx context.Context, skill string, load func() (*session.Result, error)) (*session.Result, error)
	// Model returns the model that a skill names, for the time in which the skill is
	// in force; nil, and an error, leave the conversation's own.
	Model func(name string) (llm.Model, error)
	// Desk is where this conversation's questions are asked, so that they are told as
	// events; nil tells none. Approvals and elicitations that are open when a turn
	// begins are of calls that nobody makes any more, and taken back.
	Desk *ask.Desk
	// MaxSteps bounds the answers of the model in one turn; default 50.
	MaxSteps int
	// TurnTokens bounds what the answers of one turn may take together, prompts
	// included; 0 is no bound.
	TurnTokens int
	// MaxTokens bounds each answer, and Thinking the tokens to think before it; 0 is
	// the model's default.
	MaxTokens, Thinking int
	// Window is how many tokens the model takes at once. Before a request comes near
	// to it, the conversation is compacted; 0 is never.
	Window int
	// Attach bounds the tokens of instructions that a compaction keeps; default
	// 25,000.
	Attach int
}

// Agent leads one conversation. Its methods may be called at once; turns come one
// after the other.
type Agent struct {
	session *session.Session
	opts    Options
	tools   []Tool

	mu    sync.Mutex
	own   llm.Model       // that was chosen
	noted map[string]bool // models of skills that there are not, which the person knows

	turns sync.Mutex // held for a turn
}

// New returns an agent that leads the conversation of a session with a model. The
// session is not closed by it.
func New(model llm.Model, s *session.Session, o *Options) *Agent {
	a := &Agent{own: model, session: s, noted: map[string]bool{}}
	if o != nil {
		a.opts = *o
	}
	if a.opts.MaxSteps == 0 {
		a.opts.MaxSteps = 50
	}
	if a.opts.Attach == 0 {
		a.opts.Attach = 25_000
	}
	a.tools = append(slices.Clone(a.opts.Tools), a.loadTool(), a.unloadTool())
	return a
}

// Model is the model of the conversation, but for skills that want another one.
func (a *Agent) Model() llm.Model {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.own
}

// SetModel chooses another model, from the next request on.
func (a *Agent) SetModel(m llm.Model) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.own = m
}

// Tools are what the model can call, the same for the whole conversation.
func (a *Agent) Tools() []llm.Tool {
	out := make([]llm.Tool, len(a.tools))
	for i, t := range a.tools {
		out[i] = t.Tool
	}
	return out
}

// Spent is what the models of the conversation have taken, by their names.
func (a *Agent) Spent() map[string]llm.Usage {
	out := map[string]llm.Usage{}
	for _, e := range a.session.Events(0) {
		if model, u := usageOf(e); u != nil {
			out[model] = out[model].Add(llm.Usage(*u))
		}
	}
	return out
}

// usageOf is what a step of a conversation took of a model, or nil.
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
	ErrSteps  = errors.New("the turn took as many steps as it may; say whether it is to go on")
	ErrTokens = errors.New("the turn took as many tokens as it may; say whether it is to go on")
)

func (a *Agent) tool(name string) *Tool {
	for i := range a.tools {
		if a.tools[i].Name == name {
			return &a.tools[i]
		}
	}
	return nil
}
