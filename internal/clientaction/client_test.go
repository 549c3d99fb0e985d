package clientaction_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadout-dev/loadout/internal/approval"
	"github.com/loadout-dev/loadout/internal/clientaction"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/policy"
)

// W27, L14: a tool that the client performs waits for the first answer, up to
// its timeout. The model gets the client's result.
func TestW27ClientActions(t *testing.T) {
	person := policy.Principal{ID: "ann", Kind: policy.UserPrincipal}
	for _, tt := range []struct {
		name   string
		answer *approval.Answer // nil means none
		want   string
		failed bool
	}{
		{"done", &approval.Answer{Outcome: approval.Accepted, Content: json.RawMessage(`{"success":true,"result":{"svg":"x"}}`)}, `{"svg":"x"}`, false},
		{"a text", &approval.Answer{Outcome: approval.Accepted, Content: json.RawMessage(`{"success":true,"result":"drawn"}`)}, "drawn", false},
		{"failed", &approval.Answer{Outcome: approval.Accepted, Content: json.RawMessage(`{"success":false,"error":"line 3"}`)}, "render failed: line 3", true},
		{"not an object", &approval.Answer{Outcome: approval.Accepted, Content: json.RawMessage(`[1]`)}, "not an object", true},
		{"declined", &approval.Answer{Outcome: approval.Declined}, "did not do render", true},
		{"nobody", nil, "timed out after 30s", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				desk := approval.NewQueue(&approval.MemoryStore{})
				asked := time.Now()
				defer desk.Subscribe(func(e approval.Event) {
					if e.Answer != nil || tt.answer == nil {
						return
					}
					go func() {
						by := *tt.answer
						by.By = policy.Principal{ID: "bob", Kind: policy.UserPrincipal}
						if err := desk.Resolve(t.Context(), e.Request.ID, by); err == nil {
							t.Error("another user answered")
						}
						by.By = person
						if err := desk.Resolve(t.Context(), e.Request.ID, by); err != nil {
							t.Error(err)
						}
					}()
				})()
				client := &clientaction.Client{Approvals: desk, Session: "s", Principal: person}
				out, err := client.Tool("mermaid", llm.Tool{Name: "render"}).Call(t.Context(), json.RawMessage(`{}`))
				if err != nil {
					t.Fatal(err)
				}
				if !strings.Contains(out.Text, tt.want) || out.Error != tt.failed {
					t.Errorf("the model got %q, error %t", out.Text, out.Error)
				}
				if tt.answer == nil && time.Since(asked) != 30*time.Second {
					t.Errorf("it waited %v", time.Since(asked))
				}
			})
		})
	}
}
