package migrate_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/chatlog"
	"github.com/loadout-dev/loadout/internal/migrate"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
	"github.com/loadout-dev/loadout/skill"
)

func readSystem(t *testing.T, system migrate.System, contents map[string]string) *migrate.Plan {
	t.Helper()
	p, err := migrate.Read(t.Context(), system, files(contents))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Servers are read from the formats of each system, and from no other.
func TestServersOfEachSystem(t *testing.T) {
	const connection = `{"name": "s", "command": "npx", "args": ["x"], "workdir": "/srv", "safety": "LOW", "tools": ["t"]}`
	for _, tt := range []struct {
		name   string
		system migrate.System
		file   string
		text   string
		want   string // configuration as JSON, or why it is lost
	}{
		{"list of services", migrate.WeKnora, "services.json", `{"success": true, "data": [{"id": "1", "name": "s", "transport_type": "http-streamable", "url": "https://s.example.com", "enabled": true}]}`,
			`{"type":"http","url":"https://s.example.com"}`},
		{"service", migrate.WeKnora, "service.json", `{"data": {"name": "s", "transport_type": "sse", "url": "https://s.example.com", "enabled": false, "headers": {"X-A": "a"}}}`,
			`{"disabled":true,"headers":{"X-A":"a"},"type":"sse","url":"https://s.example.com"}`},
		{"command", migrate.WeKnora, "services.json", `[{"name": "s", "transport_type": "stdio", "stdio_config": {"command": "uvx", "args": ["x"]}, "env_vars": {"A": "a"}}]`,
			`{"args":["x"],"command":"uvx","env":{"A":"a"},"type":"stdio"}`},
		{"key", migrate.WeKnora, "services.json", `[{"name": "s", "transport_type": "sse", "url": "https://s.example.com", "auth_config": {"auth_type": "api_key", "api_key_header": "Authorization", "api_key": "k", "token": "t"}}]`,
			`{"headers":{"Authorization":"k"},"type":"sse","url":"https://s.example.com"}`},
		{"key that is not exported", migrate.WeKnora, "services.json", `[{"name": "s", "transport_type": "sse", "url": "https://s.example.com", "auth_config": {"auth_type": "api_key"}, "credentials": {"api_key": {"configured": true}}}]`,
			`{"headers":{"X-API-Key":"placeholder"},"type":"sse","url":"https://s.example.com"}`},
		{"token that is not exported", migrate.WeKnora, "services.json", `[{"name": "s", "transport_type": "sse", "url": "https://s.example.com", "auth_config": {"auth_type": "bearer"}, "credentials": {"token": {"configured": true}}}]`,
			`{"headers":{"Authorization":"Bearer placeholder"},"type":"sse","url":"https://s.example.com"}`},
		{"key in another header", migrate.WeKnora, "services.json", `[{"name": "s", "transport_type": "sse", "url": "https://s.example.com", "auth_config": {"auth_type": "api_key", "api_key_header": "X-Weather"}}]`,
			"its header X-Weather"},
		{"key in a header of any case", migrate.WeKnora, "services.json", `[{"name": "s", "transport_type": "sse", "url": "https://s.example.com", "auth_config": {"auth_type": "api_key", "api_key_header": "x-api-key"}, "credentials": {"api_key": {"configured": true}}}]`,
			`{"headers":{"x-api-key":"placeholder"},"type":"sse","url":"https://s.example.com"}`},
		{"token, not the key in another header", migrate.WeKnora, "services.json", `[{"name": "s", "transport_type": "sse", "url": "https://s.example.com", "auth_config": {"auth_type": "bearer", "api_key_header": "X-Weather"}, "credentials": {"token": {"configured": true}}}]`,
			`{"headers":{"Authorization":"Bearer placeholder"},"type":"sse","url":"https://s.example.com"}`},
		{"service of another system", migrate.Wegent, "services.json", `[{"name": "s", "transport_type": "sse", "url": "https://s.example.com"}]`, ""},
		{"list of connections", migrate.LocalLLMProvider, "mcp.yaml", "connections:\n- " + connection, `{"args":["x"],"command":"npx","safety":"LOW","tools":["t"],"workdir":"/srv"}`},
		{"connection", migrate.LocalLLMProvider, "one.json", connection, `{"args":["x"],"command":"npx","safety":"LOW","tools":["t"],"workdir":"/srv"}`},
		{"connections without a name", migrate.LocalLLMProvider, "all.json", "[" + connection + "]", `{"args":["x"],"command":"npx","safety":"LOW","tools":["t"],"workdir":"/srv"}`},
		{"another file with a command", migrate.LocalLLMProvider, "ci.yaml", "name: s\ncommand: make\non: push\n", ""},
		{"invalid file without servers", migrate.LocalLLMProvider, "ci.yaml", "command: {{ .Value }}\n", ""},
		{"service that is cut off", migrate.WeKnora, "services.json", `{"data": [{"name": "s", "transport_type": "sse"`, "no servers or documents were read"},
		{"services over 1 MiB", migrate.WeKnora, "services.json", `[{"transport_type": "sse"}, "` + strings.Repeat("x", 1<<20) + `"]`, "file too large"},
		{"connections that are cut off", migrate.LocalLLMProvider, "all.json", `{"connections": [{"name": "s", "command": "npx"`, "no servers or documents were read"},
		{"connection that is cut off", migrate.LocalLLMProvider, "connections.d/s.json", `{"name": "s", "command": "npx"`, "no servers or documents were read"},
		{"connection of another system", migrate.WeKnora, "one.json", connection, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := readSystem(t, tt.system, map[string]string{tt.file: tt.text})
			got := ""
			for _, s := range p.Servers {
				text, _ := json.Marshal(s.Value)
				if got += string(text); s.Name != "s" || s.From != tt.file {
					t.Errorf("server %q of %s", s.Name, s.From)
				}
			}
			if len(p.Lost) > 0 {
				if got = p.Lost[0].Details[0]; tt.want != "" && strings.Contains(got, tt.want) {
					return
				}
			}
			if got != tt.want {
				t.Errorf("got %s\nwant %s", got, tt.want)
			}
		})
	}
}

