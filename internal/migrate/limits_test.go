package migrate_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadout-dev/loadout/internal/migrate"
	"github.com/loadout-dev/loadout/session"
)

// Names that are too long for a skill are not looked up.
func TestLongNamesOfSkillsAreIgnored(t *testing.T) {
	long := strings.Repeat("x", 257)
	question := `{"role": "user", "content": "q"}`
	used := `{"seq": 2, "message": {"role": "assistant", "text": "a"}}` + "\n" + `{"seq": 3, "loaded": {"skill": {"name": "%", "origin": "o", "dir": "%"}}}` + "\n" + `{"seq": 4, "loaded": {"skill": {"name": "pdf", "origin": "o", "dir": "pdf"}}}` + "\n"
	for _, tt := range []struct {
		name   string
		system migrate.System
		file   string
		text   string
	}{
		{"recorded", migrate.Wegent, "a.json", "[" + question + `, {"role": "assistant", "content": "a", "loaded_skills": ["%", "pdf"]}]`},
		{"called", migrate.WeKnora, "a.json", "[" + question + `, {"role": "assistant", "content": "a", "tool_calls": [{"name": "read_skill", "args": {"name": "%"}}, {"name": "read_skill", "args": {"name": "pdf"}}]}]`},
		{"events", migrate.Loadout, "a.jsonl", `{"seq": 1, "message": {"role": "user", "text": "q"}}` + "\n" + used},
		{"Markdown", migrate.Loadout, "a.md", "# T\n\n## You, 2026-05-01 10:00\n\nq\n\nThe skill % was loaded.\n\nThe skill pdf was loaded.\n\n## demo:one\n\na\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := readSystem(t, tt.system, map[string]string{tt.file: strings.ReplaceAll(tt.text, "%", long)})
			var asked []string
			to := target(t.TempDir())
			to.HasSkill = func(name string) bool { asked = append(asked, name); return true }
			if _, err := p.Compare(t.Context(), to); err != nil || !slices.Equal(asked, []string{"pdf"}) {
				t.Errorf("%v, looked up %.50q", err, asked)
			}
		})
	}
}

// noSkills are no skills.
type noSkills struct{ session.Skills }

func (noSkills) Fetch(context.Context, string) ([]*session.Skill, error) { return nil, nil }

