package tools_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/tools"
)

// The outcome of a call is reported with the tool that was called, never with an unknown
// name. A pending approval is no outcome.
func TestOutcomes(t *testing.T) {
	var ended []string
	w := newWorld(t, texts{"x": skillText("x", "mcpServers: {a: {command: a}}")}, "mcpServers: {b: {command: b}}", func(o *tools.TestOptions, _ *world) {
		o.Rules, _ = policy.ParseRules([]string{"deny mcp.b.write_note", "ask x_a__write_note"})
		o.OnCallEnd = func(e tools.CallOutcome) {
			ended = append(ended, fmt.Sprintf("%q %q %q refused %t failed %t took %t", e.Tool, e.Skill, e.SkillKey, e.Refused, e.Failed, e.Duration > 0))
		}
	})
	w.bring(t, "x")
	for _, tt := range []struct {
		call tools.Call
		want []string
	}{
		{tools.Call{Name: "b__read_note", Arguments: json.RawMessage(`{"text":"x"}`)}, []string{`"b__read_note" "" "" refused false failed false took true`}},
		{tools.Call{Name: "x_a__read_note", Arguments: json.RawMessage(`{"text":"x"}`)}, []string{`"x_a__read_note" "x" "test/x" refused false failed false took true`}},
		{tools.Call{Name: "b__read_note"}, []string{`"b__read_note" "" "" refused false failed true took false`}}, // lacks its argument
		{tools.Call{Name: "b__write_note", Arguments: json.RawMessage(`{"text":"x"}`)}, []string{`"b__write_note" "" "" refused true failed false took false`}},
		{tools.Call{Name: "x_a__write_note", Arguments: json.RawMessage(`{"text":"x"}`)}, nil},
		{tools.Call{Name: "x_a__write_note", Arguments: json.RawMessage(`{"text":"x"}`), Approved: true}, []string{`"x_a__write_note" "x" "test/x" refused false failed false took true`}},
		{tools.Call{Name: "sk-secret"}, []string{`"" "" "" refused false failed true took false`}},
	} {
		ended = nil
		tt.call.Principal = policy.LocalUser()
		_, err := w.Call(t.Context(), &tt.call)
		if !slices.Equal(ended, tt.want) {
			t.Errorf("%s: told %q, want %q (%v)", tt.call.Name, ended, tt.want, err)
		}
	}
}
