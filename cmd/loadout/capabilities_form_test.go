package main

import (
	"encoding/json"
	"testing"

	"github.com/loadout-dev/loadout/internal/usage"
	"github.com/loadout-dev/loadout/tools"
)

// Programs parse the output, so its lists are never null.
func TestCapabilitiesForm(t *testing.T) {
	for want, all := range map[string][]tools.Capability{
		`{"available_skills":[],"available_mcp_tools":[],"planning_hints":{"capabilities":[]},"problems":[]}`: nil,
		`{"available_skills":["pdf"],"available_mcp_tools":["c__send"],"planning_hints":{"capabilities":[` +
			`{"id":"skill.pdf","kind":"skill","name":"pdf","description":"","input_schema":{},"output_schema":{},"safety_level":"UNKNOWN","permission":"","when_to_use":"","requires_approval":false},` +
			`{"id":"mcp.c.send","kind":"mcp","name":"c__send","description":"","input_schema":{},"output_schema":{},"safety_level":"UNKNOWN","permission":"","when_to_use":"","requires_approval":true}]},"problems":[]}`: {
			{ID: "skill.pdf", Kind: "skill", Name: "pdf", InputSchema: json.RawMessage(`{}`), OutputSchema: json.RawMessage(`{}`)},
			{ID: "mcp.c.send", Kind: "mcp", Name: "c__send", InputSchema: json.RawMessage(`{}`), OutputSchema: json.RawMessage(`{}`), RequiresApproval: true},
		},
	} {
		b, err := json.Marshal(newCapabilitiesOutput(all, nil))
		if err != nil || string(b) != want {
			t.Errorf("%s, %v\nwant %s", b, err, want)
		}
	}
}

// Latency hints have the recorded times of tools and scripts.
func TestMeasuredHints(t *testing.T) {
	report := &usage.Report{
		Tools:   []usage.Tool{{Name: "c__send", Calls: 4, Measured: 3, P50: 120, P95: 4000}, {Name: "pdf", Calls: 1, Measured: 1, P50: 1}},
		Scripts: []usage.Tool{{Name: "run.sh", Key: "user/pdf", Calls: 1, Measured: 1, P50: 8.25, P95: 8.25}, {Name: "other.sh", Key: "user/other", Calls: 1, Measured: 1, P50: 1}},
	}
	for want, k := range map[string]tools.Capability{
		"run.sh p50 8.2 ms, p95 8.2 ms over 1 run": {Kind: "skill", Name: "pdf", Key: "user/pdf"},
		"":                                     {Kind: "skill", Name: "csv", Key: "user/csv"},
		"p50 120 ms, p95 4000 ms over 3 calls": {Kind: "mcp", Name: "c__send", LatencyHint: "12.5ms"},
		"7ms":                                  {Kind: "mcp", Name: "c__never", LatencyHint: "7ms"},
	} {
		if addLatency(&k, report); k.LatencyHint != want {
			t.Errorf("got %q, want %q", k.LatencyHint, want)
		}
	}
}