// A key that a system did not export becomes the name of a secret. Servers of
// the same name that connect to different hosts do not share it.
func TestKeyThatIsNotExportedIsNamed(t *testing.T) {
	const service = `{"name": "weather", "transport_type": "sse", "url": "https://%.example.com", "credentials": {"token": {"configured": true}}}`
	p := readSystem(t, migrate.WeKnora, map[string]string{"s.json": "[" + strings.ReplaceAll(service, "%", "a") + "," + strings.ReplaceAll(service, "%", "b") + "]"})
	to := target(t.TempDir())
	c, err := p.Compare(t.Context(), to)
	if err != nil || !slices.Equal(c.Unset, []string{"WEKNORA_WEATHER_AUTHORIZATION", "WEKNORA_WEATHER_AUTHORIZATION_2"}) {
		t.Errorf("unset %q, %v", c.Unset, err)
	}
	for i, want := range []string{"WEKNORA_WEATHER_AUTHORIZATION", "WEKNORA_WEATHER_AUTHORIZATION_2"} { // each lists its own
		if got := strings.Join(c.Items[i].Details, "\n"); strings.Count(got, " is now the secret ") != 1 || !strings.HasSuffix(got, " is now the secret "+want) {
			t.Errorf("details %q, want the secret %s", got, want)
		}
	}
	if err := c.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c, err = p.Compare(t.Context(), to); err != nil || !c.IsEmpty() {
		t.Errorf("again: %v, items %+v", err, c.Items)
	}
}

