package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"strings"
	"testing/fstest"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/llm"
)

// This example adds the tools for skills to a custom loop. The loop sends their names,
// descriptions and schemas to its model, and makes the calls that the model requests.
func ExampleSkillTools() {
	ctx := context.Background()
	rt, err := loadout.New(ctx, &loadout.Options{Sources: []catalog.Source{catalog.NewFS("mine", catalog.User, fstest.MapFS{
		"tides/SKILL.md":    {Data: []byte("---\nname: tides\ndescription: Reads tide tables.\n---\nLook in harbours.md.\n")},
		"tides/harbours.md": {Data: []byte("Cuxhaven: 12:10\n")},
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
	tools, closeTools, err := agent.SkillTools(ctx, rt, s, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer closeTools()

	for _, call := range []llm.Call{ // as a model asks for them
		{Name: "load_skill", Arguments: `{"name":"tides"}`},
		{Name: "read_skill_file", Arguments: `{"skill":"tides","path":"harbours.md"}`},
		{Name: "load_skill", Arguments: `{"name":"tides"}`},
	} {
		for _, t := range tools {
			if t.Name != call.Name {
				continue
			}
			out, err := t.Call(ctx, json.RawMessage(call.Arguments))
			if err != nil {
				log.Fatal(err)
			}
			fmt.Println(strings.TrimSpace(out.Text))
		}
	}
	// Output:
	// Skill tides (from mine) is loaded. Follow its instructions where they apply.
	//
	// Look in harbours.md.
	//
	// Files of this skill: harbours.md
	// Cuxhaven: 12:10
	// Skill tides is already loaded and unchanged; its instructions are further up in this conversation.
}
