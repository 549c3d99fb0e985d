package hub_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/hub"
	"github.com/loadout-dev/loadout/internal/sandbox/native"
	"github.com/loadout-dev/loadout/internal/sandbox/stage/stagetest"
)

// pythonServer is an MCP server with one tool, which reports its environment.
const pythonServer = `
import json, os, sys
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m:
        continue
    if m["method"] == "initialize":
        r = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "py", "version": "1"}}
    elif m["method"] == "tools/list":
        saw = "sees the host" if os.path.exists("/etc/shadow") else "sees nothing"
        r = {"tools": [{"name": "look", "description": saw, "inputSchema": {"type": "object"}}]}
    elif m["method"] == "ping":
        r = {}
    else:
        print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "error": {"code": -32601, "message": "no"}}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
`

// W25: a command is tried in the sandbox, while it is approved.
func TestW25CommandsAreTestedInTheSandbox(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("no python3")
	}
	var stage string
	code := stagetest.Run(func() int {
		box := native.New(&native.Options{Stage: stage})
		if _, err := box.Probe(t.Context()); err != nil {
			t.Skipf("no sandbox here: %v", err)
		}
		_, root, _ := rootAndAda(t, hub.Options{Sandbox: box})
		root.send(t, "PUT", "/api/v1/kinds/MCPServer/default/py", map[string]any{"kind": "MCPServer", "metadata": map[string]string{"name": "py"},
			"spec": map[string]any{"command": "python3", "args": []string{"-c", pythonServer}}}).want(t, 200)
		try := map[string]string{"kind": "MCPServer", "name": "py"}
		if r := root.test(t, try); r.Success || !strings.Contains(r.Error, "it is pending") {
			t.Errorf("%+v", r)
		}
		var list struct{ Items []struct{ Digest string } }
		root.send(t, "GET", "/api/v1/servers/MCPServer/default/py", nil).want(t, 200).into(t, &list)
		decide := func(decision string) {
			root.send(t, "PUT", "/api/v1/servers/MCPServer/default/py/review", map[string]string{"digest": list.Items[0].Digest, "decision": decision}).want(t, 204)
		}
		decide("approved")
		if r := root.test(t, try); !r.Success || len(r.Tools) != 1 || r.Tools[0].Name != "look" || r.Tools[0].Description != "sees nothing" {
			t.Errorf("%+v", r)
		}
		decide("rejected")
		if r := root.test(t, try); r.Success || !strings.Contains(r.Error, "it is rejected") {
			t.Errorf("%+v", r)
		}
		return 0
	}, &stage)
	if code != 0 {
		t.Error("no stage")
	}
}
