package mcpserver_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/mcpserver"
)

// Clients that show a model only the structured content get text alone from the tools
// that deliver texts: no output schema, no structured content, and state, origin and
// digest in the text.
func TestClientsThatShowStructuredContentOnlyGetText(t *testing.T) {
	for _, client := range []string{"claude-code", "codex-mcp-client", "Visual Studio Code", "opencode"} {
		for _, how := range ways {
			t.Run(client+" "+how.String(), func(t *testing.T) {
				w := newWorld(t, setup{tree: basic()})
				c := w.beginAs(t, how, client)
				for tool, has := range outputSchemas(t, c) {
					if want := tool != "load_skill" && tool != "read_skill_file"; has != want {
						t.Errorf("%s has an output schema: %v, want %v", tool, has, want)
					}
				}
				text, content := c.tool("load_skill", args{"name": "pdf"})
				digest := textDigest(t, text)
				if content != nil || !strings.HasPrefix(text, "Skill pdf (from local) is loaded.") {
					t.Errorf("load_skill sends %q and %s", text, content)
				}
				text, content = c.tool("load_skill", args{"name": "pdf", "have": digest})
				if want := "Skill pdf (from local) is unchanged: what you hold, digest " + digest + ", is current."; content != nil || text != want {
					t.Errorf("load_skill of what the client has sends %q and %s, want %q", text, content, want)
				}
				text, content = c.tool("load_skill", args{"name": "pdff"})
				if content != nil || !strings.Contains(text, "did you mean pdf?") {
					t.Errorf("load_skill of an unknown skill sends %q and %s", text, content)
				}
				text, content = c.tool("read_skill_file", args{"skill": "pdf", "path": "references/forms.md"})
				file, note, _ := strings.Cut(text, "|")
				if content != nil || file != basic()["pdf/references/forms.md"] || !strings.HasPrefix(note, "[references/forms.md of skill pdf (from local), sha256 ") {
					t.Errorf("read_skill_file sends %q and %s", text, content)
				}
				if _, content = c.tool("search_skills", args{"query": "pdf"}); content == nil {
					t.Error("search_skills sends no structured content")
				}
			})
		}
	}
}

// Other clients get both, and the compatible tools of earlier systems do not depend on
// the client.
func TestOtherClientsGetTextAndStructuredContent(t *testing.T) {
	for client, compat := range map[string]string{"gemini-cli-mcp-client": "", "claude-code-like": "", "claude-code": "weknora"} {
		w := newWorld(t, setup{tree: basic(), options: mcpserver.Options{Compat: compat}})
		c := w.beginAs(t, ways[0], client)
		tool, arguments := "load_skill", args{"name": "pdf"}
		if compat != "" {
			tool, arguments = "read_skill", args{"skill_name": "pdf"}
		}
		if !outputSchemas(t, c)[tool] {
			t.Errorf("%s has no output schema for %s", tool, client)
		}
		if text, content := c.tool(tool, arguments); text == "" || content == nil {
			t.Errorf("%s sends %q and %s to %s", tool, text, content, client)
		}
	}
}

// A request without a session does not name its client before 2026-07-28, except in
// its User-Agent.
func TestUserAgentNamesTheClient(t *testing.T) {
	w := newWorld(t, setup{tree: basic()})
	url := w.serve(t, &mcpserver.HTTPOptions{Stateless: true}).URL + "/mcp"
	for agent, alone := range map[string]bool{"claude-code/2.1.197 (cli)": true, "codex-mcp-client/0.169.0": true, "Visual Studio Code - Insiders/1.120.0": true, "curl/8": false} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"load_skill","arguments":{"name":"pdf"}}}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Mcp-Protocol-Version": {legacy}, "User-Agent": {agent}}
		status, body, _ := post(t, req)
		if status != http.StatusOK || !strings.Contains(body, "is loaded") || strings.Contains(body, "structuredContent") == alone {
			t.Errorf("%s: %d %s", agent, status, body)
		}
	}
}

// beginAs is begin for a client with that name.
func (w *world) beginAs(t testing.TB, how way, client string) *wire {
	t.Helper()
	c := w.dial(t, how)
	c.name = client
	c.begin()
	return c
}

// outputSchemas reports for each tool whether it declares an output schema.
func outputSchemas(t testing.TB, c *wire) map[string]bool {
	t.Helper()
	var list struct {
		Tools []struct {
			Name         string
			OutputSchema json.RawMessage
		}
	}
	if err := json.Unmarshal(c.ok("tools/list", nil), &list); err != nil || len(list.Tools) == 0 {
		t.Fatalf("%d tools: %v", len(list.Tools), err)
	}
	all := map[string]bool{}
	for _, tool := range list.Tools {
		all[tool.Name] = tool.OutputSchema != nil
	}
	return all
}

// textDigest returns the digest in the text of a load.
func textDigest(t testing.TB, text string) string {
	t.Helper()
	_, digest, ok := strings.Cut(text, "Digest: ")
	if digest = strings.TrimSpace(digest); !ok || len(digest) != 12 {
		t.Fatalf("no digest in %q", text)
	}
	return digest
}
