package assembly

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/internal/callid"
	"github.com/loadout-dev/loadout/llm"
)

// Tools are opened once, at the first call and with the context of the turn: a
// connection that knew the ID of that call would use it for the questions of others.
// After a failure, the next call tries again. Nothing opens after the turn.
func TestLazyTools(t *testing.T) {
	k := &Assembler{}
	opened, fail := 0, false
	open := func(ctx context.Context) ([]agent.Tool, error) {
		opened++
		if id := callid.From(ctx); id != "" {
			t.Errorf("opened with the context of call %s", id)
		}
		if fail {
			return nil, errors.New("no connection")
		}
		return []agent.Tool{{Tool: llm.Tool{Name: "look"}, Repeatable: true, Call: func(ctx context.Context, _ json.RawMessage) (*agent.Outcome, error) {
			return &agent.Outcome{Text: callid.From(ctx)}, nil
		}}}, nil
	}
	list := func() (*conversation, agent.Tool) {
		c := &conversation{assembler: k}
		all, err := c.lazyTools(t.Context(), toolList{}, open)
		if err != nil || len(all) != 1 || all[0].Name != "look" || !all[0].Repeatable {
			t.Fatalf("%+v, %v", all, err)
		}
		return c, all[0]
	}
	call := func(tool agent.Tool, id string) string {
		t.Helper()
		out, err := tool.Call(callid.With(t.Context(), id), nil)
		if err != nil {
			return err.Error()
		}
		return out.Text
	}
	if _, first := list(); opened != 1 || call(first, "a") != "a" {
		t.Errorf("the first conversation opens its tools %d times", opened)
	}
	_, second := list()
	if opened != 1 {
		t.Error("the second conversation opens its tools before a call")
	}
	if fail = true; call(second, "b") != "no connection" {
		t.Error("a failure is not reported")
	}
	fail = false
	for _, id := range []string{"c", "d"} {
		if got := call(second, id); got != id || opened != 3 {
			t.Errorf("call %s returns %s; opened %d times", id, got, opened)
		}
	}
	c, third := list()
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	if got := call(third, "e"); got != "the turn has ended" || opened != 3 {
		t.Errorf("after the turn: %s; opened %d times", got, opened)
	}
}
