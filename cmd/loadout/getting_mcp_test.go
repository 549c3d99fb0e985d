package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/remote/remotetest"
)

// client asks a loadout mcp that runs beside other commands.
type mcpClient struct {
	*testing.T
	*process
	in io.Writer
	id int
}

func (p *getter) connects() *mcpClient {
	p.Helper()
	server, in := startIn(p.T, p.home, "mcp")
	c := &mcpClient{T: p.T, process: server, in: in, id: 1}
	c.writes(initialize + "\n" + `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n")
	return c
}

func (c *mcpClient) writes(text string) {
	c.Helper()
	if _, err := io.WriteString(c.in, text); err != nil {
		c.Fatal(err)
	}
}

// calls calls a tool and returns the text and the structured content of its result.
func (c *mcpClient) calls(tool string, args map[string]any) (text string, structured map[string]any) {
	c.Helper()
	c.id++
	c.writes(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`+"\n", c.id, tool, jsonOf(args)))
	for {
		line, err := c.out.ReadString('\n')
		if err != nil {
			c.Fatal(err)
		}
		if !strings.Contains(line, fmt.Sprintf(`"id":%d,`, c.id)) {
			continue
		}
		var answer struct {
			Result struct {
				Content []struct{ Text string }
				Values  map[string]any `json:"structuredContent"`
			}
		}
		if err := json.Unmarshal([]byte(line), &answer); err != nil {
			c.Fatalf("%v: %s", err, line)
		}
		for _, part := range answer.Result.Content {
			text += part.Text + "\n"
		}
		return text, answer.Result.Values
	}
}

// until calls a tool until the text of its result has a part: files are watched.
func (c *mcpClient) until(part, tool string, args map[string]any) (string, map[string]any) {
	c.Helper()
	text := ""
	for range 1500 {
		var values map[string]any
		if text, values = c.calls(tool, args); strings.Contains(text, part) {
			return text, values
		}
		time.Sleep(20 * time.Millisecond)
	}
	c.Fatalf("%s %v has no %q: %s", tool, args, part, text)
	return "", nil
}

func TestAddWhileServerRuns(t *testing.T) {
	g := remotetest.NewGit(t)
	g.Commit(map[string]string{"tides/SKILL.md": plainSkill("tides", "First of all."), "tides/high.sh": "echo one\n"})
	p := newGetter(t)
	c := p.connects()
	tides := map[string]any{"name": "tides"}
	if text, _ := c.calls("load_skill", tides); strings.Contains(text, "First of all.") {
		t.Fatalf("before it is there it is %s", text)
	}
	p.types(0, "add", g.URL)
	_, loaded := c.until("First of all.", "load_skill", tides)
	digest, _ := loaded["digest"].(string)
	held := map[string]any{"name": "tides", "have": digest}
	if _, again := c.calls("load_skill", held); again["state"] != "already" {
		t.Errorf("a load of what is held returned %v", again["state"])
	}
	script := map[string]any{"skill": "tides", "script": "high.sh"}
	c.until("not approved", "run_skill_script", script)
	p.types(0, "approve", "tides", "--yes")
	if hasSandbox() == nil {
		c.until("one", "run_skill_script", script)
	}

	g.Commit(map[string]string{"tides/SKILL.md": plainSkill("tides", "Second to none."), "tides/high.sh": "echo two\n"})
	p.types(0, "update")
	_, newer := c.until("Second to none.", "load_skill", held)
	if newer["state"] != "loaded" || newer["digest"] == digest {
		t.Errorf("for a newer one got %v, %v", newer["state"], newer["digest"])
	}
	if text, _ := c.calls("read_skill_file", map[string]any{"skill": "tides", "path": "high.sh", "digest": digest}); strings.Contains(text, "echo two") || !strings.Contains(text, "changed") {
		t.Errorf("for a file of what was before got %s", text)
	}
	c.until("changed since it was approved", "run_skill_script", script)
	p.types(0, "remove", "tides")
	c.until("not found", "load_skill", tides)
}
