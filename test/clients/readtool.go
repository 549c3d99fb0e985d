package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// checkReadTool runs Codex without a user, so that Codex rejects every call that
// needs an approval. Loadout provides the tools of a server that the user
// configured. checkReadTool checks that read_tool returns the result of a
// read-only tool to the model, and that call_tool is not called.
func checkReadTool(loadout, modules string) error {
	dir, err := os.MkdirTemp("", "clients-readtool-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	self, err := os.Executable()
	if err != nil {
		return err
	}
	servers := filepath.Join(dir, "servers.json")
	if err := writeJSON(servers, object{"mcpServers": object{"probe": object{"command": self, "args": []string{"probe"}}}}); err != nil {
		return err
	}
	r := &recorder{client: clients[1], loadout: loadout, modules: modules}
	s := scenario{server: "loadout", command: []string{loadout, "mcp", "--mcp-config", servers}, tool: "read_tool", arguments: `{"name":"probe__` + readingTool + `","arguments":{}}`}
	read, err := r.run(s)
	if err != nil {
		return err
	}
	if bodies := bytes.Join(read.bodies, nil); !bytes.Contains(bodies, []byte(resultStructured)) {
		return fmt.Errorf("read_tool did not return %q to the model: %s", resultStructured, bodies[max(0, len(bodies)-2000):])
	}
	s.tool, s.arguments = "call_tool", `{"name":"probe__`+destructiveTool+`","arguments":{}}`
	called, err := r.run(s)
	if err != nil {
		return err
	}
	switch bodies := bytes.Join(called.bodies, nil); {
	case called.reached:
		return errors.New("call_tool reached Loadout without a user")
	case !bytes.Contains(bodies, []byte("approval policy is never")):
		return fmt.Errorf("call_tool was not rejected by Codex: %s", bodies[max(0, len(bodies)-2000):])
	}
	fmt.Println("read_tool: called by codex exec without a user; call_tool is rejected")
	return nil
}
