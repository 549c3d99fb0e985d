package clientaction

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/approval"
)

// actionKey is the key in an elicitation's _meta that holds an actionRequest, a
// request for an action that only a client can perform. The elicitation's
// result always has the action "accept". Its content has the member success,
// and either result or error, as sent by the client. If no client performed the
// action, success is false.
const actionKey = "loadout/action"

// actionRequest is a server's request that a client perform an action.
type actionRequest struct {
	Skill   string          `json:"skill_name"`
	Action  string          `json:"action"`
	Data    json.RawMessage `json:"data,omitempty"`
	Timeout float64         `json:"timeout,omitempty"` // timeout in seconds; 0 means that of the [Client]
}

// maxActionTime is the maximum timeout that a server can set for an action.
const maxActionTime = 10 * time.Minute

// Elicit returns an elicitation handler. The handler passes elicitations marked
// with "loadout/action" to a client, and all others to next.
func (c *Client) Elicit(next func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error)) func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	return func(ctx context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		marked, ok := req.Params.Meta[actionKey]
		if !ok {
			return next(ctx, req)
		}
		var r actionRequest
		raw, err := json.Marshal(marked)
		if err == nil {
			err = json.Unmarshal(raw, &r)
		}
		if err != nil || r.Action == "" || len(raw) > approval.MaxPayload {
			return nil, errors.New("invalid client action: expected skill_name, action and data")
		}
		return c.askClient(ctx, &r)
	}
}

// askClient passes a server's action request to a client and waits for the
// result.
func (c *Client) askClient(ctx context.Context, r *actionRequest) (*mcp.ElicitResult, error) {
	timeout := cmp.Or(c.Timeout, 30*time.Second)
	if r.Timeout > 0 {
		timeout = time.Duration(min(r.Timeout, maxActionTime.Seconds()) * float64(time.Second))
	}
	id := fmt.Sprintf("%s.action-%d", c.Session, time.Now().UnixNano())
	payload, err := json.Marshal(Action{Request: id, Skill: r.Skill, Action: r.Action, Data: r.Data})
	if err != nil {
		return nil, err
	}
	answer, err := c.Approvals.Ask(ctx, approval.Request{ID: id, Kind: approval.KindAction, Session: c.Session, Principal: c.Principal, Payload: payload,
		Message: fmt.Sprintf("%.100s of %.100s", r.Action, r.Skill), Deadline: time.Now().Add(timeout)})
	if err != nil {
		return nil, err
	}
	content := map[string]any{}
	switch {
	case answer.Outcome == approval.Expired:
		content = map[string]any{"success": false, "error": fmt.Sprintf("Request %s timed out after %v: no client answered.", r.Action, timeout)}
	case answer.Outcome != approval.Accepted || json.Unmarshal(answer.Content, &content) != nil:
		content = map[string]any{"success": false, "error": "The client did not do it."}
	}
	return &mcp.ElicitResult{Action: "accept", Content: content}, nil
}
