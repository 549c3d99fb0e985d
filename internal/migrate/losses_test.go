package migrate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/migrate"
)

// Two conversations with the same messages are stored once, and the report says so. The
// same conversation in two files is one.
func TestConversationsWithTheSameMessages(t *testing.T) {
	export := func(session string) string {
		return strings.ReplaceAll(`{"data": [{"id": "%1", "session_id": "%", "role": "user", "content": "hi"}, {"id": "%2", "session_id": "%", "role": "assistant", "content": "hello"}]}`, "%", session)
	}
	p := readSystem(t, migrate.WeKnora, map[string]string{"a.json": export("s"), "b.json": export("t"), "c.json": export("s"),
		"d.json":        `[{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]`,
		"sessions.json": `{"data": [{"id": "s", "title": "First"}, {"id": "t", "title": "Second"}]}`})
	if len(p.Conversations) != 1 || p.Conversations[0].Title != "First" || len(p.Lost) != 1 || p.Lost[0].Name != "Second" || p.Lost[0].Details[0] != "it has the same messages as another conversation" {
		t.Errorf("%d conversations, lost %+v", len(p.Conversations), p.Lost)
	}
}

// An export that was cut off is lost.
func TestTruncatedExportIsLost(t *testing.T) {
	p := read(t, map[string]string{
		"task.json":   `{"title": "x", "subtasks": [{"role": "USER", "prompt": "q"}, {"ro`,
		"both.json":   `{"mcpServers": {"s": {"role": "USER"`,
		"titles.json": `{"title": "x`,
	})
	var lost []string
	for _, i := range p.Lost {
		lost = append(lost, i.From)
	}
	if !slices.Equal(lost, []string{"both.json", "both.json", "task.json"}) || p.Lost[2].Details[0] != "invalid JSON; no conversations were read" {
		t.Errorf("lost %+v", p.Lost)
	}
}

// A message over 256 KiB is truncated, and the report says so.
func TestTruncatedMessagesAreReported(t *testing.T) {
	long := strings.Repeat("x", 256<<10+1)
	for system, contents := range map[migrate.System]map[string]string{
		migrate.Wegent:  {"a.json": `[{"role": "user", "content": "` + long + `"}]`},
		migrate.Loadout: {"a.jsonl": `{"seq": 1, "message": {"role": "user", "text": "` + long + `"}}`},
	} {
		if lost := readSystem(t, system, contents).Conversations[0].Lost; !slices.Equal(lost, []string{"the end of 1 message over 262144 bytes"}) {
			t.Errorf("%s: lost %q", system, lost)
		}
	}
	p := readSystem(t, migrate.BAAgent, map[string]string{"memory/a.md": long})
	if len(p.Conversations) != 1 || len(p.Lost) != 1 || p.Lost[0].From != "memory/a.md" || p.Lost[0].Details[0] != "only the first 262144 bytes are kept" {
		t.Errorf("%d conversations, lost %+v", len(p.Conversations), p.Lost)
	}
}

// The report counts all missing skills, and names those that were used last.
func TestAllMissingSkillsAreCounted(t *testing.T) {
	var names []string
	for i := range 125 {
		names = append(names, fmt.Sprintf(`"s%d"`, i))
	}
	p := read(t, map[string]string{"a.json": `[{"role": "user", "content": "q"}, {"role": "assistant", "content": "a", "loaded_skills": [` + strings.Join(names, ",") + `]}]`})
	to := target(t.TempDir())
	asked := map[string]bool{}
	to.HasSkill = func(name string) bool {
		asked[name] = true
		return !strings.HasPrefix(name, "s10")
	}
	c, err := p.Compare(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := c.Items[0].Details[0], "it used 10 skills that you do not have: s109, s108, "; !strings.HasPrefix(got, want) || len(asked) != 100 || asked["s24"] {
		t.Errorf("looked up %d, details %q, want %q", len(asked), got, want)
	}
	to.HasSkill = func(string) bool { return false }
	if c, err = p.Compare(t.Context(), to); err != nil || !strings.HasPrefix(c.Items[0].Details[0], "it used 100 skills that you do not have: s124, s123, ") {
		t.Errorf("%v, details %q", err, c.Items[0].Details)
	}
}

// Losses that are not listed are counted.
func TestManyLossesAreCounted(t *testing.T) {
	contents := map[string]string{}
	for i := range 1003 {
		contents[fmt.Sprintf("%04d.mcp.json", i)] = `{"mcpServers": {`
	}
	p := read(t, contents)
	if len(p.Lost) != 1001 || p.Lost[1000].Name != "3 more" || p.Lost[1000].Details[0] != "not listed, because over 1000 items are lost" {
		t.Errorf("%d lost, the last %+v", len(p.Lost), p.Lost[len(p.Lost)-1])
	}
}

// Conversations in a list of pages are read. What is nested too deeply is lost, and
// counted.
func TestNestedResponses(t *testing.T) {
	const task = `{"title": "x", "subtasks": [{"role": "USER", "prompt": "%"}]}`
	p := read(t, map[string]string{
		"page.json": `{"data": {"items": [` + strings.ReplaceAll(task, "%", "q") + `]}}`,
		"deep.json": strings.Repeat(`{"data":`, 7) + "[" + task + "," + task + "]" + strings.Repeat("}", 7),
	})
	if len(p.Conversations) != 1 || p.Conversations[0].From != "page.json" || p.Conversations[0].Title != "x" {
		t.Errorf("conversations %+v", p.Conversations)
	}
	if len(p.Lost) != 1 || p.Lost[0].From != "deep.json" || p.Lost[0].Details[0] != "not read: 2 values nested over 8 levels" {
		t.Errorf("lost %+v", p.Lost)
	}
}

// A large export that mentions servers is kept; the report says that no servers were
// read.
func TestLargeExportMentionsServers(t *testing.T) {
	p := read(t, map[string]string{"a.json": `[{"role": "user", "content": "mcpServers ` + strings.Repeat("x", 1<<20) + `"}]`})
	if len(p.Conversations) != 1 || len(p.Lost) != 1 || !strings.HasSuffix(p.Lost[0].Details[0], "; no servers or documents were read") {
		t.Errorf("%d conversations, lost %+v", len(p.Conversations), p.Lost)
	}
}
