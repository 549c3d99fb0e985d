package migrate_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/loadout-dev/loadout/internal/migrate"
)

// files returns a file system with the given contents.
func files(contents map[string]string) fstest.MapFS {
	out := fstest.MapFS{}
	for name, text := range contents {
		out[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return out
}

func read(t *testing.T, contents map[string]string) *migrate.Plan {
	t.Helper()
	p, err := migrate.Read(t.Context(), migrate.Wegent, files(contents))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestServersOfWegent(t *testing.T) {
	const server = `{"mcpServers": {"s": {"command": "x"}}}`
	for _, tt := range []struct {
		name, file, text string
		want             int
	}{
		{"top-level map", "a.json", server, 1},
		{"YAML", "a.yml", "mcpServers:\n  s: {command: x}\n", 1},
		{"Ghost", "k.yaml", "kind: Ghost\nspec:\n  mcpServers:\n    s: {command: x}\n", 1},
		{"file of servers", "sub/.mcp.json", `{"s": {"command": "x"}}`, 1},
		{"variable", ".env.example", "export CHAT_MCP_SERVERS=" + server, 1},
		{"empty variable", ".env", "CHAT_MCP_SERVERS={}", 0},
		{"names only", "a.json", `{"mcpServers": ["s"]}`, 0},
		{"text of a page", "en.json", `{"settings": {"mcpServers": "MCP servers"}}`, 0},
		{"in a skill", "x/mcp.json", server, 0},
		{"in a test", "app/tests/mcp.json", server, 0},
		{"too deep", strings.Repeat("d/", 40) + "mcp.json", server, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := read(t, map[string]string{tt.file: tt.text, "x/SKILL.md": "---\nname: x\n---\n"})
			if len(p.Servers) != tt.want || len(p.Lost) > 0 {
				t.Errorf("servers %+v, lost %+v", p.Servers, p.Lost)
			}
		})
	}
}

func TestSameServerOfTwoFilesIsOne(t *testing.T) {
	p := read(t, map[string]string{"a.json": `{"mcpServers": {"s": {"command": "x"}}}`, "b.yaml": "mcpServers: {s: {command: x}}"})
	if len(p.Servers) != 1 || p.Servers[0].From != "a.json" {
		t.Errorf("servers %+v", p.Servers)
	}
}

func TestUnreadableFilesAreLost(t *testing.T) {
	p := read(t, map[string]string{"big.json": strings.Repeat(" ", 16<<20+1), "broken.json": `{"mcpServers": `, ".env": "X_MCP_SERVERS={"})
	want := map[string]string{"big.json": "too large", "broken.json": "invalid file", ".env": "X_MCP_SERVERS is not valid JSON"}
	if len(p.Lost) != len(want) {
		t.Fatalf("lost %+v", p.Lost)
	}
	for _, i := range p.Lost {
		if i.Outcome != migrate.Lost || !strings.Contains(i.Details[0], want[i.From]) {
			t.Errorf("lost %+v, want %q", i, want[i.From])
		}
	}
}

func TestUnknownSystem(t *testing.T) {
	if _, err := migrate.Read(t.Context(), "notes", files(nil)); err == nil {
		t.Error("read an unknown system")
	}
}

func TestConversationsOfWegent(t *testing.T) {
	p := read(t, map[string]string{
		"history.json": `{"session_id": "task-1", "messages": [{"role": "user", "content": [{"type": "text", "text": "a</skill>b‮c"}, {"type": "image_url"}]}, {"role": "assistant", "content": "<think>hm</think>so", "loaded_skills": ["x"]}]}`,
		"again.json":   `[{"role": "user", "content": "a</skill>b‮c\n"}, {"role": "assistant", "content": "so", "loaded_skills": ["x"]}]`,
		"silent.json":  `[{"role": "assistant", "content": "so"}]`,
		"roles.json":   `{"users": [{"role": "admin", "name": "x"}]}`,
		"nested.json":  strings.Repeat(`{"data":`, 50) + `[{"role": "user", "content": "deep"}]` + strings.Repeat(`}`, 50),
	})
	if len(p.Conversations) != 1 || len(p.Lost) > 0 {
		t.Fatalf("conversations %+v, lost %+v", p.Conversations, p.Lost)
	}
	m := p.Conversations[0].Messages
	if m[0].Text != "a‹/skill>bc" || m[1].Text != "so" || len(m[1].LoadedSkills) != 1 || m[1].LoadedSkills[0] != "x" {
		t.Errorf("messages %+v", m)
	}
}
