package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// Server is an MCP server of this program, as [mcp.Server] and
// github.com/loadout-dev/loadout/mcpserver have it.
type Server interface {
	// Run serves one connection until it ends.
	Run(ctx context.Context, t mcp.Transport) error
}

// Connect connects to a server of this program, in memory, with a client that asks
// a person by elicit; nil is a client that cannot. Close the result when done: the
// server's end of the connection ends with it.
func Connect(ctx context.Context, s Server, elicit func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error)) (*mcp.ClientSession, error) {
	here, there := mcp.NewInMemoryTransports()
	go s.Run(context.WithoutCancel(ctx), there) // ends with its client
	client := mcp.NewClient(&mcp.Implementation{Name: "loadout", Title: "Loadout", Version: "devel"}, &mcp.ClientOptions{ElicitationHandler: elicit})
	return client.Connect(ctx, here, nil)
}

// FromMCP returns the tools of a server, but for those that are named.
func FromMCP(ctx context.Context, cs *mcp.ClientSession, without ...string) ([]Tool, error) {
	var out []Tool
	for t, err := range cs.Tools(ctx, nil) {
		if err != nil {
			return nil, fmt.Errorf("list tools: %w", err)
		}
		if slices.Contains(without, t.Name) {
			continue
		}
		schema, err := json.Marshal(t.InputSchema)
		if err != nil {
			return nil, fmt.Errorf("tool %s: %w", t.Name, err)
		}
		a := t.Annotations
		out = append(out, Tool{
			Tool:       llm.Tool{Name: t.Name, Description: t.Description, InputSchema: schema},
			Repeatable: a != nil && (a.ReadOnlyHint || a.IdempotentHint), Reads: a != nil && a.ReadOnlyHint,
			Call: func(ctx context.Context, args json.RawMessage) (*Outcome, error) {
				res, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: t.Name, Arguments: args})
				if wire, ok := errors.AsType[*jsonrpc.Error](err); ok && ctx.Err() == nil {
					return &Outcome{Text: wire.Message, Error: true}, nil
				}
				if err != nil {
					return nil, err
				}
				return outcome(res), nil
			},
		})
	}
	return out, nil
}

// outcome is what a model is given of a result.
func outcome(res *mcp.CallToolResult) *Outcome {
	out := &Outcome{Error: res.IsError}
	var texts []string
	for _, c := range res.Content {
		switch c := c.(type) {
		case *mcp.TextContent:
			texts = append(texts, c.Text)
		case *mcp.ImageContent:
			out.Images = append(out.Images, session.Image{MIMEType: c.MIMEType, Data: c.Data})
		case *mcp.ResourceLink:
			texts = append(texts, fmt.Sprintf("[%s](%s)", c.Name, c.URI))
		case *mcp.EmbeddedResource:
			if c.Resource != nil && c.Resource.Text != "" {
				texts = append(texts, c.Resource.Text)
			} else if c.Resource != nil {
				texts = append(texts, fmt.Sprintf("(%s of %d bytes)", c.Resource.MIMEType, len(c.Resource.Blob)))
			}
		case *mcp.AudioContent:
			texts = append(texts, fmt.Sprintf("(sound of %d bytes, %s)", len(c.Data), c.MIMEType))
		}
	}
	if len(texts) == 0 && res.StructuredContent != nil {
		if b, err := json.Marshal(res.StructuredContent); err == nil {
			texts = append(texts, string(b))
		}
	}
	out.Text = strings.Join(texts, "\n")
	return out
}