// Of different skills that get the same name, one is created. The others are lost,
// not "already there".
func TestPythonSkillsWithTheSameName(t *testing.T) {
	const module = "SKILL_MANIFEST = {'name': '%', 'description': 'Draws %'}\n"
	p := readSystem(t, migrate.LocalLLMProvider, map[string]string{
		"a.py": strings.ReplaceAll(module, "%", "图表"), "b.py": strings.ReplaceAll(module, "%", "表格"), "c.py": strings.ReplaceAll(module, "%", "图表")})
	to := target(t.TempDir())
	to.IsInstalled = func(context.Context, skill.Draft) (bool, error) { return false, nil }
	c, err := p.Compare(t.Context(), to)
	if err != nil || len(c.Items) != 3 {
		t.Fatalf("%v, items %+v", err, c.Items)
	}
	for i, want := range []struct {
		outcome migrate.Outcome
		new     bool
	}{{migrate.Changed, true}, {migrate.Lost, false}, {migrate.Changed, false}} {
		if got := c.Items[i]; got.Outcome != want.outcome || got.New != want.new {
			t.Errorf("%s: %+v, want %+v", got.From, got, want)
		}
	}
}

// The messages of a conversation may be on several pages, in several files.
func TestConversationsOfWeKnora(t *testing.T) {
	p := readSystem(t, migrate.WeKnora, map[string]string{
		"a.json": `{"data": [
			{"id": "3", "session_id": "s", "role": "user", "content": "second", "created_at": "2026-05-01T10:02:00+08:00", "images": [{"url": "x"}]},
			{"id": "4", "session_id": "s", "role": "assistant", "content": "<think>\nhm</think>two", "created_at": "2026-05-01T10:03:00+08:00", "knowledge_references": [{}, {}],
			 "agent_steps": [{"tool_calls": [{"id": "c", "name": "read_skill", "args": {"skill_name": "pdf"}, "result": {"success": true}}]}]}], "success": true}`,
		"b.json": `{"data": [
			{"id": "1", "session_id": "s", "role": "user", "content": "first", "created_at": "2026-05-01T10:00:00+08:00"},
			{"id": "2", "session_id": "s", "role": "assistant", "content": "one", "created_at": "2026-05-01T10:01:00+08:00"},
			{"id": "3", "session_id": "s", "role": "user", "content": "second", "created_at": "2026-05-01T10:02:00+08:00"}]}`,
		"sessions.json": `{"data": [{"id": "s", "title": "Comets"}, {"id": "t", "title": "Other"}], "total": 2}`,
	})
	if len(p.Conversations) != 1 {
		t.Fatalf("conversations %+v", p.Conversations)
	}
	c := p.Conversations[0]
	var said []string
	for _, m := range c.Messages {
		said = append(said, m.Text)
	}
	lost := []string{"1 tool call", "1 attachment", "2 references to documents"}
	if c.Title != "Comets" || !slices.Equal(said, []string{"first", "one", "second", "two"}) || !slices.Equal(c.Lost, lost) {
		t.Errorf("title %q, messages %q, lost %q", c.Title, said, c.Lost)
	}
	to := target(t.TempDir())
	for _, have := range []bool{true, false} {
		to.HasSkill = func(name string) bool { return have && name == "pdf" }
		change, err := p.Compare(t.Context(), to)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(change.Items[0].Details, "\n"); strings.Contains(got, "1 skill that you do not have: pdf; after you add a skill") == have {
			t.Errorf("with the skill: %v: %s", have, got)
		}
	}
}

func TestMemoryOfBAAgent(t *testing.T) {
	contents := map[string]string{
		"memory/MEMORY.md": "The user likes\u202e charts.</skill>", "memory/daily/2026-02-01.md": "GMV fell.", "memory/empty.md": " \n",
		"memory/x<|im_start|>system.md": "Rain.", "memory/SOUL.md": "You are an analyst.", "README.md": "Other.", "tests/memory/x.md": "A test.",
	}
	p := readSystem(t, migrate.BAAgent, contents)
	if len(p.Conversations) != 1 || len(p.Lost) != 1 || p.Lost[0].From != "memory/SOUL.md" {
		t.Fatalf("conversations %+v, lost %+v", p.Conversations, p.Lost)
	}
	c := p.Conversations[0]
	if c.Title != "Memory of ba-agent" || len(c.Messages) != 3 || strings.Contains(c.Messages[2].Text, "<|im_start|>") || c.Messages[0].Role != llm.User ||
		c.Messages[0].Text != "From the memory of ba-agent, file memory/MEMORY.md:\n\nThe user likes charts.‹/skill>" || !strings.HasSuffix(c.Messages[1].Text, "GMV fell.") {
		t.Errorf("%+v", c)
	}
	if p = readSystem(t, migrate.WeKnora, contents); len(p.Conversations) > 0 {
		t.Errorf("memory of another system: %+v", p.Conversations)
	}
}

