package upstream_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/upstream"
)

// listed is the listing of a server with these tools.
func listed(t *testing.T, want []string, tools ...*mcp.Tool) *upstream.Listing {
	t.Helper()
	one := mcp.NewServer(&mcp.Implementation{Name: "big", Version: "1"}, nil)
	for _, tool := range tools {
		tool.InputSchema = map[string]any{"type": "object"}
		one.AddTool(tool, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{}, nil
		})
	}
	u := serveHTTPOf(t, "modern", one, nil)
	l, err := newPool(t, nil).Server(&upstream.Config{Name: "big", URLs: []string{u}, Tools: want}, "").Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestLongDescriptionsAreTruncated(t *testing.T) {
	long := "x" + strings.Repeat("é", upstream.MaxDescription)
	l := listed(t, nil, &mcp.Tool{Name: "a", Description: "short"}, &mcp.Tool{Name: "b", Description: long})
	if len(l.Tools) != 2 || l.Tools[0].Description != "short" {
		t.Fatalf("%d tools", len(l.Tools))
	}
	if got := l.Tools[1].Description; len(got) != upstream.MaxDescription-1 || !strings.HasPrefix(long, got) {
		t.Errorf("%d bytes of the description are stored", len(got))
	}
	contains(t, "problems", strings.Join(l.Problems, "\n"), `tool "b"`, "65536", "truncated")
}

func TestListingBudget(t *testing.T) {
	var tools []*mcp.Tool
	for n := range 40 {
		tools = append(tools, &mcp.Tool{Name: fmt.Sprintf("t%02d", n), Meta: mcp.Meta{"x": strings.Repeat("x", upstream.MaxDefinition/2)}})
	}
	l := listed(t, []string{"t00", "t39"}, tools...)
	if n := len(l.Tools); n != 31 { // each a little over half a MiB
		t.Errorf("%d tools are stored, want 31", n)
	}
	if len(l.Problems) != 1 || !strings.Contains(l.Problems[0], `"t31" and later tools omitted`) || slices.ContainsFunc(l.Tools, func(t *mcp.Tool) bool { return t.Name == "t31" }) {
		t.Errorf("problems = %q", l.Problems)
	}
}
