package assembly

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"testing"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

var errDisk = errors.New("disk full")

// startless is a log that cannot store the start of a call.
type startless struct{ session.MemoryLog }

func (l *startless) Append(ctx context.Context, events ...*session.Event) error {
	for _, e := range events {
		if e.CallStarted != nil {
			return errDisk
		}
	}
	return l.MemoryLog.Append(ctx, events...)
}

// delegating is a model that hands over a task.
type delegating struct{}

func (delegating) Name() string { return "delegating" }

func (delegating) Stream(context.Context, *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		call := llm.Call{ID: "call_1", Name: agents.HandOffTool, Arguments: `{"member": "work", "task": "Count the ships."}`}
		yield(llm.Done{Answer: llm.Answer{Message: llm.Message{Role: llm.Assistant, Parts: []llm.Part{call}}, Stop: llm.StopTools}}, nil)
	}
}

// A task whose start cannot be recorded is not handed to the member, as it would be
// done again after a restart.
func TestUnrecordedTaskIsNotDelegated(t *testing.T) {
	rt, err := loadout.New(t.Context(), &loadout.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close() })
	s, err := rt.NewSession(t.Context(), &session.Options{Log: &startless{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	leader := &conversation{setup: &Setup{Profile: &agents.Profile{
		HandOff: &llm.Tool{Name: agents.HandOffTool, InputSchema: json.RawMessage(`{"type":"object"}`)},
		Members: []agents.TeamMember{{Name: "work"}},
	}}} // it has nothing to open a member with
	a := agent.New(delegating{}, s, &agent.Options{MaxSteps: 2, Tools: []agent.Tool{leader.handOffTool(&chat.ToolContext{Session: s})}})
	if err := a.RunTurn(t.Context(), "Go.", func(agent.Event) {}); !errors.Is(err, errDisk) {
		t.Errorf("the turn ends with %v, want %v", err, errDisk)
	}
}
