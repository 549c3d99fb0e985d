package tools

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/toolset"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/policy"
)

// Topics are words that a reader sees, without digests.
func TestTopicsAreCleaned(t *testing.T) {
	s := &Set{opts: Options{further: toolset.Options{Pool: upstream.NewPool(nil)}, DefaultSafety: policy.Medium}}
	defer s.opts.further.Pool.Close()
	s.rules.Store(&policy.Rules{})
	sv := s.openServer("box", "", &upstream.Config{Name: "box", Type: upstream.Stdio, Command: "box"}, upstream.Variables{})
	defer sv.release()
	l := &upstream.Listing{Tools: []*mcp.Tool{{Name: "a", Title: "Weather \u3164\u3164\u3164 \u1160\u1160\u1160 3f9ac2d81b", Description: "Forecast \u3164\u3164\u3164\u3164 for 3f9ac2d81b."}}}
	if got := s.describeServer(sv, l).Topics; !slices.Equal(got, []string{"forecast", "weather"}) {
		t.Errorf("topics are %q", got)
	}
}

func TestIsGeneric(t *testing.T) {
	for text, want := range map[string]bool{"GitHub": true, "GitHub MCP Server": true, "McpServer": true, "GitHub issues": false, "": true} {
		if got := isGeneric(text, "github"); got != want {
			t.Errorf("isGeneric(%q) is %t", text, got)
		}
	}
}

func TestUnknownServerErrorIsBounded(t *testing.T) {
	e := &unknownServerError{Name: "x"}
	for i := range 1000 {
		e.Names = append(e.Names, fmt.Sprintf("server-%d", i))
	}
	if text := e.Error(); len(text) > 500 || !strings.HasSuffix(text, " and 980 more") {
		t.Errorf("%d bytes: %q", len(text), text)
	}
}
