package clientimport

import (
	"encoding/json"
	"testing"

	"github.com/loadout-dev/loadout/internal/upstream"
)

// The command of a project's server runs in the directory of the project, where
// its client starts it.
func TestProjectServersKeepDirectory(t *testing.T) {
	for _, tt := range []struct{ project, entry, want string }{
		{"/src/other", `{"command": "node", "args": ["x.js"]}`, "/src/other"},
		{"/src/other", `{"command": "node", "args": ["dir/x.js"]}`, "/src/other"},
		{"/src/other", `{"command": "./serve"}`, "/src/other"},
		{"/src/other", `{"command": "npx", "args": ["-y", "server"]}`, "/src/other"},
		{"/src/other", `{"command": "node", "args": ["x.js"], "cwd": "/elsewhere"}`, "/elsewhere"},
		{"/src/${odd}", `{"command": "node", "args": ["x.js"]}`, "/src/$${odd}"},
		{"/src/other", `{"url": "https://example.com/mcp"}`, ""},
		{"", `{"command": "node", "args": ["x.js"]}`, ""},
	} {
		var value any
		if err := json.Unmarshal([]byte(tt.entry), &value); err != nil {
			t.Fatal(err)
		}
		c, _, findings := parseClientServer("claude-code", "github", value, nil)
		if c == nil {
			t.Fatalf("%s: %v", tt.entry, findings)
		}
		if setWorkDir(c, tt.project); c.Dir != tt.want {
			t.Errorf("%s of %q: in %q, want %q", tt.entry, tt.project, c.Dir, tt.want)
		}
		if tt.project == "" || c.Type != upstream.Stdio {
			continue
		}
		if back, unset := c.Resolve(upstream.Variables{}); len(unset) > 0 || back.Dir == "" {
			t.Errorf("%s: %+v, %v", tt.entry, back, unset)
		}
	}
}
