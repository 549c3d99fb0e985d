package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A rule that is written while a server runs decides on its next call.
func TestChangedRulesApplyWhileRunning(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("no python3")
	}
	for what, args := range map[string][]string{"meta": nil, "direct": {"--expose", "direct"}} {
		t.Run(what, func(t *testing.T) {
			c := &checkout{repo: t.TempDir(), home: t.TempDir()}
			c.write(t, "server.py", probeServer)
			c.write(t, "servers.json", `{"mcpServers": {"own": {"command": "python3", "args": ["`+filepath.ToSlash(filepath.Join(c.repo, "server.py"))+`"]}}}`)
			file := filepath.Join(c.home, ".config", "loadout", "loadout.yaml")
			configure := func(text string) {
				if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				if err := os.Rename(file+".new", file); err != nil {
					t.Fatal(err)
				}
			}
			s := c.connect(t, append(args, "--mcp-config", filepath.Join(c.repo, "servers.json"))...)
			call := func() (string, bool) {
				if args == nil {
					return c.probe(t, s, "own")
				}
				res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "own__probe", Arguments: map[string]any{"home": "x"}})
				if err != nil {
					t.Fatal(err)
				}
				return res.Content[0].(*mcp.TextContent).Text, !res.IsError
			}
			if text, ok := call(); !ok {
				t.Fatalf("before: %s", text)
			}
			configure("policy: {rules: [deny mcp.own.*]}\n")
			if text, ok := call(); ok || !strings.Contains(text, "is not allowed") {
				t.Errorf("denied: %s", text)
			}
			configure("policy: {rules: [deny mcp.other.thing]}\n")
			if text, ok := call(); !ok {
				t.Errorf("denied no more: %s", text)
			}
			configure("policy: {rules: nonsense: }\n")
			if text, ok := call(); ok {
				t.Errorf("with a configuration that cannot be read: %s", text)
			}
		})
	}
}
