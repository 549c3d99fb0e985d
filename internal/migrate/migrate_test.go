package migrate_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/internal/migrate"
	"github.com/loadout-dev/loadout/internal/secrets"
	"github.com/loadout-dev/loadout/session"
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
	p := read(t, map[string]string{"many.json": `{"title": [` + strings.Repeat("[],", 300_000) + `[]]}`, "texts.json": `{"title": "` + strings.Repeat("[", 600_000) + `\""}`,
		"big.json": strings.Repeat(" ", 16<<20+1), "broken.json": `{"mcpServers": `, ".env": "X_MCP_SERVERS={"})
	want := map[string]string{"many.json": "too many JSON values", "big.json": "too large", "broken.json": "invalid file", ".env": "X_MCP_SERVERS is not valid JSON"}
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
		"history.json": `{"session_id": "task-1", "messages": [{"role": "user", "content": [{"type": "text", "text": "a</skill>b\u202ec"}, {"type": "image_url"}]}, {"role": "assistant", "content": "<think>hm</think>so", "loaded_skills": ["x"]}]}`,
		"again.json":   `[{"role": "user", "content": "a</skill>b\u202ec\n"}, {"role": "assistant", "content": "so", "loaded_skills": ["x"]}]`,
		"silent.json":  `[{"role": "assistant", "content": "so"}]`,
		"roles.json":   `{"users": [{"role": "admin", "name": "x"}]}`,
		"nested.json":  strings.Repeat(`{"data":`, 50) + `[{"role": "user", "content": "deep"}]` + strings.Repeat(`}`, 50),
	})
	if len(p.Conversations) != 1 || len(p.Lost) != 1 || p.Lost[0].From != "nested.json" {
		t.Fatalf("conversations %+v, lost %+v", p.Conversations, p.Lost)
	}
	m := p.Conversations[0].Messages
	if m[0].Text != "a‹/skill>bc" || m[1].Text != "so" || len(m[1].LoadedSkills) != 1 || m[1].LoadedSkills[0] != "x" {
		t.Errorf("messages %+v", m)
	}
}

// The servers of a skill stay with it, also if the source is the skill itself.
func TestServersOfTheTopSkillStayWithIt(t *testing.T) {
	p := read(t, map[string]string{"SKILL.md": "---\nname: x\n---\n", "mcp.json": `{"mcpServers": {"s": {"command": "x"}}}`})
	if len(p.Servers) > 0 {
		t.Errorf("servers %+v", p.Servers)
	}
}

// The answer is in result.value if the chain of a turn has no text.
func TestAnswerWithoutChain(t *testing.T) {
	for _, tt := range []struct{ name, chain, want string }{
		{"empty", `[]`, "the answer"},
		{"calls only", `[{"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "x"}}]}]`, "the answer"},
		{"text", `[{"role": "assistant", "content": "from the chain"}]`, "from the chain"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := read(t, map[string]string{"task.json": `{"subtasks": [{"role": "USER", "prompt": "q"}, {"role": "ASSISTANT", "result": {"value": "the answer", "loaded_skills": ["x"], "messages_chain": ` + tt.chain + `}}]}`})
			m := p.Conversations[0].Messages
			last := m[len(m)-1]
			if last.Text != tt.want || !slices.Equal(last.LoadedSkills, []string{"x"}) {
				t.Errorf("last message %+v, want %q", last, tt.want)
			}
		})
	}
}

func TestTextsOfTheReportAreShort(t *testing.T) {
	long := strings.Repeat("ä", 5000)
	p := read(t, map[string]string{
		"a.json":              `{"mcpServers": {"` + long + `": {"command": "${PLUGIN_ROOT}/x"}, "s` + long + `": {"command": "x", "env": {"T": "${` + strings.Repeat("A", 5000) + `}"}}}}`,
		long[:200] + "/x.env": long + "_MCP_SERVERS={",
		"b.json":              `{"title": "` + long + `", "messages": [{"role": "user", "content": "x"}]}`,
	})
	dir := t.TempDir()
	c, err := p.Compare(t.Context(), target(dir))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Items) != 4 {
		t.Errorf("%d items", len(c.Items))
	}
	for _, i := range c.Items {
		for _, text := range append(i.Details, i.Name, i.From) {
			if n := utf8.RuneCountInString(text); n > 201 || !utf8.ValidString(text) {
				t.Errorf("%s: text of %d characters: %.40q", i.Kind, n, text)
			}
		}
	}
}

func target(dir string) migrate.Target {
	return migrate.Target{ServersFile: filepath.Join(dir, "servers.yaml"), Secrets: secrets.New(filepath.Join(dir, "secrets")), Chats: migrate.ChatDir(filepath.Join(dir, "chats")), HasSkill: func(string) bool { return true },
		SkillName: func(name string) string { return name }}
}

// brokenSkills are skills that exist but cannot be read.
type brokenSkills struct{ session.Skills }

func (brokenSkills) Fetch(context.Context, string) ([]*session.Skill, error) {
	return nil, errors.New("permission denied")
}

// brokenLog is a log on a full disk.
type brokenLog struct{ session.Log }

func (brokenLog) Append(context.Context, ...*session.Event) error { return errors.New("disk full") }

// brokenChats are conversations on a full disk.
type brokenChats struct{ migrate.Conversations }

func (b brokenChats) Import(ctx context.Context, c *migrate.PastConversation, write func(session.Log) error) error {
	return b.Conversations.Import(ctx, c, func(log session.Log) error { return write(brokenLog{log}) })
}

// A skill that cannot be read stops no conversation, but a log that cannot be
// written does.
func TestConversationWithUnreadableSkill(t *testing.T) {
	p := read(t, map[string]string{
		"a.json": `[{"role": "user", "content": "one"}, {"role": "assistant", "content": "so", "loaded_skills": ["x"]}]`,
		"b.json": `[{"role": "user", "content": "two"}, {"role": "assistant", "content": "so"}]`,
		"s.json": `{"mcpServers": {"s": {"command": "x"}}}`,
	})
	for _, full := range []bool{true, false} {
		to := target(t.TempDir())
		if full {
			to.Chats = brokenChats{to.Chats}
		}
		to.OpenSession = func(ctx context.Context, log session.Log, id string) (*session.Session, error) {
			return session.Open(ctx, brokenSkills{}, &session.Options{Log: log, ID: id})
		}
		c, err := p.Compare(t.Context(), to)
		if err != nil {
			t.Fatal(err)
		}
		err = c.Apply(t.Context())
		if !slices.Equal(c.Written(migrate.Server), []string{"s"}) {
			t.Errorf("written servers %q", c.Written(migrate.Server))
		}
		names := c.Written(migrate.Conversation)
		if full {
			if err == nil || len(names) > 0 {
				t.Errorf("with a full disk: error %v, written %q", err, names)
			}
			continue
		}
		if err != nil || len(names) != 2 || len(c.Problems) != 1 || !strings.Contains(c.Problems[0], "permission denied") {
			t.Errorf("error %v, written %q, problems %q", err, names, c.Problems)
		}
		if c, err = p.Compare(t.Context(), to); err != nil || !c.IsEmpty() {
			t.Errorf("again: %v, items %+v", err, c.Items)
		}
	}
}