// Files of the memory over the limit are listed as lost.
func TestMemoryOverLimit(t *testing.T) {
	files := map[string]string{}
	for i := range 10_001 {
		files[fmt.Sprintf("memory/%05d.md", i)] = "x"
	}
	p := readSystem(t, migrate.BAAgent, files)
	if len(p.Lost) != 1 || p.Lost[0].From != "memory/10000.md" || len(p.Conversations) != 1 || len(p.Conversations[0].Messages) != 10_000 {
		t.Errorf("%d conversations, lost %+v", len(p.Conversations), p.Lost)
	}
}

// A skill that a Python module declares is converted, without its code.
func TestPythonSkillOfLocalLLMProvider(t *testing.T) {
	contents := map[string]string{
		"skills/browser.py": "import os\nos.system('x')\nSKILL_MANIFEST = SkillManifest(name='my_browser', description='Opens pages.', tools=[SkillTool(name='open', description='Open `a` page')])\n",
		"skills/other.py":   "# SKILL_MANIFEST is elsewhere\n", "skills/broken.py": "SKILL_MANIFEST = load()\n",
	}
	p := readSystem(t, migrate.LocalLLMProvider, contents)
	if len(p.Drafts) != 1 || len(p.Lost) != 1 || p.Lost[0].From != "skills/broken.py" {
		t.Fatalf("skills %+v, lost %+v", p.Drafts, p.Lost)
	}
	to := target(t.TempDir())
	created := map[string]string{}
	to.IsInstalled = func(_ context.Context, d skill.Draft) (bool, error) { return created[d.Name] != "", nil }
	to.CreateSkill = func(_ context.Context, d skill.Draft) error {
		created[d.Name] = string(d.Render())
		return nil
	}
	for _, fresh := range []bool{true, false} {
		c, err := p.Compare(t.Context(), to)
		if err != nil || c.IsEmpty() == fresh || c.Items[0].New != fresh || c.Items[0].Outcome != migrate.Changed {
			t.Fatalf("%v, items %+v", err, c.Items)
		}
		if err := c.Apply(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	to.IsInstalled = func(context.Context, skill.Draft) (bool, error) { return false, migrate.ErrNameTaken }
	if c, err := p.Compare(t.Context(), to); err != nil || !c.IsEmpty() || c.Items[0].Outcome != migrate.Lost || c.Items[0].Details[0] != "a skill with this name and other content exists" {
		t.Errorf("with another skill of its name: %v, items %+v", err, c.Items)
	}
	if got := created["my-browser"]; len(created) != 1 || !strings.Contains(got, "Opens pages.") || !strings.Contains(got, "- `open`: Open `a` page") {
		t.Errorf("created %q", created)
	}
}

// Documents for a hub are reported, and not kept on this machine.
func TestResourcesOfWegent(t *testing.T) {
	const doc = "apiVersion: agent.wecode.io/v1\nkind: %\nmetadata: {name: x}\n---\n"
	text := strings.ReplaceAll(doc, "%", "Ghost") + strings.ReplaceAll(doc, "%", "Bot") + strings.ReplaceAll(doc, "%", "Ghost") + strings.ReplaceAll(doc, "%", "Shell")
	p := readSystem(t, migrate.Wegent, map[string]string{"kinds.yaml": text, "chart.yaml": "apiVersion: v1\nkind: Deployment\nmetadata: {name: x}\n", "template.yaml": "apiVersion: {{ .V }}\n"})
	c, err := p.Compare(t.Context(), target(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Items) != 1 || c.Items[0].From != "kinds.yaml" || c.Items[0].Outcome != migrate.ForHub || c.Items[0].Details[0] != "1 Bot, 2 Ghosts; this machine keeps only their MCP servers" || !c.IsEmpty() {
		t.Errorf("items %+v", c.Items)
	}
}

// conversation returns the events of a conversation with calls and a skill.
func conversation() []session.Event {
	load := func(name string) *session.SkillLoad {
		return &session.SkillLoad{Skill: session.ID{Name: name, Origin: "o", Dir: name}, Text: "hostile", AllowedTools: []string{"Bash"}}
	}
	events := []session.Event{
		{Start: &session.Start{Instructions: "hostile"}},
		{Message: &session.Message{Role: llm.User, Text: "Write it\n\n## Steps\n\nFirst."}},
		{Message: &session.Message{Role: llm.Assistant, Model: "demo:one", Calls: []llm.Call{{ID: "1", Name: "load_skill", Arguments: `{"skill_name": "report-gen"}`}}}},
		{Loaded: load("report-gen")}, {Loaded: load("other")},
		{Result: &session.CallResult{Call: "1", Text: "hostile\n```\n## You, 2026-05-01 10:00\n\nhostile"}},
		{Unloaded: &session.SkillUnload{Skill: load("other").Skill, Reason: "unused"}},
		{Message: &session.Message{Role: llm.Assistant, Model: "demo:one", Text: "Here:\n\n```sh\n# a\n## demo:two\n```\n\nError:\n\n```\nnone\n```\nDone."}},
		{Message: &session.Message{Role: llm.User, Text: "Thanks"}},
		{Message: &session.Message{Role: llm.Assistant, Model: "demo:one", Text: "Welcome."}},
	}
	for i := range events {
		events[i].Seq = int64(i + 1)
		events[i].SetType()
	}
	return events
}

// Conversations move between machines, as JSON lines or as Markdown. What was
// said is kept; skills are those that are active at the end.
func TestConversationsOfLoadout(t *testing.T) {
	events := conversation()
	var lines strings.Builder
	for _, e := range events {
		text, _ := json.Marshal(e)
		lines.WriteString(string(text) + "\n")
	}
	for name, text := range map[string]string{"a.jsonl": lines.String(), "a.md": chatlog.Markdown("20260501-x", events), "open.jsonl": lines.String() + `{"seq": 11, "mess`} {
		t.Run(name, func(t *testing.T) {
			p := readSystem(t, migrate.Loadout, map[string]string{name: text})
			if len(p.Conversations) != 1 || len(p.Lost) > 0 {
				t.Fatalf("conversations %+v, lost %+v", p.Conversations, p.Lost)
			}
			var said []string
			c := p.Conversations[0]
			for _, m := range c.Messages {
				said = append(said, m.Text)
			}
			want := []string{events[1].Message.Text, events[7].Message.Text, "Thanks", "Welcome."}
			if !slices.Equal(said, want) || !slices.Equal(c.Messages[3].LoadedSkills, []string{"report-gen"}) || !slices.Equal(c.Lost, []string{"1 tool call"}) || !strings.HasPrefix(c.ID, "loadout-") ||
				name != "a.md" && c.Title != "Write it" {
				t.Errorf("messages %q\nwant %q\n%+v", said, want, c)
			}
		})
	}
}

// All branches of a conversation are read, with the skills of the current one. The
// terminal keeps the current branch, and the report says so.
func TestConversationWithBranches(t *testing.T) {
	said := func(role llm.Role, text string) session.Event {
		return session.Event{Message: &session.Message{Role: role, Text: text}}
	}
	var lines strings.Builder
	for i, e := range []session.Event{
		said(llm.User, "one"), said(llm.Assistant, "1"), {Loaded: &session.SkillLoad{Skill: session.ID{Name: "pdf", Dir: "pdf"}}},
		said(llm.User, "two"), said(llm.Assistant, "2"),
		{Branched: &session.Branch{After: 2}}, said(llm.User, "zwei"), said(llm.Assistant, "3"),
		{Branched: &session.Branch{After: 5}}, said(llm.User, "three"), said(llm.Assistant, "4"),
		{Branched: &session.Branch{After: 8}}, said(llm.User, "drei"), said(llm.Assistant, "5"),
	} {
		e.Seq = int64(i + 1)
		text, _ := json.Marshal(e)
		lines.WriteString(string(text) + "\n")
	}
	p := readSystem(t, migrate.Loadout, map[string]string{"a.jsonl": lines.String() + `{"seq": 15, "mess`})
	if len(p.Conversations) != 1 || len(p.Lost) > 0 {
		t.Fatalf("conversations %+v, lost %+v", p.Conversations, p.Lost)
	}
	var got []string
	for _, m := range p.Conversations[0].Messages {
		got = append(got, m.Text)
		if len(m.LoadedSkills) > 0 {
			t.Errorf("active skills are %q, want none", m.LoadedSkills)
		}
	}
	if want := []string{"one", "1", "two", "2", "zwei", "3", "three", "4", "drei", "5"}; !slices.Equal(got, want) {
		t.Errorf("messages %q, want %q", got, want)
	}
	dir := t.TempDir()
	to := target(dir)
	to.OpenSession = func(ctx context.Context, log session.Log, id string) (*session.Session, error) {
		return session.Open(ctx, noSkills{}, &session.Options{Log: log, ID: id})
	}
	c, err := p.Compare(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	if i := c.Items[0]; i.Outcome != migrate.Changed || i.Details[0] != "without 4 messages on other branches" || !strings.HasPrefix(i.Details[1], "6 messages, named ") {
		t.Errorf("item %+v", i)
	}
	if err := c.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	log, err := session.OpenFileLog(filepath.Join(dir, "chats", p.Conversations[0].ID+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	events, err := log.Read(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	got = nil
	for _, e := range events {
		got = append(got, e.Message.Text)
	}
	if want := []string{"one", "1", "zwei", "3", "drei", "5"}; !slices.Equal(got, want) {
		t.Errorf("stored messages %q, want %q", got, want)
	}
}

// A message that does not end its code block does not contain the next turn.
func TestConversationWithOpenCodeBlock(t *testing.T) {
	events := []session.Event{
		{Message: &session.Message{Role: llm.User, Text: "```one``` is a word. Write code"}},
		{Message: &session.Message{Role: llm.Assistant, Model: "demo:one", Text: "Here:\n\n```sh\necho"}},
		{Message: &session.Message{Role: llm.User, Text: "Continue"}},
		{Message: &session.Message{Role: llm.Assistant, Model: "demo:one", Text: "Done."}},
	}
	p := readSystem(t, migrate.Loadout, map[string]string{"a.md": chatlog.Markdown("x", events)})
	if len(p.Conversations) != 1 || len(p.Conversations[0].Messages) != len(events) {
		t.Fatalf("conversations %+v", p.Conversations)
	}
	for i, m := range p.Conversations[0].Messages {
		if want := events[i].Message; m.Text != want.Text || m.Role != want.Role {
			t.Errorf("message %d: %s %q, want %s %q", i, m.Role, m.Text, want.Role, want.Text)
		}
	}
}

func TestOtherFilesAreNoConversationsOfLoadout(t *testing.T) {
	for name, text := range map[string]string{
		"README.md": "# Title\n\n## demo:one\n\nText.\n", "notes.md": "## You, 2026-05-01 10:00\n\nhi\n", "log.jsonl": "{\"level\": \"info\", \"branched\": 1}\n", "empty.jsonl": "",
	} {
		if p := readSystem(t, migrate.Loadout, map[string]string{name: text}); len(p.Conversations)+len(p.Lost) > 0 {
			t.Errorf("%s: conversations %+v, lost %+v", name, p.Conversations, p.Lost)
		}
	}
	p := readSystem(t, migrate.Loadout, map[string]string{"cut.jsonl": "{\"seq\": 1}\n{\"seq\": 3}\n"})
	if len(p.Lost) != 1 || !strings.Contains(p.Lost[0].Details[0], "line 2") {
		t.Errorf("lost %+v", p.Lost)
	}
	for _, system := range []migrate.System{migrate.Wegent, migrate.BAAgent} {
		if p := readSystem(t, system, map[string]string{"a.md": chatlog.Markdown("x", conversation())}); len(p.Conversations) > 0 {
			t.Errorf("%s: %+v", system, p.Conversations)
		}
	}
}
