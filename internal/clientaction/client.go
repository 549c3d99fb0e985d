// Package clientaction lets tools and MCP servers request actions that only a
// client of a conversation can perform, such as drawing a diagram in its
// window. Only the first client's answer is used. The package does not depend
// on a particular client. Start with [Client].
package clientaction

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/internal/approval"
	"github.com/loadout-dev/loadout/internal/callid"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/policy"
)

// Action is the payload of a request for an action that only a client can
// perform, such as drawing a diagram in its window. The content of the answer
// is an object with the member success, and either result or error.
type Action struct {
	Request string          `json:"request_id"`
	Skill   string          `json:"skill_name"`
	Action  string          `json:"action"`
	Data    json.RawMessage `json:"data"`
}

// Client requests actions from a conversation's clients. It is safe for
// concurrent use. Its fields must not be changed after first use.
type Client struct {
	// Approvals receives the requests. Session and Principal identify the
	// conversation.
	Approvals *approval.Queue
	Session   string
	Principal policy.Principal
	// Timeout is the timeout of each request; 0 means 30 seconds.
	Timeout time.Duration
}

// Tool returns a tool whose calls are performed by a client, as actions of a
// skill. The model receives the client's errors. If no client answers before
// the timeout, it receives an error, too.
func (c *Client) Tool(skill string, t llm.Tool) agent.Tool {
	return agent.Tool{Tool: t, ReportsStart: true, Call: func(ctx context.Context, args json.RawMessage) (*agent.Outcome, error) {
		timeout := cmp.Or(c.Timeout, 30*time.Second)
		id := c.Session + "." + cmp.Or(callid.From(ctx), fmt.Sprint(time.Now().UnixNano()))
		payload, err := json.Marshal(Action{Request: id, Skill: skill, Action: t.Name, Data: args})
		if err != nil {
			return nil, err
		}
		if err := agent.ReportStart(ctx); err != nil {
			return nil, err
		}
		answer, err := c.Approvals.Ask(ctx, approval.Request{ID: id, Kind: approval.KindAction, Session: c.Session, Principal: c.Principal, Payload: payload,
			Message: fmt.Sprintf("%s of %s", t.Name, skill), Deadline: time.Now().Add(timeout)})
		if err != nil {
			return nil, err
		}
		return actionOutcome(t.Name, answer, timeout), nil
	}}
}

// actionOutcome converts a client's answer to a tool outcome for the model.
func actionOutcome(name string, answer approval.Answer, timeout time.Duration) *agent.Outcome {
	var said struct {
		Success *bool           `json:"success"`
		Result  json.RawMessage `json:"result"`
		Error   json.RawMessage `json:"error"`
	}
	switch {
	case answer.Outcome == approval.Expired:
		return &agent.Outcome{Text: fmt.Sprintf("Request %s timed out after %v: no client answered.", name, timeout), Error: true}
	case answer.Outcome != approval.Accepted:
		return &agent.Outcome{Text: fmt.Sprintf("The client did not do %s.", name), Error: true}
	case json.Unmarshal(answer.Content, &said) != nil:
		return &agent.Outcome{Text: "The client's answer is not an object.", Error: true}
	case said.Success != nil && !*said.Success:
		return &agent.Outcome{Text: fmt.Sprintf("%s failed: %s", name, jsonText(said.Error)), Error: true}
	}
	return &agent.Outcome{Text: jsonText(said.Result)}
}

// jsonText returns a JSON string unquoted, and other values as JSON.
func jsonText(v json.RawMessage) string {
	var text string
	if json.Unmarshal(v, &text) == nil {
		return text
	}
	return string(v)
}
