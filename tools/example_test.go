package tools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"testing/fstest"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/session"
	"github.com/loadout-dev/loadout/tools"
)

var reports = fstest.MapFS{"report/SKILL.md": {Data: []byte(`---
name: report
description: Writes reports with charts.
config: {theme: dark}
tools: [{name: bar, provider: charts}]
---
Draw a bar for each month.
`)}}

// A program provides tools for skills: a skill that declares tools of the provider gets
// them when it is loaded.
func Example() {
	charts := mcp.NewServer(&mcp.Implementation{Name: "charts", Version: "1"}, nil)
	mcp.AddTool(charts, &mcp.Tool{Name: "bar", Description: "Draw a bar.", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(_ context.Context, req *mcp.CallToolRequest, in struct{ Value int }) (*mcp.CallToolResult, any, error) {
			text := fmt.Sprintf("a bar of %d, %v", in.Value, req.Params.Meta[tools.SettingsKey])
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
		})
	ctx := context.Background()
	rt, err := loadout.New(ctx, &loadout.Options{Sources: []catalog.Source{catalog.NewFS("mine", catalog.User, reports)}})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	set := tools.ForRuntime(rt, &tools.Options{Providers: map[string]*mcp.Server{"charts": charts}})
	defer set.Close()

	s, err := rt.NewSession(ctx, &session.Options{Tools: set.ForSession()})
	if err != nil {
		log.Fatal(err)
	}
	r, err := s.Load(ctx, "report", nil)
	if err != nil {
		log.Fatal(err)
	}
	res, err := set.Call(ctx, &tools.Call{Name: r.Tools[0].Name, Arguments: json.RawMessage(`{"Value":3}`)})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Content[0].(*mcp.TextContent).Text)
	// Output:
	// a bar of 3, map[theme:dark]
}
