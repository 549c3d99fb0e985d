// Package agent is the loop of a conversation: it asks a model, calls the tools that
// the model wants, and goes on until the model is done. What happens is appended to
// a session and told as it happens.
//
// What a model is sent is rendered from the session's events, which are only ever
// added to: each request begins with the one before. Its tools are the same for the
// whole conversation. A call is recorded before it is made, so that after a crash
// nothing is repeated of which it is not known whether it ran.
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
	// Call does it. What goes wrong in doing it is an outcome, for the model; an error
	// ends the turn. It may be called several times at once.
	Call func(ctx context.Context, args json.RawMessage) (*Outcome, error)
}

// Outcome is what came of a call, for the model.
type Outcome struct {
	Text   string
	Images []session.Image
	Error  bool
}

// Options adjust an agent.
type Options struct {
	// Instructions are what the model is told first, in a conversation that begins.
	// One that goes on has its own.
	Instructions string
	// Tools are what the agent can do, in this order, besides what it does with
	// skills.
	Tools []Tool
	// Before is called before each call of a tool, so that what was withdrawn by then
	// counts; where it fails, nothing is called. Nil does nothing.
	Before func(context.Context) error
	// MaxSteps bounds the answers of the model in one turn; default 50.
	MaxSteps int
	// MaxTokens bounds each answer, and Thinking the tokens to think before it; 0 is
	// the model's default.
	MaxTokens, Thinking int
}

// Agent leads one conversation. Its methods may be called at once; turns come one
// after the other.
type Agent struct {
	model   llm.Model
	session *session.Session
	opts    Options
	tools   []Tool

	turns sync.Mutex // held for a turn
}

// New returns an agent that leads the conversation of a session with a model. The
// session is not closed by it.
func New(model llm.Model, s *session.Session, o *Options) *Agent {
	a := &Agent{model: model, session: s}
	if o != nil {
		a.opts = *o
	}
	if a.opts.MaxSteps == 0 {
		a.opts.MaxSteps = 50
	}
	a.tools = append(slices.Clone(a.opts.Tools), a.loadTool(), a.unloadTool())
	return a
}

// ErrSteps says that a turn took as many steps as it may.
var ErrSteps = errors.New("the turn took as many steps as it may; say whether it is to go on")

func (a *Agent) tool(name string) *Tool {
	for i := range a.tools {
		if a.tools[i].Name == name {
			return &a.tools[i]
		}
	}
	return nil
}
