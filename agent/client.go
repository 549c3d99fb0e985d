package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/loadout-dev/loadout/ask"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/policy"
)

// Action is the payload of an ask for something that only a client can do, as to draw
// a diagram in its window: a skill:request. The answer's content is an object with
// success, and result or error.
type Action struct {
	Request string          `json:"request_id"`
	Skill   string          `json:"skill_name"`
	Action  string          `json:"action"`
	Data    json.RawMessage `json:"data"`
}

// Client asks the clients of a conversation to do things.
type Client struct {
	Desk      *ask.Desk
	Session   string
	Principal policy.Principal
	// Timeout bounds each request; 0 is 30 seconds.
	Timeout time.Duration
}

// Tool is a tool that a client carries out, as an action of a skill. What the client
// says went wrong, and that none answered in time, is told to the model.
func (c *Client) Tool(skill string, t llm.Tool) Tool {
	return Tool{Tool: t, Begins: true, Call: func(ctx context.Context, args json.RawMessage) (*Outcome, error) {
		timeout := cmp.Or(c.Timeout, 30*time.Second)
		id := c.Session + "." + cmp.Or(CallID(ctx), fmt.Sprint(time.Now().UnixNano()))
		payload, err := json.Marshal(Action{Request: id, Skill: skill, Action: t.Name, Data: args})
		if err != nil {
			return nil, err
		}
		if err := Begin(ctx); err != nil {
			return nil, err
		}
		answer, err := askIn(ctx, c.Desk, ask.Ask{ID: id, Kind: ask.Action, Session: c.Session, Principal: c.Principal, Payload: payload,
			Message: fmt.Sprintf("%s of %s", t.Name, skill), Deadline: time.Now().Add(timeout)})
		if err != nil {
			return nil, err
		}
		return acted(t.Name, answer, timeout), nil
	}}
}

// acted is what came of an action, for the model.
func acted(name string, answer ask.Answer, timeout time.Duration) *Outcome {
	var said struct {
		Success *bool           `json:"success"`
		Result  json.RawMessage `json:"result"`
		Error   json.RawMessage `json:"error"`
	}
	switch {
	case answer.Outcome == ask.Expired:
		return &Outcome{Text: fmt.Sprintf("Request %s timed out after %v: no client answered.", name, timeout), Error: true}
	case answer.Outcome != ask.Accepted:
		return &Outcome{Text: fmt.Sprintf("The client did not do %s.", name), Error: true}
	case json.Unmarshal(answer.Content, &said) != nil:
		return &Outcome{Text: "The client's answer is no object.", Error: true}
	case said.Success != nil && !*said.Success:
		return &Outcome{Text: fmt.Sprintf("%s failed: %s", name, words(said.Error)), Error: true}
	}
	return &Outcome{Text: words(said.Result)}
}

// words are a JSON value as a model reads it best.
func words(v json.RawMessage) string {
	var text string
	if json.Unmarshal(v, &text) == nil {
		return text
	}
	return string(v)
}
