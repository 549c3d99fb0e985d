package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"testing/fstest"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/approval"
	"github.com/loadout-dev/loadout/internal/llm/demo"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/policy"
)

// This example runs a conversation with the built-in demo. Pass another first
// argument to New to use another model.
func ExampleAgent() {
	ctx := context.Background()
	rt, err := loadout.New(ctx, &loadout.Options{Sources: []catalog.Source{catalog.NewFS("mine", catalog.User, fstest.MapFS{
		"tides/SKILL.md": {Data: []byte("---\nname: tides\ndescription: Reads tide tables.\n---\nAdd one hour in summer.\n")},
	})}})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	s, err := rt.NewSession(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	clock := agent.Tool{
		Tool:     llm.Tool{Name: "clock", Description: "What time it is.", InputSchema: json.RawMessage(`{"type":"object"}`)},
		ReadOnly: true, Repeatable: true,
		Call: func(context.Context, json.RawMessage) (*agent.Outcome, error) {
			return &agent.Outcome{Text: "12:10"}, nil
		},
	}
	a := agent.New(demo.New(nil), s, &agent.Options{
		Instructions: "Help the person. Skills:\n" + rt.CatalogText(loadout.TextOptions{Tokens: 2000}),
		Tools:        []agent.Tool{clock},
	})
	err = a.RunTurn(ctx, "use the skill tides", func(e agent.Event) {
		switch e.Type {
		case agent.ToolCall:
			fmt.Println("calls", e.Call.Name, e.Call.Arguments)
		case agent.SkillLoaded:
			fmt.Println("loaded", e.Skill)
		case agent.Done:
			fmt.Println("done")
		}
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, active := range s.Active() {
		left, _ := s.TurnsLeft(active.Skill)
		fmt.Println(active.Skill.Name, "stays for", left, "more turns")
	}
	// Output:
	// calls load_skill {"name":"tides"}
	// loaded tides
	// done
	// tides stays for 5 more turns
}

// This example has a tool that only a client can perform: here, a subscriber of
// the approval queue.
func ExampleClient() {
	ctx := context.Background()
	person := policy.Principal{ID: "ann", Kind: policy.UserPrincipal}
	desk := approval.NewQueue(&approval.MemoryStore{})
	defer desk.Subscribe(func(e approval.Event) {
		if e.Answer == nil && e.Request.Kind == approval.KindAction {
			var do agent.Action
			if err := json.Unmarshal(e.Request.Payload, &do); err != nil {
				log.Fatal(err)
			}
			fmt.Println(do.Skill, do.Action, string(do.Data))
			go desk.Resolve(ctx, e.Request.ID, approval.Answer{Outcome: approval.Accepted, By: person, Content: json.RawMessage(`{"success":true,"result":{"svg":"<svg/>"}}`)})
		}
	})()
	client := &agent.Client{Approvals: desk, Session: "42", Principal: person}
	draw := client.Tool("mermaid", llm.Tool{Name: "render", InputSchema: json.RawMessage(`{"type":"object"}`)})
	out, err := draw.Call(ctx, json.RawMessage(`{"code":"a---b"}`))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(out.Text)
	// Output:
	// mermaid render {"code":"a---b"}
	// {"svg":"<svg/>"}
}
