package clientaction_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/approval"
	"github.com/loadout-dev/loadout/internal/clientaction"
	"github.com/loadout-dev/loadout/policy"
)

// W27: a client performs a marked elicitation, within the timeout of the
// server. Other elicitations are passed on.
func TestW27ElicitedActions(t *testing.T) {
	ann := policy.Principal{ID: "ann", Kind: policy.UserPrincipal}
	for name, c := range map[string]struct {
		meta    mcp.Meta
		answer  *approval.Answer // nil means no answer
		content string
		fails   string
	}{
		"handed on":   {meta: nil, content: `{"by":"a person"}`},
		"done":        {meta: mcp.Meta{"loadout/action": map[string]any{"skill_name": "s", "action": "draw", "data": 1}}, answer: &approval.Answer{Outcome: approval.Accepted, Content: []byte(`{"success":true,"result":"x"}`)}, content: `{"result":"x","success":true}`},
		"not done":    {meta: mcp.Meta{"loadout/action": map[string]any{"skill_name": "s", "action": "draw"}}, answer: &approval.Answer{Outcome: approval.Declined}, content: `{"error":"The client did not do it.","success":false}`},
		"in no time":  {meta: mcp.Meta{"loadout/action": map[string]any{"skill_name": "s", "action": "draw", "timeout": 7}}, content: `{"error":"Request draw timed out after 7s: no client answered.","success":false}`},
		"no data":     {meta: mcp.Meta{"loadout/action": map[string]any{"skill_name": "s", "action": "draw", "timeout": 0}}, content: `{"error":"Request draw timed out after 1m0s: no client answered.","success":false}`},
		"a moment":    {meta: mcp.Meta{"loadout/action": map[string]any{"skill_name": "s", "action": "draw", "timeout": 0.5}}, content: `{"error":"Request draw timed out after 500ms: no client answered.","success":false}`},
		"too large":   {meta: mcp.Meta{"loadout/action": map[string]any{"skill_name": "s", "action": "draw", "data": strings.Repeat("x", approval.MaxPayload)}}, fails: "invalid client action"},
		"nothing":     {meta: mcp.Meta{"loadout/action": map[string]any{"skill_name": "s"}}, fails: "invalid client action"},
		"unreadable":  {meta: mcp.Meta{"loadout/action": "draw"}, fails: "invalid client action"},
		"for a while": {meta: mcp.Meta{"loadout/action": map[string]any{"action": "draw", "timeout": 1e9}}, content: `{"error":"Request draw timed out after 10m0s: no client answered.","success":false}`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				desk := approval.NewQueue(&approval.MemoryStore{})
				defer desk.Subscribe(func(e approval.Event) {
					if e.Answer == nil && c.answer != nil {
						answer := *c.answer
						answer.By = ann
						go desk.Resolve(context.Background(), e.Request.ID, answer)
					}
				})()
				elicit := (&clientaction.Client{Approvals: desk, Session: "c", Principal: ann, Timeout: time.Minute}).Elicit(func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"by": "a person"}}, nil
				})
				res, err := elicit(t.Context(), &mcp.ElicitRequest{Params: &mcp.ElicitParams{Message: "m", Meta: c.meta}})
				if c.fails != "" {
					if err == nil || !strings.Contains(err.Error(), c.fails) {
						t.Errorf("the error is %v", err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if got, _ := json.Marshal(res.Content); string(got) != c.content || res.Action != "accept" {
					t.Errorf("the answer is %s %s, want %s", res.Action, got, c.content)
				}
			})
		})
	}
}