// However many skills a conversation used, few are looked up, and each once. None
// are if the conversation is already there.
func TestFewSkillsAreLookedUp(t *testing.T) {
	var messages []string
	for i := range 400 {
		messages = append(messages, `{"role": "user", "content": "q"}`,
			fmt.Sprintf(`{"role": "assistant", "content": "a", "loaded_skills": ["s%d", "s%d"]}`, i/2, i/2+1))
	}
	p := read(t, map[string]string{"a.json": "[" + strings.Join(messages, ",") + "]"})
	had, named := map[string]int{}, map[string]int{}
	to := target(t.TempDir())
	to.HasSkill = func(name string) bool { had[name]++; return true }
	to.SkillName = func(name string) string { named[name]++; return name }
	to.OpenSession = func(ctx context.Context, log session.Log, id string) (*session.Session, error) {
		return session.Open(ctx, noSkills{}, &session.Options{Log: log, ID: id})
	}
	c, err := p.Compare(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	for what, asked := range map[string]map[string]int{"HasSkill": had, "SkillName": named} {
		if len(asked) != 100 {
			t.Errorf("%s was called for %d names", what, len(asked))
		}
		for name, n := range asked {
			if n != 1 {
				t.Errorf("%s was called %d times for %s", what, n, name)
			}
		}
	}
	if named["s200"] != 1 {
		t.Error("the skill used last was not looked up")
	}
	clear(had)
	if _, err := p.Compare(t.Context(), to); err != nil || len(had) > 0 {
		t.Errorf("again: %v, %d skills were looked up", err, len(had))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Compare(ctx, to); err == nil {
		t.Error("the comparison was not cancelled")
	}
}

// A skill is looked up once for all conversations. One that the user does not have is
// not restored.
func TestSkillsOfAllConversationsAreLookedUpOnce(t *testing.T) {
	contents := map[string]string{}
	for i := range 50 {
		contents[fmt.Sprintf("%d.json", i)] = fmt.Sprintf(`[{"role": "user", "content": "q%d"}, {"role": "assistant", "content": "a", "loaded_skills": ["pdf", "none"]},
			{"role": "user", "content": "q"}, {"role": "assistant", "content": "a", "tool_calls": [{"name": "read_skill", "args": {"skill_name": "docx"}}, {"name": "read_skill", "args": {"skill_name": "none"}}]}]`, i)
	}
	p := readSystem(t, migrate.WeKnora, contents)
	calls, fetched := map[string]int{}, map[string]int{}
	to := target(t.TempDir())
	to.HasSkill = func(name string) bool { calls["has "+name]++; return name != "none" }
	to.SkillName = func(name string) string {
		calls["name "+name]++
		if name == "none" {
			return ""
		}
		return name
	}
	to.OpenSession = func(ctx context.Context, log session.Log, id string) (*session.Session, error) {
		return session.Open(ctx, countedSkills{counts: fetched}, &session.Options{Log: log, ID: id})
	}
	c, err := p.Compare(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(calls) != 6 {
		t.Errorf("looked up %v", calls)
	}
	for what, n := range calls {
		if n != 1 {
			t.Errorf("looked up %s %d times", what, n)
		}
	}
	if len(fetched) != 2 || fetched["pdf"] != 50 || fetched["docx"] != 50 {
		t.Errorf("restored %v", fetched)
	}
}

// A skill that only a call names is looked up, and restored under the name that it has
// here. A call that reads a file of a skill loads none.
func TestSkillsOfCallsAreRestoredUnderTheirOwnNames(t *testing.T) {
	turn := func(tool, args string) string {
		return `{"role": "user", "content": "q"}, {"role": "assistant", "content": "a", "tool_calls": [{"name": "` + tool + `", "args": ` + args + `}]}`
	}
	p := readSystem(t, migrate.WeKnora, map[string]string{"a.json": "[" + turn("load_skill", `{"skill_name": "wiki_submit"}`) + "," + turn("activate_skill", `{"skill": "data_chart"}`) + "," +
		turn("read_skill", `{"skill_name": "other", "file_path": "a.md"}`) + "]"})
	fetched := map[string]int{}
	to := target(t.TempDir())
	to.HasSkill = func(string) bool { return false }
	to.SkillName = func(name string) string { return strings.ReplaceAll(name, "_", "-") }
	to.OpenSession = func(ctx context.Context, log session.Log, id string) (*session.Session, error) {
		return session.Open(ctx, countedSkills{counts: fetched}, &session.Options{Log: log, ID: id})
	}
	c, err := p.Compare(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := c.Items[0].Details[1], "it used 2 skills that you do not have: data_chart, wiki_submit; "; !strings.HasPrefix(got, want) {
		t.Errorf("details %q, want %q", got, want)
	}
	if err := c.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := map[string]int{"wiki-submit": 1, "data-chart": 1}; !maps.Equal(fetched, want) {
		t.Errorf("restored %v, want %v", fetched, want)
	}
}

// countedSkills counts the skills that are fetched. None is found.
type countedSkills struct {
	session.Skills
	counts map[string]int
}

func (s countedSkills) Fetch(_ context.Context, ref string) ([]*session.Skill, error) {
	s.counts[ref]++
	return nil, nil
}

// The memory that uses of a skill take does not grow with the number of earlier ones.
func TestUsesOfOneSkillTakeLittleMemory(t *testing.T) {
	var lines strings.Builder
	id := session.ID{Name: "a", Origin: "o", Dir: "a"}
	for i, e := range slices.Concat([]session.Event{{Loaded: &session.SkillLoad{Skill: id}}}, slices.Repeat([]session.Event{{Used: &session.SkillUse{Skill: id, Tools: []string{"t"}}}}, 5000)) {
		e.Seq = int64(i + 1)
		text, _ := json.Marshal(e)
		lines.WriteString(string(text) + "\n")
	}
	contents := map[string]string{"a.jsonl": lines.String()}
	if n := allocated(func() { readSystem(t, migrate.Loadout, contents) }); n > 50<<20 {
		t.Errorf("allocated %d MiB", n>>20)
	}
}

// The events of a file are limited, and its skills, also those that a compaction keeps.
func TestSkillsOfEventsAreLimited(t *testing.T) {
	loads := func(n int) string {
		var b strings.Builder
		b.WriteString(`{"seq": 1, "message": {"role": "user", "text": "q"}}` + "\n")
		for i := range n {
			fmt.Fprintf(&b, `{"seq": %d, "loaded": {"skill": {"name": "s", "dir": "%d"}}}`+"\n", i+2, i)
		}
		return b.String()
	}
	compacted := fmt.Sprintf(`{"seq": 10002, "compacted": {"skills": [{}%s]}}`+"\n", strings.Repeat(",{}", 400_000))
	var branches strings.Builder
	for n := 1; n <= 100_001; n++ {
		fmt.Fprintf(&branches, `{"seq": %d, "branched": {"after": 0}}`+"\n", n)
	}
	for _, tt := range []struct{ name, text, lost string }{
		{"loads", loads(10_000), ""},
		{"too many loads", loads(10_001), "line 10002: too many loads of skills (limit 10000)"},
		{"branches", loads(10_000) + `{"seq": 10002, "branched": {"after": 1}}`, ""},
		{"too many branches", branches.String(), "too many branches (limit 100000)"},
		{"too many kept skills", loads(10_000) + compacted, "line 10002 has too many JSON values (limit 500000)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := readSystem(t, migrate.Loadout, map[string]string{"a.jsonl": tt.text})
			if tt.lost == "" {
				if len(p.Conversations) != 1 || len(p.Lost) > 0 {
					t.Errorf("%d conversations, lost %+v", len(p.Conversations), p.Lost)
				}
			} else if len(p.Conversations) > 0 || len(p.Lost) != 1 || p.Lost[0].Details[0] != tt.lost {
				t.Errorf("%d conversations, lost %+v, want %q", len(p.Conversations), p.Lost, tt.lost)
			}
		})
	}
}

// Of the tool calls, only those that load skills are kept. The report counts all.
func TestCallsThatLoadSkillsAreKept(t *testing.T) {
	message := func(calls string) string {
		return `{"role": "assistant", "content": "a", "tool_calls": [` + calls + `]}`
	}
	question := `[{"role": "user", "content": "%s"}`
	p := read(t, map[string]string{
		"none.json": fmt.Sprintf(question, "one") + strings.Repeat(","+message("0"+strings.Repeat(",0", 999)), 400) + "]",
		"some.json": fmt.Sprintf(question, "two") + "," + message(`{"name": "`+strings.Repeat("x", 257)+`"}, {"name": "load_skill", "args": {"skill_name": "pdf", "x": "y"}}, {"name": "write", "args": {"name": "a"}}`) + "]",
	})
	none, some := p.Conversations[0], p.Conversations[1]
	if m := none.Messages[1]; len(none.Messages) != 401 || !slices.Equal(m.Calls, []session.PastCall{{}}) || !slices.Equal(none.Lost, []string{"400000 tool calls"}) {
		t.Errorf("%d messages with calls %+v, lost %q", len(none.Messages), m.Calls, none.Lost)
	}
	if m := some.Messages[1]; !slices.Equal(m.Calls, []session.PastCall{{Name: "load_skill", Arguments: `{"name":"pdf"}`}}) {
		t.Errorf("calls %+v", m.Calls)
	}
}

// idOf returns the ID of a conversation of Wegent whose messages are encoded as text.
func idOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return fmt.Sprintf("wegent-%x", sum[:6])
}

// All tool calls are part of the ID of a conversation, so that conversations that were
// stored before are recognized. They are hashed if they have over 16 MiB.
func TestCallsArePartOfTheID(t *testing.T) {
	const encoded = `[{"role":"user","text":"q","loaded_skills":null},{"role":"assistant","text":"a","loaded_skills":null,"calls":%s}]`
	write := func(n int) string {
		return `{"name":"write","arguments":"` + strings.Repeat("x", n) + `"}`
	}
	hashed := func(calls string) string { return fmt.Sprintf(`"sha256:%x"`, sha256.Sum256([]byte(calls))) }
	unnamed := strings.Repeat(`{"name":"","arguments":""},`, 999) + `{"name":"","arguments":""}`
	for _, tt := range []struct{ name, calls, want string }{
		{"some", `{"name": "write", "args": {"x": "<"}}, {"name": "load_skill", "arguments": "{\"name\":\"pdf\"}"}, 0, {"name": "run", "result": {"success": false}}`,
			`[{"name":"write","arguments":"{\"x\":\"\\u003c\"}"},{"name":"load_skill","arguments":"{\"name\":\"pdf\"}"},{"name":"","arguments":""},{"name":"run","arguments":"","error":true}]`},
		{"large", write(15 << 20), "[" + write(15<<20) + "]"},
		{"too large", `{"name": "write", "args": {"x": "` + strings.Repeat("<", 3<<20) + `"}}`, hashed(`[{"name":"write","arguments":"{\"x\":\"` + strings.Repeat(`\\u003c`, 3<<20) + `\"}"}]`)},
		{"without names", strings.Repeat("0, ", 999) + "0", "[" + unnamed + "]"},
	} {
		p := read(t, map[string]string{"a.json": `[{"role": "user", "content": "q"}, {"role": "assistant", "content": "a", "tool_calls": [` + tt.calls + `]}]`})
		if got, want := p.Conversations[0].ID, idOf(fmt.Sprintf(encoded, tt.want)); got != want {
			t.Errorf("%s: ID %s, want %s", tt.name, got, want)
		}
	}
}

// The ID of a conversation depends neither on other files nor on the order of its pages.
func TestIDDependsOnTheConversationOnly(t *testing.T) {
	message := func(id int, role, calls string) string {
		return fmt.Sprintf(`{"id": %d, "session_id": "s", "created_at": "2026-05-01T10:00:0%dZ", "role": "%s", "content": "c", "tool_calls": [%s]}`, id, id, role, calls)
	}
	write := func(c string) string {
		return `{"name": "write", "arguments": "` + strings.Repeat(c, 9<<20) + `"}`
	}
	first, second := "["+message(1, "user", "")+","+message(2, "assistant", write("x"))+"]", "["+message(3, "user", "")+","+message(4, "assistant", write("y"))+"]"
	contents := map[string]string{"1.json": first, "2.json": second}
	id := read(t, contents).Conversations[0].ID
	if got := read(t, map[string]string{"1.json": second, "2.json": first}).Conversations; len(got) != 1 || got[0].ID != id {
		t.Errorf("with the pages in the other order, %d conversations, ID %s, want %s", len(got), got[0].ID, id)
	}
	if got := read(t, map[string]string{"1.json": first, "2.json": strings.Replace(second, "y", "z", 1)}).Conversations[0].ID; got == id {
		t.Errorf("a conversation with another call has the same ID %s", id)
	}
	for i := range 9 { // 72 MiB of calls
		contents[fmt.Sprintf("0/%d.json", i)] = fmt.Sprintf(`[{"role": "user", "content": "%d"}, {"role": "assistant", "content": "a", "tool_calls": [{"name": "write", "arguments": "%s"}]}]`, i, strings.Repeat("x", 8<<20))
	}
	if all := read(t, contents).Conversations; len(all) != 10 || !slices.ContainsFunc(all, func(c *migrate.PastConversation) bool { return c.ID == id }) {
		t.Errorf("%d conversations, none is %s", len(all), id)
	}
}

// A conversation has at most 8 MiB of text. The report counts the messages that follow.
func TestTextOfAConversationIsLimited(t *testing.T) {
	text := strings.Repeat("x", 256<<10)
	export := "[" + strings.Repeat(`{"role": "user", "content": "`+text+`"},`, 34) + `{"role": "user", "content": "short"}]`
	var lines strings.Builder
	memory := map[string]string{}
	for i := range 34 {
		fmt.Fprintf(&lines, `{"seq": %d, "message": {"role": "user", "text": %q}}`+"\n", i+1, text)
		memory[fmt.Sprintf("memory/%02d.md", i)] = text[:255<<10]
	}
	for _, tt := range []struct {
		system   migrate.System
		contents map[string]string
		lost     string
	}{
		{migrate.Wegent, map[string]string{"a.json": export}, "3 messages over the limit"},
		{migrate.Loadout, map[string]string{"a.jsonl": lines.String()}, "2 messages over the limit"},
		{migrate.BAAgent, memory, ""},
	} {
		t.Run(string(tt.system), func(t *testing.T) {
			p := readSystem(t, tt.system, tt.contents)
			c := p.Conversations[0]
			if len(c.Messages) != 32 || strings.Join(c.Lost, "\n") != tt.lost {
				t.Errorf("%d messages, lost %q", len(c.Messages), c.Lost)
			}
			if tt.system == migrate.BAAgent && (len(p.Lost) != 2 || p.Lost[0].From != "memory/32.md" || !strings.HasPrefix(p.Lost[0].Details[0], "too much in the memory (limit 10000 files, 8388608 bytes)")) {
				t.Errorf("lost %+v", p.Lost)
			}
		})
	}
}

// A time that cannot be encoded is unknown, and the conversation is stored. A time in
// the future is not stored.
func TestImplausibleTimesAreUnknown(t *testing.T) {
	tomorrow := time.Now().UTC().Add(23 * time.Hour).Format(time.RFC3339)
	for at, want := range map[string]string{
		"9999-12-31T23:59:59-01:00": "0001-01-01T00:00:00Z",
		"1969-12-31T23:59:59Z":      "0001-01-01T00:00:00Z",
		"2500-01-01T00:00:00Z":      "2500-01-01T00:00:00Z",
		"1970-01-01T01:00:00+01:00": "1970-01-01T00:00:00Z",
		tomorrow:                    tomorrow,
	} {
		for system, contents := range map[migrate.System]map[string]string{
			migrate.Wegent:  {"a.json": `[{"role": "user", "content": "q", "created_at": "` + at + `"}]`},
			migrate.Loadout: {"a.jsonl": `{"seq": 1, "time": "` + at + `", "message": {"role": "user", "text": "q"}}`},
		} {
			p := readSystem(t, system, contents)
			if got := p.Conversations[0].Messages[0].Time.Format(time.RFC3339); got != want {
				t.Errorf("%s: %s becomes %s, want %s", system, at, got, want)
			}
			if last := p.Conversations[0].Last(); last.Year() == 2500 {
				t.Errorf("%s: the last message is of %v", system, last)
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
			if err := c.Apply(t.Context()); err != nil {
				t.Errorf("%s: %s: %v", system, at, err)
			}
			text, err := os.ReadFile(filepath.Join(dir, "chats", p.Conversations[0].ID+".jsonl"))
			if err != nil || strings.Contains(string(text), "2500-01-01") {
				t.Errorf("%s: %s: %v, stored %s", system, at, err, text)
			}
		}
	}
}

// What a conversation is, and whether it is already there, does not depend on when it is
// read.
func TestConversationWithFutureTimesStaysTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := func(d time.Duration) string { return time.Now().Add(d).Format(time.RFC3339) }
		contents := map[string]string{"a.json": `[{"role": "assistant", "content": "a", "created_at": "` + at(25*time.Hour) + `"}, {"role": "user", "content": "q", "created_at": "` + at(-time.Hour) + `"}]`}
		first := read(t, contents).Conversations[0]
		time.Sleep(2 * time.Hour)
		if again := read(t, contents).Conversations[0]; again.ID != first.ID {
			t.Errorf("read as %s %+v, before as %s %+v", again.ID, again.Messages, first.ID, first.Messages)
		}
	})
}

