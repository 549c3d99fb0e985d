package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/ask"
)

// ActionKey is the member of an elicitation's _meta by which the server of a tool asks
// for something that only a client can do: an [ActionRequest]. The answer is of the
// action accept, and its content has success, and result or error, as the client gave
// them; where no client did it, success is false.
const ActionKey = "loadout/action"

// ActionRequest is what a server wants of a client.
type ActionRequest struct {
	Skill   string          `json:"skill_name"`
	Action  string          `json:"action"`
	Data    json.RawMessage `json:"data,omitempty"`
	Timeout float64         `json:"timeout,omitempty"` // seconds; 0 is that of the [Client]
}

// maxActionTime bounds how long a server may have a client take.
const maxActionTime = 10 * time.Minute

// Elicit answers elicitations that are marked with [ActionKey] by what a client does,
// and hands all others to next.
func (c *Client) Elicit(next func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error)) func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	return func(ctx context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		marked, ok := req.Params.Meta[ActionKey]
		if !ok {
			return next(ctx, req)
		}
		var r ActionRequest
		raw, err := json.Marshal(marked)
		if err == nil {
			err = json.Unmarshal(raw, &r)
		}
		if err != nil || r.Action == "" || len(raw) > ask.MaxPayload {
			return nil, errors.New("the action that a client is asked for cannot be read: write skill_name, action and data")
		}
		return c.act(ctx, &r)
	}
}

// act has a client do something for a server.
func (c *Client) act(ctx context.Context, r *ActionRequest) (*mcp.ElicitResult, error) {
	timeout := cmp.Or(c.Timeout, 30*time.Second)
	if r.Timeout > 0 {
		timeout = time.Duration(min(r.Timeout, maxActionTime.Seconds()) * float64(time.Second))
	}
	id := fmt.Sprintf("%s.action-%d", c.Session, time.Now().UnixNano())
	payload, err := json.Marshal(Action{Request: id, Skill: r.Skill, Action: r.Action, Data: r.Data})
	if err != nil {
		return nil, err
	}
	answer, err := askIn(ctx, c.Desk, ask.Ask{ID: id, Kind: ask.Action, Session: c.Session, Principal: c.Principal, Payload: payload,
		Message: bounded(fmt.Sprintf("%.100s of %.100s", r.Action, r.Skill)), Deadline: time.Now().Add(timeout)})
	if err != nil {
		return nil, err
	}
	content := map[string]any{}
	switch {
	case answer.Outcome == ask.Expired:
		content = map[string]any{"success": false, "error": fmt.Sprintf("Request %s timed out after %v: no client answered.", r.Action, timeout)}
	case answer.Outcome != ask.Accepted || json.Unmarshal(answer.Content, &content) != nil:
		content = map[string]any{"success": false, "error": "The client did not do it."}
	}
	return &mcp.ElicitResult{Action: "accept", Content: content}, nil
}
