//lint:file-ignore SA1019 legacy clients and servers still use deprecated features

package mcpproxy_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/mcpproxy"
)

// A client's _meta, name and capabilities can hold data about its user.
func TestClientDataDoesNotReachServers(t *testing.T) {
	eachEra(t, func(t *testing.T, client, server string) {
		const secret = "git@example.com:ada/secret"
		up := newServer(server)
		addAsking(up, server)
		up.AddPrompt(&mcp.Prompt{Name: "p"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{}, nil
		})
		up.AddResource(&mcp.Resource{Name: "r", URI: "x://r"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "x://r", Text: "hi"}}}, nil
		})
		var mu sync.Mutex
		var received []string
		record := func(method string, v any) {
			data, err := json.Marshal(v)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			received = append(received, method+" "+string(data))
		}
		up.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
				record(method, req.GetParams())
				return next(ctx, method, req)
			}
		})
		up.AddSendingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
				res, err := next(ctx, method, req)
				record("response to "+method, res)
				return res, err
			}
		})
		o := answering()
		o.Capabilities.Experimental = map[string]any{"workspace": secret}
		o.Capabilities.Extensions = map[string]any{"example.com/git": map[string]any{"remote": secret}}
		elicit := o.ElicitationHandler
		o.ElicitationHandler = func(ctx context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			res, err := elicit(ctx, req)
			res.Meta = mcp.Meta{"turn": secret}
			return res, err
		}
		s := newDirect(t, nil, mcpproxy.Upstream{Name: "up", Opener: opener(up)})
		here, there := mcp.NewInMemoryTransports()
		ran := make(chan struct{})
		go func() { defer close(ran); s.Run(context.Background(), there) }()
		c := mcp.NewClient(&mcp.Implementation{Name: secret, Version: "1"}, o)
		c.AddRoots(&mcp.Root{URI: "file:///work", Meta: mcp.Meta{"remote": secret}})
		cs, err := c.Connect(t.Context(), here, &mcp.ClientSessionOptions{ProtocolVersion: client})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { cs.Close(); <-ran }()
		const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
		meta := func() mcp.Meta {
			return mcp.Meta{"turn": map[string]any{"remote": secret}, "baggage": secret, "traceparent": trace, "progressToken": secret}
		}
		for what, err := range map[string]error{
			"tools":     second(cs.ListTools(t.Context(), &mcp.ListToolsParams{Meta: meta()})),
			"prompts":   second(cs.ListPrompts(t.Context(), &mcp.ListPromptsParams{Meta: meta()})),
			"resources": second(cs.ListResources(t.Context(), &mcp.ListResourcesParams{Meta: meta()})),
			"templates": second(cs.ListResourceTemplates(t.Context(), &mcp.ListResourceTemplatesParams{Meta: meta()})),
			"prompt":    second(cs.GetPrompt(t.Context(), &mcp.GetPromptParams{Meta: meta(), Name: "p"})),
			"resource":  second(cs.ReadResource(t.Context(), &mcp.ReadResourceParams{Meta: meta(), URI: "x://r"})),
			"complete":  second(cs.Complete(t.Context(), &mcp.CompleteParams{Meta: meta(), Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: "p"}, Argument: mcp.CompleteParamsArgument{Name: "a"}})),
			"call":      second(cs.CallTool(t.Context(), &mcp.CallToolParams{Meta: meta(), Name: "ask"})),
		} {
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		traced := false
		for _, r := range received {
			if strings.Contains(r, secret) {
				t.Errorf("the server got %s", r)
			}
			traced = traced || strings.Contains(r, trace)
		}
		if !traced {
			t.Errorf("no request had the trace: %s", strings.Join(received, "\n"))
		}
	})
}

func second[T any](_ T, err error) error { return err }
