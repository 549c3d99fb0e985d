package clientaction_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/approval"
	"github.com/loadout-dev/loadout/internal/clientaction"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/policy"
)

// An action that cannot be passed on is an error, not an answer of the client.
func TestUnpassedActions(t *testing.T) {
	client := &clientaction.Client{Approvals: approval.NewQueue(&approval.MemoryStore{}), Session: "s", Principal: policy.LocalUser()}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	elicit := client.Elicit(nil)
	marked := &mcp.ElicitRequest{Params: &mcp.ElicitParams{Meta: mcp.Meta{"loadout/action": map[string]any{"skill_name": "s", "action": "draw"}}}}
	if res, err := elicit(ended, marked); !errors.Is(err, context.Canceled) || res != nil {
		t.Errorf("an elicited action that is cancelled: %+v, %v", res, err)
	}
	call := client.Tool("mermaid", llm.Tool{Name: "render"}).Call
	if out, err := call(ended, json.RawMessage(`{}`)); !errors.Is(err, context.Canceled) || out != nil {
		t.Errorf("a call that is cancelled: %+v, %v", out, err)
	}
	if out, err := call(t.Context(), json.RawMessage(`{`)); err == nil || out != nil {
		t.Errorf("arguments that are no JSON: %+v, %v", out, err)
	}
	client.Session = "" // no request without a session
	if res, err := elicit(t.Context(), marked); err == nil || res != nil {
		t.Errorf("without a session: %+v, %v", res, err)
	}
}