// A file with documents for a hub that cannot be read is listed as lost.
func TestUnreadableResourcesAreLost(t *testing.T) {
	contents := map[string]string{
		"broken.yaml": "apiVersion: agent.wecode.io/v1\nkind: Ghost\nmetadata: {name: x\n",
		"broken.json": `{"apiVersion": "agent.wecode.io/v1", "kind": "Bot", "metadata": {`,
		"large.yaml":  "apiVersion: agent.wecode.io/v1\nkind: 'Team'\nmetadata: {name: x}\nspec: {x: " + strings.Repeat("x", 1<<20) + "}\n",
		"large.json":  `{"apiVersion": "agent.wecode.io/v1", "kind": "Bot", "metadata": {"name": "x"}, "spec": {"x": "` + strings.Repeat("x", 1<<20) + `"}}`,
		"task.json":   `{"title": "x", "team": {"apiVersion": "agent.wecode.io/v1", "kind": "Team"}, "x": "` + strings.Repeat("x", 1<<20) + `"}`,
		"chart.yaml":  "apiVersion: v1\nkind: Deployment\nmetadata: {name: {{ .Name }}}\n",
	}
	want := map[string]string{"broken.yaml": "invalid file", "broken.json": "invalid file", "large.yaml": "too large", "large.json": "too large", "k/501.yaml": "too many files with documents (limit 500)"}
	for i := range 501 {
		contents[fmt.Sprintf("k/%03d.yaml", i+1)] = strings.Repeat("---\napiVersion: agent.wecode.io/v1\nkind: Ghost\nmetadata: {name: x}\n", 2)
	}
	p := readSystem(t, migrate.Wegent, contents)
	if len(p.Resources) != 500 || len(p.Lost) != len(want) {
		t.Errorf("%d files with documents, lost %+v", len(p.Resources), p.Lost)
	}
	for _, i := range p.Lost {
		if want[i.From] == "" || !strings.Contains(i.Details[0], want[i.From]) {
			t.Errorf("lost %+v, want %q", i, want[i.From])
		}
	}
}

