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
	"github.com/loadout-dev/loadout/internal/llm/demo"
	"github.com/loadout-dev/loadout/llm"
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
		Instructions: "Help the person. Skills:\n" + rt.CatalogText(2000),
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
