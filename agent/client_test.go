package agent_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/ask"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/policy"
)

// W27, L14: a tool that the client carries out waits for the first answer, for so long,
// and what the client says is told to the model.
func TestW27ClientActions(t *testing.T) {
	person := policy.Principal{ID: "ann", Kind: policy.Person}
	for _, tt := range []struct {
		name   string
		answer *ask.Answer // nil is none
		want   string
		failed bool
	}{
		{"done", &ask.Answer{Outcome: ask.Accepted, Content: json.RawMessage(`{"success":true,"result":{"svg":"x"}}`)}, `{"svg":"x"}`, false},
		{"a text", &ask.Answer{Outcome: ask.Accepted, Content: json.RawMessage(`{"success":true,"result":"drawn"}`)}, "drawn", false},
		{"failed", &ask.Answer{Outcome: ask.Accepted, Content: json.RawMessage(`{"success":false,"error":"line 3"}`)}, "render failed: line 3", true},
		{"not an object", &ask.Answer{Outcome: ask.Accepted, Content: json.RawMessage(`[1]`)}, "no object", true},
		{"declined", &ask.Answer{Outcome: ask.Declined}, "did not do render", true},
		{"nobody", nil, "timed out after 30s", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				desk := ask.New(&ask.Memory{})
				asked := time.Now()
				defer desk.Watch(func(e ask.Event) {
					if e.Answer != nil || tt.answer == nil {
						return
					}
					go func() {
						by := *tt.answer
						by.By = policy.Principal{ID: "bob", Kind: policy.Person}
						if err := desk.Answer(t.Context(), e.Ask.ID, by); err == nil {
							t.Error("somebody else answered")
						}
						by.By = person
						if err := desk.Answer(t.Context(), e.Ask.ID, by); err != nil {
							t.Error(err)
						}
					}()
				})()
				client := &agent.Client{Desk: desk, Session: "s", Principal: person}
				out, err := client.Tool("mermaid", llm.Tool{Name: "render"}).Call(t.Context(), json.RawMessage(`{}`))
				if err != nil {
					t.Fatal(err)
				}
				if !strings.Contains(out.Text, tt.want) || out.Error != tt.failed {
					t.Errorf("the model is told %q, error %t", out.Text, out.Error)
				}
				if tt.answer == nil && time.Since(asked) != 30*time.Second {
					t.Errorf("it waited %v", time.Since(asked))
				}
			})
		})
	}
}