// Each server costs the same, however many similar ones there are. Servers over the
// limit are listed as lost; values that are no configurations, and equal servers, are
// not.
func TestManySimilarServers(t *testing.T) {
	var env []string
	for i := range 60 {
		env = append(env, fmt.Sprintf(`"V%d": "x"`, i))
	}
	contents := map[string]string{"none.json": `{"mcpServers": {"s": 1, "t": []}}`}
	for i := range 1000 {
		text := fmt.Sprintf(`{"mcpServers": {"s": {"command": "x", "cwd": "/%d", "env": {%s}}}}`, i/2*2, strings.Join(env, ","))
		contents[fmt.Sprintf("%04d.json", i)] = text
		contents[fmt.Sprintf("last/%04d.json", i)] = strings.Replace(text, `"/`, `"/last/`, 1)
	}
	var p *migrate.Plan
	if n := allocated(func() { p = read(t, contents) }); n > 500<<20 {
		t.Errorf("allocated %d MiB", n>>20)
	}
	if len(p.Servers) != 500 || len(p.Lost) != 1000 || p.Lost[0].From != "last/0000.json" || p.Lost[0].Details[0] != "too many servers (limit 500)" {
		t.Errorf("%d servers, %d lost", len(p.Servers), len(p.Lost))
	}
}

// allocated returns the number of bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
