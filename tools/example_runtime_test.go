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

// This example calls a tool of a skill's own MCP server. One function asks the
// user about the server and about the call.
func ExampleForRuntime() {
	server := newWaterServer() // a server over HTTP with the tool set_alarm
	defer func() { server.CloseClientConnections(); server.Close() }()
	ctx := context.Background()
	rt, err := loadout.New(ctx, &loadout.Options{
		Sources: []catalog.Source{catalog.NewFS("mine", catalog.User, fstest.MapFS{"tides/SKILL.md": {Data: []byte(
			"---\nname: tides\ndescription: Reads tide tables.\nmcpServers: {water: {url: " + server.URL + "}}\n---\nSet an alarm.\n")}})},
		Scripts: &loadout.Scripts{ReadServers: tools.ReadServers},
		Approve: func(_ context.Context, r *loadout.ApprovalRequest) (loadout.Approval, error) {
			if r.Call != nil {
				fmt.Println("Call", r.Call.Tool, string(r.Call.Arguments)+"?", r.Call.Description)
			} else {
				fmt.Println("Connect the server", r.Services[0].Name, "of", r.Entry.Name+"?")
			}
			return loadout.Approval{Approved: true}, nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	set := tools.ForRuntime(rt, &tools.Options{PrivateNetworks: thisMachine}) // skills may connect to it
	defer set.Close()
	s, err := rt.NewSession(ctx, &session.Options{Tools: set.ForSession()})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	r, err := s.Load(ctx, "tides", nil)
	if err != nil {
		log.Fatal(err)
	}
	res, err := set.Call(ctx, &tools.Call{Name: r.Tools[1].Name, Arguments: json.RawMessage(`{"At":"12:10"}`)})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Content[0].(*mcp.TextContent).Text)
	// Output:
	// Connect the server water of tides?
	// Call tides_water__set_alarm {"At":"12:10"}? Set an alarm.
	// alarm at 12:10
}
