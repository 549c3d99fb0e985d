package upstream_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/upstream"
)

// A connection that had worked is lost; it is not one that was not made.
func TestLostConnection(t *testing.T) {
	p := newPool(t, nil)
	s := p.Server(childConfig(t, "modern"), "")
	res, err := s.Call(t.Context(), &mcp.CallToolParams{Name: "pid"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	said := make(chan string, 100)
	defer p.Subscribe(func(s *upstream.Server) {
		if text := s.Status().Error; text != "" {
			said <- text
		}
	})()
	pid, err := strconv.Atoi(res.Content[0].(*mcp.TextContent).Text)
	if err != nil {
		t.Fatal(err)
	}
	child, err := os.FindProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Kill(); err != nil {
		t.Fatal(err)
	}
	if got := <-said; !strings.HasPrefix(got, `lost the connection to server "modern" with the command `) || !strings.Contains(got, "the command ended") {
		t.Errorf("got %q", got)
	}
}
