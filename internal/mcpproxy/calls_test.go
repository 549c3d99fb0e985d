package mcpproxy_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/mcpproxy"
)

func TestCallsAreReported(t *testing.T) {
	for _, era := range []string{legacy, modern} {
		t.Run(era, func(t *testing.T) {
			up := mcp.NewServer(&mcp.Implementation{Name: "up", Version: "1"}, nil)
			addTool(up, "works", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return say("yes") })
			addTool(up, "fails", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{IsError: true}, nil
			})
			addTool(up, "closed", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return say("no") })
			reported := make(chan string, 8)
			s := newDirect(t, &mcpproxy.Options{
				AuthorizeCall: func(_ context.Context, _ *mcp.CallToolRequest, _, tool string) (*mcp.CallToolResult, func(string) string, error) {
					if tool == "closed" {
						return &mcp.CallToolResult{IsError: true}, nil, nil
					}
					return nil, nil, nil
				},
				OnCall: func(server, tool string, failed bool, elapsed time.Duration) {
					reported <- fmt.Sprint(server, " ", tool, " failed ", failed, " took ", elapsed > 0)
				},
			}, mcpproxy.Upstream{Name: "up", Prefix: "p", Opener: opener(up)})
			cs := connect(t, s, era, nil)
			for _, tool := range []string{"p__works", "p__fails", "p__closed"} {
				if _, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: tool}); err != nil {
					t.Fatal(err)
				}
			}
			close(reported)
			if got, want := slices.Collect(values(reported)), []string{"up works failed false took true", "up fails failed true took true"}; !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func values(c <-chan string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for v := range c {
			if !yield(v) {
				return
			}
		}
	}
}
