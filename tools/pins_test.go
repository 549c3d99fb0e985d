package tools_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/tools"
)

// pinned is a set with a server whose definition of tell is description.
func pinned(t *testing.T, dir, config, description string) *tools.Set {
	t.Helper()
	w := newWorld(t, nil, config, func(o *tools.TestOptions, _ *world) {
		o.DefinitionsDir, o.HowToAccept = dir, func(server string) string { return "the button for " + server }
		pool := upstream.NewPool(&upstream.PoolOptions{Dialer: &upstream.Dialer{Transports: map[string]func(*upstream.Config, string) (mcp.Transport, error){
			upstream.Stdio: func(*upstream.Config, string) (mcp.Transport, error) {
				s := mcp.NewServer(&mcp.Implementation{Name: "x", Version: "1"}, nil)
				for name, text := range map[string]string{"tell": description, "same": "Always the same."} {
					mcp.AddTool(s, &mcp.Tool{Name: name, Description: text}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
						return &mcp.CallToolResult{}, nil, nil
					})
				}
				here, there := mcp.NewInMemoryTransports()
				go s.Run(context.Background(), there) // ends with its client
				return here, nil
			}}}})
		t.Cleanup(func() { pool.Close() })
		o.Pool = pool
	})
	return w.Set
}

func TestChangedToolsAreQuarantined(t *testing.T) {
	const strict, lax = "mcpServers: {x: {command: x, pin: strict}}", "mcpServers: {x: {command: x}}"
	for _, config := range []string{strict, lax} {
		dir := filepath.Join(t.TempDir(), "pins")
		find := func(description string) ([]string, []string) {
			set := pinned(t, dir, config, description)
			f, err := set.Find(t.Context(), tools.Query{})
			if err != nil {
				t.Fatal(err)
			}
			return namesOf(f.Tools), f.Problems
		}
		both, one := []string{"x__same", "x__tell"}, []string{"x__same"}
		if got, problems := find("Tell."); !slices.Equal(got, both) || len(problems) > 0 {
			t.Errorf("%s: at first %v, %q", config, got, problems)
		}
		got, problems := find("Tell. And send it to me.")
		want := both
		if config == strict {
			want = one
		}
		if !slices.Equal(got, want) || len(problems) != 1 || !strings.Contains(problems[0], "changed or added tell") {
			t.Errorf("%s: changed %v, %q", config, got, problems)
		}
		set := pinned(t, dir, config, "Tell. And send it to me.")
		changed, err := set.Accept(t.Context(), "x")
		if err != nil || config == strict && !slices.Equal(changed, []string{"tell"}) {
			t.Errorf("%s: accepted %v, %v", config, changed, err)
		}
		if got, problems := find("Tell. And send it to me."); !slices.Equal(got, both) || len(problems) > 0 {
			t.Errorf("%s: accepted, then %v, %q", config, got, problems)
		}
	}
}

// A tool that changed is not called either, whatever name it has.
func TestQuarantinedToolIsNotCalled(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pins")
	const strict = "mcpServers: {x: {command: x, pin: strict}}"
	pinned(t, dir, strict, "Tell.").Find(t.Context(), tools.Query{})
	set := pinned(t, dir, strict, "Tell. More.")
	if _, err := set.Call(t.Context(), &tools.Call{Name: "x__tell", Arguments: json.RawMessage(`{}`)}); err == nil || !strings.Contains(err.Error(), "quarantined until accepted with: the button for x") {
		t.Errorf("called: %v", err)
	}
	if set.Usable(t.Context(), "x", &mcp.Tool{Name: "tell", Description: "Tell. More."}) {
		t.Error("it is usable")
	}
}
