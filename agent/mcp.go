package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/llm"
)

// inProcessServer is an MCP server in this program.
type inProcessServer interface {
	// Run serves a connection until it is closed.
	Run(ctx context.Context, t mcp.Transport) error
}

// connection is a connection to an in-process server. It is safe for concurrent
// use. The caller must close it, which also closes the server's side.
type connection struct {
	*mcp.ClientSession
	calls sync.Map // contexts of running calls, by progress token
	last  atomic.Int64
}

// connect connects to an in-process server, in memory. elicit handles the
// server's elicitations; if it is nil, the client does not support elicitation.
func connect(ctx context.Context, s inProcessServer, elicit func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error)) (*connection, error) {
	here, there := mcp.NewInMemoryTransports()
	go s.Run(context.WithoutCancel(ctx), there) // returns when its client closes the connection
	c := &connection{}
	client := mcp.NewClient(&mcp.Implementation{Name: "loadout", Title: "Loadout", Version: "devel"}, &mcp.ClientOptions{ElicitationHandler: elicit,
		ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
			token, _ := req.Params.ProgressToken.(string)
			if call, ok := c.calls.Load(token); ok {
				ReportProgress(call.(context.Context), progressText(req.Params))
			}
		}})
	var err error
	if c.ClientSession, err = client.Connect(ctx, here, nil); err != nil {
		return nil, err
	}
	return c, nil
}

// tools returns the server's tools, except those with an excluded name. Their
// Call fields are nil.
func (c *connection) tools(ctx context.Context, excluded ...string) ([]Tool, error) {
	var out []Tool
	for t, err := range c.ClientSession.Tools(ctx, nil) {
		if err != nil {
			return nil, fmt.Errorf("list tools: %w", err)
		}
		if slices.Contains(excluded, t.Name) {
			continue
		}
		schema, err := json.Marshal(t.InputSchema)
		if err != nil {
			return nil, fmt.Errorf("tool %s: %w", t.Name, err)
		}
		a := t.Annotations
		out = append(out, Tool{
			Tool:       llm.Tool{Name: t.Name, Description: t.Description, InputSchema: schema},
			Repeatable: a != nil && (a.ReadOnlyHint || a.IdempotentHint), ReadOnly: a != nil && a.ReadOnlyHint,
		})
	}
	return out, nil
}

// withCalls returns copies of tools with a Call function that calls the server.
func (c *connection) withCalls(tools []Tool) []Tool {
	out := slices.Clone(tools)
	for i := range out {
		name := out[i].Name
		out[i].Call = func(ctx context.Context, args json.RawMessage) (*Outcome, error) { return c.call(ctx, name, args) }
	}
	return out
}

// call calls one of the server's tools and reports its progress.
func (c *connection) call(ctx context.Context, name string, args json.RawMessage) (*Outcome, error) {
	token := "call-" + strconv.FormatInt(c.last.Add(1), 10)
	c.calls.Store(token, ctx)
	defer c.calls.Delete(token)
	params := &mcp.CallToolParams{Name: name, Arguments: args}
	params.SetProgressToken(token)
	res, err := c.CallTool(ctx, params)
	if wire, ok := errors.AsType[*jsonrpc.Error](err); ok && ctx.Err() == nil {
		return &Outcome{Text: wire.Message, Error: true}, nil
	}
	if err != nil {
		return nil, err
	}
	return resultOutcome(res), nil
}

// Limits on the images in a result. Images are part of every later request.
const (
	maxImages     = 8
	maxImageBytes = 5 << 20 // total size
)

// imageTypes are the image types that models accept.
var imageTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// resultOutcome converts a tool result to an outcome for the model.
func resultOutcome(res *mcp.CallToolResult) *Outcome {
	out := &Outcome{Error: res.IsError}
	var texts []string
	size := 0
	for _, c := range res.Content {
		switch c := c.(type) {
		case *mcp.TextContent:
			texts = append(texts, c.Text)
		case *mcp.ImageContent:
			if size += len(c.Data); len(out.Images) == maxImages || size > maxImageBytes || !slices.Contains(imageTypes, c.MIMEType) {
				texts = append(texts, fmt.Sprintf("(a picture of %d bytes, of type %.40q, that is not shown)", len(c.Data), c.MIMEType))
				continue
			}
			out.Images = append(out.Images, llm.Image{MIMEType: c.MIMEType, Data: c.Data})
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
