//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/toolname"
	"github.com/loadout-dev/loadout/mcpserver"
)

// client is an MCP client, identified by the name that it sends. If structured
// is set and a result has structured content, the client shows only that to a
// model.
type client struct {
	name       string
	structured bool
}

// recordedClients are the clients whose requests to a model were recorded.
var recordedClients = []client{{"claude-code", true}, {"codex-mcp-client", true}, {"gemini-cli-mcp-client", false}, {"opencode", false}}

// connect connects a client with the given name to a server of the runtime. The
// caller must call the returned function to close both.
func connect(ctx context.Context, rt *loadout.Runtime, name string) (*mcp.ClientSession, func() error, error) {
	s := mcpserver.New(rt, nil)
	ctx, cancel := context.WithCancel(ctx)
	clientSide, serverSide := mcp.NewInMemoryTransports()
	ended := make(chan struct{})
	go func() { defer close(ended); _ = s.Run(ctx, serverSide) }() // the error only tells why it stopped
	stop := func() error { cancel(); <-ended; return s.Close() }
	c, err := mcp.NewClient(&mcp.Implementation{Name: name, Version: "1"}, nil).Connect(ctx, clientSide, nil)
	if err != nil {
		return nil, nil, errors.Join(err, stop())
	}
	return c, func() error { return errors.Join(c.Close(), stop()) }, nil
}

// addShown sets the shown field of each skill to the texts that the clients
// show a model after load_skill.
func addShown(ctx context.Context, rt *loadout.Runtime, all []deliveredSkill) error {
	for _, cl := range recordedClients {
		c, stop, err := connect(ctx, rt, cl.name)
		if err != nil {
			return err
		}
		for i := range all {
			res, err := c.CallTool(ctx, &mcp.CallToolParams{Name: toolname.LoadSkill, Arguments: map[string]any{"name": all[i].entry.Name}})
			if err != nil || res.IsError {
				return errors.Join(fmt.Errorf("%s: load %s: %v", cl.name, all[i].entry.Name, err), stop())
			}
			text := ""
			for _, part := range res.Content {
				if t, ok := part.(*mcp.TextContent); ok {
					text += t.Text
				}
			}
			if cl.structured && res.StructuredContent != nil {
				js, err := json.Marshal(res.StructuredContent)
				if err != nil {
					return errors.Join(err, stop())
				}
				text = string(js)
			}
			all[i].shown = append(all[i].shown, text)
		}
		if err := stop(); err != nil {
			return err
		}
	}
	return nil
}
