package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/provider"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/skill"
	"github.com/loadout-dev/loadout/tools"
)

// planned sets the server of a provider to the one it would get in its process.
func planned(told *[]provider.Context) func(context.Context, *catalog.Entry, *skill.Skill) (*upstream.Config, []string, error) {
	return func(_ context.Context, _ *catalog.Entry, s *skill.Skill) (*upstream.Config, []string, error) {
		start, err := provider.Plan(s, provider.Options{})
		if err != nil {
			return nil, nil, err
		}
		var c provider.Context
		if err := json.Unmarshal(start.Files["provider.json"], &c); err != nil {
			return nil, nil, err
		}
		*told = append(*told, c)
		return &upstream.Config{Type: upstream.Stdio, Command: "provider", Env: start.Env}, nil, nil
	}
}

const drawing = `
provider: {module: provider, class: Drawing}
config: {theme: light, size: 1}
tools: [{name: read_note, provider: drawing}]`

// A tool's provider is that of its skill, of a dependency, or of the program, in this
// order. The configuration of the declaring skill overrides that of the providing one.
func TestDependencyProvider(t *testing.T) {
	var reported []provider.Context
	w := newWorld(t, texts{
		"draw":   skillText("draw", drawing),
		"report": skillText("report", "dependencies: [draw]\nconfig: {theme: dark}\ntools: [{name: write_note, provider: drawing, config: {size: 3}}]"),
	}, "", func(o *tools.TestOptions, _ *world) { o.Provide = planned(&reported) })
	b := w.bring(t, "report")
	if got := namesOf(b.Tools); !slices.Contains(got, "report_drawing__write_note") || len(b.Problems) > 0 {
		t.Fatalf("tools %v, problems %v", got, b.Problems)
	}
	want := provider.Context{Skill: "draw", Module: "provider", Class: "Drawing", Config: reported[0].Config, Tools: []provider.Declared{{
		Tool: skill.Tool{Name: "write_note", Config: reported[0].Tools[0].Tool.Config}, Config: map[string]any{"theme": "dark", "size": 3.0},
	}}}
	if d := cmp.Diff([]provider.Context{want}, reported); d != "" {
		t.Error("the provider is reported otherwise (-want +got)\n" + d)
	}
	if owner := w.configs[0].Owner; !strings.HasPrefix(string(owner), "test/draw@sha256:") {
		t.Errorf("its process is of %s, want of the skill whose code it is", owner)
	}
	w.lose("draw") // whose code it is
	if left := w.Servers(); len(left) > 0 {
		t.Errorf("it is there without permission for the skill whose code it is: %v", left[0].Name)
	}
}

// W19: what no provider has is skipped with a warning; the rest of the skill is
// there, and so is its own provider with the tools that are its own.
func TestW19UnknownProviderIsSkipped(t *testing.T) {
	for _, tt := range []struct{ name, front, problem string }{
		{"nobody has it", "tools: [{name: paint, provider: nobody}]", "tool paint skipped: provider nobody not found; add the skill that has it to the dependencies"},
		{"no provider is named, as of agents of another system", "tools: [Read, Grep]", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, texts{"weibo": skillText("weibo", tt.front+"\nmcpServers: [other]")}, "mcpServers: {other: {command: other}}", nil)
			b := w.bring(t, "weibo")
			if got := namesOf(b.Tools); !slices.Equal(got, []string{"other__read_note", "other__write_note"}) {
				t.Errorf("tools %v", got)
			}
			if got := strings.Join(b.Problems, "; "); got != tt.problem {
				t.Errorf("problems %q, want %q", got, tt.problem)
			}
		})
	}
	t.Run("provider reports unknown tools itself", func(t *testing.T) {
		var reported []provider.Context
		w := newWorld(t, texts{"draw": skillText("draw", strings.TrimSuffix(drawing, "]")+", {name: other, provider: elsewhere}]")}, "", func(o *tools.TestOptions, _ *world) { o.Provide = planned(&reported) })
		w.bring(t, "draw")
		if len(reported) != 1 || len(reported[0].Tools) != 2 {
			t.Errorf("it got %+v", reported)
		}
	})
}

// A provider of the embedding program needs no approval, because it is not code of the
// skill. It gets the configuration with each call, and a skill shows only the tools that
// it declares.
func TestEmbedderProvider(t *testing.T) {
	charts := mcp.NewServer(&mcp.Implementation{Name: "charts", Version: "1"}, nil)
	for _, name := range []string{"bar", "pie", "erase"} {
		mcp.AddTool(charts, &mcp.Tool{Name: name, Annotations: &mcp.ToolAnnotations{ReadOnlyHint: name != "erase"}},
			func(_ context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint(req.Params.Meta[tools.SettingsKey])}}}, nil, nil
			})
	}
	w := newWorld(t, texts{"report": skillText("report", "config: {theme: dark}\ntools: [{name: bar, provider: charts, config: {width: 3}}, {name: round, provider: charts}, {name: erase, provider: charts}]")}, "",
		func(o *tools.TestOptions, w *world) {
			o.AcquirePermission = nil
			o.Providers = map[string]*mcp.Server{"charts": charts}
			w.dialer.Transports[upstream.Provider] = upstream.MemoryTransport(o.Providers)
		})
	b := w.bring(t, "report")
	if got := namesOf(b.Tools); !slices.Equal(got, []string{"report_charts__bar", "report_charts__erase"}) {
		t.Errorf("tools %v", got)
	}
	if len(b.Problems) != 1 || !strings.Contains(b.Problems[0], "round") {
		t.Errorf("problems %v, want one about the tool that it has not", b.Problems)
	}
	res, err := w.Call(t.Context(), &tools.Call{Name: "report_charts__bar"})
	if err != nil || res.Content[0].(*mcp.TextContent).Text != "map[theme:dark width:3]" {
		t.Errorf("%+v, %v", res, err)
	}
	var refused *loadout.RefusedError
	if _, err := w.Call(t.Context(), &tools.Call{Name: "report_charts__erase"}); !errors.As(err, &refused) || !refused.NeedsApproval {
		t.Errorf("a tool that changes something, as the skill configures it, without a user: %v", err)
	}
	if _, err := w.Call(t.Context(), &tools.Call{Name: "report_charts__pie"}); err == nil {
		t.Error("a tool that the skill does not declare was called")
	}
}

// Rules go by names: a server of a skill that has the name of one of another skill
// is left out, and neither shadows the other.
func TestSkillsCannotTakeEachOthersNames(t *testing.T) {
	w := newWorld(t, texts{"a_b": skillText("a_b", "mcpServers: {c: {command: good}}"), "a": skillText("a", "mcpServers: {b_c: {command: evil}, d: {command: d}}")}, "", nil)
	if b := w.bring(t, "a_b"); len(b.Tools) != 2 || len(b.Problems) > 0 {
		t.Fatalf("tools %v, problems %v", namesOf(b.Tools), b.Problems)
	}
	b := w.bring(t, "a")
	if got := namesOf(b.Tools); !slices.Equal(got, []string{"a_d__read_note", "a_d__write_note"}) {
		t.Errorf("tools %v", got)
	}
	if len(b.Problems) != 1 || !strings.Contains(b.Problems[0], "a_b_c skipped: skill a_b has a server of that name") {
		t.Errorf("problems %v", b.Problems)
	}
	for _, c := range w.configs {
		if c.Command == "evil" {
			t.Error("it was started")
		}
	}
}
