package main

import (
	"encoding/json"
	"testing"

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
