package mcpserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/mcpserver"
)

// lasts reports whether connections of a kind are more than one request.
func (w way) lasts() bool { return w != way{"http", modern} }

// catalogText returns the catalog text that a new connection receives.
type catalogText struct{ instructions, tools string }

func (c *wire) told() catalogText {
	c.t.Helper()
	var begin struct {
		Instructions string `json:"instructions"`
	}
	if c.version >= modern { // it may ask again at any time
		if err := json.Unmarshal(c.ok("server/discover", nil), &begin); err != nil {
			c.t.Fatal(err)
		}
	}
	return catalogText{begin.Instructions, string(c.ok("tools/list", nil))}
}

// tool calls a tool and returns its text and structured content.
func (c *wire) tool(name string, arguments args) (text string, content json.RawMessage) {
	c.t.Helper()
	var res struct {
		Content           []struct{ Text string }
		StructuredContent json.RawMessage
	}
	if err := json.Unmarshal(c.ok("tools/call", args{"name": name, "arguments": arguments}), &res); err != nil {
		c.t.Fatal(err)
	}
	var texts []string
	for _, part := range res.Content {
		texts = append(texts, part.Text)
	}
	return strings.Join(texts, "|"), res.StructuredContent
}

func TestConnectionKeepsItsCatalogText(t *testing.T) {
	for _, how := range ways {
		if !how.lasts() {
			continue
		}
		t.Run(how.String(), func(t *testing.T) {
			w := newWorld(t, setup{tree: basic()})
			c := w.begin(t, how)
			before := c.told()

			w.change(t, files{"new/SKILL.md": skillText("new", "# New\n"), "csv/SKILL.md": skillText("csv", "# CSV, another body\n")})
			w.change(t, files{"pdf/SKILL.md": strings.Replace(basic()["pdf/SKILL.md"], "What pdf is for.", "Another description.", 1)})
			w.remove(t, "hollow")
			if after := c.told(); after != before {
				t.Errorf("before the change:\n%+v\nafter it:\n%+v", before, after)
			}
			const news = "New or changed skills:\n- new: What new is for.\n- pdf: Another description.\nRemoved skills: hollow\n"
			text, content := c.tool("search_skills", args{"query": "csv"})
			if !strings.HasSuffix(text, "|"+news) {
				t.Errorf("the next result is %q, without %q", text, news)
			}
			var structured struct{ News string }
			if err := json.Unmarshal(content, &structured); err != nil || structured.News != news {
				t.Errorf("its structured content %s does not say it: %v", content, err)
			}
			if text, content := c.tool("search_skills", args{"query": "csv"}); strings.Contains(text, "What new is for") || strings.Contains(string(content), "news") {
				t.Errorf("it is reported twice: %q, %s", text, content)
			}

			later := w.begin(t, how)
			if now := later.told(); !strings.Contains(now.tools, "- new: What new is for.") || strings.Contains(now.tools, "hollow") {
				t.Errorf("a new connection got %+v", now)
			}
			if text, _ := later.tool("search_skills", args{"query": "csv"}); strings.Contains(text, "What new is for.") {
				t.Errorf("a new connection is reported what it knows: %q", text)
			}
			if after := c.told(); after != before {
				t.Error("a new connection changed what the old one gets")
			}
		})
	}
}

func TestModernHTTPRequestGetsCurrentCatalog(t *testing.T) {
	w := newWorld(t, setup{tree: basic()})
	c := w.begin(t, way{"http", modern})
	before := c.told()
	w.change(t, files{"new/SKILL.md": skillText("new", "# New\n")})
	after := c.told()
	if before == after || !strings.Contains(after.tools, "- new: What new is for.") {
		t.Errorf("after the change: %+v", after)
	}
	if text, _ := c.tool("search_skills", args{"query": "csv"}); strings.Contains(text, "new") {
		t.Errorf("news in a result, where no connection to be told again: %q", text)
	}
}

// Errors carry news too, and every tool does.
func TestCatalogNoticeComesWithAnyResult(t *testing.T) {
	for tool, a := range map[string]args{
		"search_skills":   {"cursor": "!"},
		"load_skill":      {"name": "csv"},
		"read_skill_file": {"skill": "csv", "path": "SKILL.md"},
	} {
		t.Run(tool, func(t *testing.T) {
			w := newWorld(t, setup{tree: basic()})
			c := w.begin(t, way{"stdio", legacy})
			w.change(t, files{"new/SKILL.md": skillText("new", "# New\n")})
			text, content := c.tool(tool, a)
			if !strings.Contains(text, "- new: What new is for.\n") {
				t.Errorf("got %q", text)
			}
			if len(content) > 0 && !strings.Contains(string(content), `"news":"New or changed skills`) {
				t.Errorf("structured content %s", content)
			}
		})
	}
}

func TestCatalogNoticeIsShort(t *testing.T) {
	w := newWorld(t, setup{tree: basic()})
	c := w.begin(t, way{"stdio", modern})
	many := files{}
	for i := range 30 {
		name := fmt.Sprintf("new-%02d", i)
		many[name+"/SKILL.md"] = "---\nname: " + name + "\ndescription: " + strings.Repeat("long ", 190) + "\n---\nx"
	}
	w.change(t, many)
	text, _ := c.tool("search_skills", args{"query": "csv"})
	if len(text) > 8000 || !strings.Contains(text, "… and 10 more: find them with search_skills") || !strings.Contains(text, "- new-19: long") {
		t.Errorf("%d bytes: %q", len(text), text)
	}
	for name := range many {
		w.remove(t, strings.TrimSuffix(name, "/SKILL.md"))
	}
	if text, _ := c.tool("search_skills", args{"query": "csv"}); !strings.Contains(text, "new-19 and 10 more") {
		t.Errorf("got %q", text)
	}
}

func TestNoNoticeWithoutChange(t *testing.T) {
	w := newWorld(t, setup{tree: basic()})
	c := w.begin(t, way{"http", legacy})
	w.remove(t, "csv")
	w.change(t, files{"csv/SKILL.md": basic()["csv/SKILL.md"]})
	if text, content := c.tool("search_skills", args{"query": "pdf"}); strings.Contains(text, "|") || strings.Contains(string(content), "news") {
		t.Errorf("got %q, %s", text, content)
	}
}

// manySkills returns skills with descriptions of 240 characters that end in a
// "Use when" clause.
func manySkills(n int) files {
	tree := files{}
	for i := range n {
		name := fmt.Sprintf("analyze-contracts-%02d", i)
		use := fmt.Sprintf(" Use when kind %02d is meant.", i)
		tree[name+"/SKILL.md"] = "---\nname: " + name + "\ndescription: " + strings.Repeat("Analyze API contracts according to conventions. ", 5)[:240-len(use)-1] + "." + use + "\n---\nx"
	}
	return tree
}

// What the model sees of the texts is complete: each skill has one line, in the
// texts that the client shows.
func TestCatalogTextFitsTheClient(t *testing.T) {
	const whole = "whole"
	for _, tt := range []struct {
		client       string
		skills       int
		instructions bool   // whether the list is in the instructions
		description  bool   // and in the description
		part         string // of each line after the name
	}{
		{"codex-mcp-client", 50, true, false, whole},
		{"gemini-cli-mcp-client", 50, true, false, whole},
		{"opencode", 50, true, false, whole},
		{"claude-code", 10, true, true, whole},
		{"claude-code", 50, true, true, ": Analyze API"},
		{"Visual Studio Code", 5, false, true, whole},
		{"other", 5, false, true, whole},
		{"other", 50, false, true, ""},
	} {
		for _, how := range ways {
			t.Run(fmt.Sprintf("%s %d %s", tt.client, tt.skills, how), func(t *testing.T) {
				w := newWorld(t, setup{tree: manySkills(tt.skills)})
				instructions, description := w.textsFor(t, how, tt.client)
				if tt.client == "claude-code" {
					instructions, description = firstRunes(instructions, 2048), firstRunes(description, 2048)
				}
				if strings.Contains(instructions, "- analyze-") != tt.instructions || strings.Contains(description, "- analyze-") != tt.description {
					t.Errorf("instructions:\n%s\ndescription:\n%s", instructions, description)
				}
				both := instructions + "\n" + description + "\n"
				for i := range tt.skills {
					name, use := fmt.Sprintf("\n- analyze-contracts-%02d", i), fmt.Sprintf(" Use when kind %02d is meant.\n", i)
					if strings.Count(both, name) != 1 || !strings.Contains(both, name+tt.part) && tt.part != whole || tt.part == whole && strings.Count(both, use) != 1 {
						t.Fatalf("the line of skill %d is wrong:\n%s", i, both)
					}
				}
				if free := 4096 - len([]rune(instructions)) - len([]rune(description)); tt.client == "claude-code" && tt.skills == 50 && free > 200 {
					t.Errorf("%d characters are not used", free)
				}
			})
		}
	}
}

// The text says how many skills are missing.
func TestCatalogTextBudget(t *testing.T) {
	for _, tt := range []struct {
		client    string
		preamble  int
		budget, n int // want at most n characters
	}{
		{"other", 0, 0, 2000}, {"other", 0, 300, 300}, {"other", 0, 3000, 3000}, {"other", 0, 100_000, 100_000},
		{"codex-mcp-client", 0, 0, 16_000}, {"codex-mcp-client", 0, 300, 300}, {"codex-mcp-client", 0, 100_000, 100_000},
		{"claude-code", 0, 0, 2000}, {"claude-code", 0, 3000, 3000}, {"claude-code", 0, 100_000, 4096}, {"claude-code", 3000, 0, 2048},
		{"codex-mcp-client", -100, 0, 2000}, // with 700 skills, not all names fit
	} {
		w := newWorld(t, setup{tree: manySkills(600 + max(-tt.preamble, 0)), options: mcpserver.Options{TextBudget: tt.budget, Preamble: strings.Repeat("p", max(tt.preamble, 0))}})
		instructions, description := w.textsFor(t, ways[0], tt.client)
		n := 0
		for _, text := range []string{instructions, description} {
			if _, list, ok := strings.Cut(text, "\n- "); ok {
				n += len([]rune("- " + list))
			}
		}
		if n > tt.n || n < tt.n*4/5 && tt.n < 100_000 {
			t.Errorf("%+v: %d characters", tt, n)
		}
		if more := " more: find them with search_skills"; tt.n < 16_000 && !strings.Contains(instructions+description, more) {
			t.Errorf("%+v: %q is missing in:\n%s\n%s", tt, more, instructions, description)
		}
	}
}

// Claude Code gets the numbers of names that docs/mcp.md tells.
func TestNamesForClaudeCode(t *testing.T) {
	for n, want := range map[int]int{220: 220, 250: 130} {
		tree := files{}
		for i := range n {
			name := fmt.Sprintf("skill-%06d", i)
			tree[name+"/SKILL.md"] = "---\nname: " + name + "\ndescription: Use when needed.\n---\nx"
		}
		w := newWorld(t, setup{tree: tree})
		instructions, description := w.textsFor(t, ways[0], "claude-code")
		if got := strings.Count(instructions+description, "\n- skill-"); got != want {
			t.Errorf("%d of %d names, want %d", got, n, want)
		}
	}
}

// A list that is too long begins with the skills that the user needs first.
func TestFirstSkills(t *testing.T) {
	for n, want := range map[int]string{50: "- analyze-contracts-00: ", 90: "- analyze-contracts-77: ", 700: "- analyze-contracts-77\n- analyze-contracts-12\n- analyze-contracts-00\n"} {
		asked := 0
		first := func() ([]string, bool) {
			asked++
			return []string{"local/analyze-contracts-77", "local/analyze-contracts-12"}, true
		}
		w := newWorld(t, setup{tree: manySkills(n), options: mcpserver.Options{FirstSkills: first}})
		instructions, _ := w.textsFor(t, ways[0], "codex-mcp-client")
		_, list, _ := strings.Cut(instructions, "Skills:\n")
		if !strings.HasPrefix(list, want) || (asked == 0) != (n == 50) {
			t.Errorf("%d skills, asked %d times: %.300s", n, asked, list)
		}
	}
}

// A skill that a client lists itself is not listed again, but can be found and
// loaded.
func TestSkillsThatClientsReadAreNotListed(t *testing.T) {
	home := t.TempDir()
	project := filepath.Join(home, "root", "project")
	files{
		".claude/skills/own/SKILL.md": skillText("own", "x"), ".claude/skills/group/below/SKILL.md": skillText("below", "x"), ".loadout/skills/other/SKILL.md": skillText("other", "x"),
		"root/project/.agents/skills/agents/SKILL.md": skillText("agents", "x"), "root/.agents/skills/top/SKILL.md": skillText("top", "x"),
		"root/.claude/skills/claude/SKILL.md": skillText("claude", "x"), "root/.git/HEAD": "", "moved/skills/moved/SKILL.md": skillText("moved", "x"),
	}.write(t, home)
	all := []string{"agents", "below", "claude", "moved", "other", "own", "top"}
	for _, tt := range []struct {
		client, home string
		variable     string // has the value moved
		want         []string
	}{
		{"claude-code", home, "", []string{"agents", "below", "moved", "other", "top"}},
		{"claude-code", home, "CLAUDE_CONFIG_DIR", []string{"agents", "below", "other", "own", "top"}},
		{"codex-mcp-client", home, "", []string{"below", "claude", "moved", "other", "own"}},
		{"codex-mcp-client", home, "CODEX_HOME", []string{"below", "claude", "other", "own"}},
		{"gemini-cli-mcp-client", home, "", []string{"below", "claude", "moved", "other", "own", "top"}},
		{"opencode", home, "", []string{"moved", "other"}},
		{"test", home, "", all},
		{"claude-code", "", "", all},
	} {
		getenv := func(name string) string {
			if name == tt.variable {
				return filepath.Join(home, "moved")
			}
			return ""
		}
		w := newWorld(t, setup{sources: []catalog.Source{catalog.NewDir("home", catalog.User, home, nil)}, options: mcpserver.Options{ClientHome: tt.home, ClientProject: project, ClientGetenv: getenv}})
		instructions, description := w.textsFor(t, ways[0], tt.client)
		var got []string
		for _, name := range all {
			if strings.Contains(instructions+description, "- "+name+":") {
				got = append(got, name)
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s with %q lists %q, want %q", tt.client, tt.variable, got, tt.want)
		}
		c := w.beginAs(t, ways[0], tt.client)
		if text, _ := c.tool("search_skills", args{"query": "own"}); !strings.Contains(text, "- own:") {
			t.Errorf("%s finds %q", tt.client, text)
		}
		if text, _ := c.tool("load_skill", args{"name": "own"}); !strings.Contains(text, "is loaded") {
			t.Errorf("%s loads %q", tt.client, text)
		}
	}
}

// Claude Code lists the skills of plugins that its settings enable, so that they are
// not listed again; those of other plugins are.
func TestSkillsOfEnabledPluginsAreNotListed(t *testing.T) {
	home := t.TempDir()
	installed := map[string]any{}
	tree := files{".claude/plugins/known_marketplaces.json": `{"m": {}}`, ".claude/settings.json": `{"enabledPlugins": {"user@m": true, "off@m": true, "no@m": false, "versions@m": ["1"], "gone@other": true}}`,
		"p/.claude/settings.json": `{"enabledPlugins": {"project@m": true, "off@m": true}}`, "p/.claude/settings.local.json": `{"enabledPlugins": {"local@m": true, "off@m": false}}`,
		"invalid/.claude/settings.json":            `{"enabledPlugins": {"project@m": true, "local@m": "yes"}}`,
		"plugins/user/skills/group/below/SKILL.md": skillText("below", "x")}
	all := []string{"below"}
	for _, id := range []string{"user@m", "project@m", "local@m", "off@m", "no@m", "versions@m", "gone@other", "unset@m"} {
		name, _, _ := strings.Cut(id, "@")
		all = append(all, name)
		tree["plugins/"+name+"/skills/"+name+"/SKILL.md"] = skillText(name, "x")
		installed[id] = []args{{"scope": "user", "installPath": filepath.Join(home, "plugins", name)}}
	}
	js, err := json.Marshal(args{"version": 2, "plugins": installed})
	if err != nil {
		t.Fatal(err)
	}
	tree[".claude/plugins/installed_plugins.json"] = string(js)
	tree.write(t, home)
	for _, tt := range []struct {
		client, project, configDir string
		omitted                    []string
	}{
		{"claude-code", "p", "", []string{"user", "project", "local"}},
		{"claude-code", "p/sub", "", []string{"user", "off"}}, // Claude Code reads no settings of parents
		{"claude-code", "invalid", "", []string{"user", "off"}},
		{"claude-code", "p", "moved", nil},
		{"codex-mcp-client", "p", "", nil},
		{"test", "p", "", nil},
	} {
		getenv := func(name string) string {
			if name == "CLAUDE_CONFIG_DIR" && tt.configDir != "" {
				return filepath.Join(home, tt.configDir)
			}
			return ""
		}
		w := newWorld(t, setup{sources: []catalog.Source{catalog.NewDir("plugins", catalog.User, filepath.Join(home, "plugins"), nil)},
			options: mcpserver.Options{ClientHome: home, ClientProject: filepath.Join(home, tt.project), ClientGetenv: getenv}})
		instructions, description := w.textsFor(t, ways[0], tt.client)
		var omitted []string
		for _, name := range all {
			if !strings.Contains(instructions+description, "- "+name+":") {
				omitted = append(omitted, name)
			}
		}
		if !slices.Equal(omitted, tt.omitted) {
			t.Errorf("%s in %s omits %q, want %q", tt.client, tt.project, omitted, tt.omitted)
		}
		if text, _ := w.beginAs(t, ways[0], tt.client).tool("load_skill", args{"name": "user"}); !strings.Contains(text, "is loaded") {
			t.Errorf("%s loads %q", tt.client, text)
		}
	}
}

// textsFor returns the texts with which a connection of a client begins.
func (w *world) textsFor(t testing.TB, how way, client string) (instructions, description string) {
	t.Helper()
	c := w.dial(t, how)
	c.name = client
	var begin struct{ Instructions string }
	if err := json.Unmarshal(c.begin(), &begin); err != nil {
		t.Fatal(err)
	}
	return begin.Instructions, c.description("load_skill")
}

// descriptionFor returns the description of a tool that a connection of a client
// lists first.
func (w *world) descriptionFor(t testing.TB, how way, client, tool string) string {
	t.Helper()
	c := w.dial(t, how)
	c.name = client
	c.begin()
	return c.description(tool)
}

// description returns the description of a tool, or "" if it is not listed.
func (c *wire) description(name string) string {
	c.t.Helper()
	var list struct {
		Tools []struct{ Name, Description string }
	}
	if err := json.Unmarshal(c.ok("tools/list", nil), &list); err != nil {
		c.t.Fatal(err)
	}
	for _, tool := range list.Tools {
		if tool.Name == name {
			return tool.Description
		}
	}
	return ""
}

func firstRunes(s string, n int) string {
	r := []rune(s)
	return string(r[:min(len(r), n)])
}

// Changes are announced: in the older era on the connection, in the newer to
// who listens.
func TestChangesAreAnnounced(t *testing.T) {
	for _, how := range ways {
		t.Run(how.String(), func(t *testing.T) {
			w := newWorld(t, setup{tree: basic()})
			c := w.begin(t, how)
			if how.version >= modern {
				c.start("subscriptions/listen", args{"notifications": args{"toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true}})
				c.wait("notifications/subscriptions/acknowledged")
			}
			c.told()
			w.change(t, files{"new/SKILL.md": skillText("new", "# New\n")})
			for _, method := range []string{"notifications/tools/list_changed", "notifications/prompts/list_changed", "notifications/resources/list_changed"} {
				c.wait(method)
			}
			if got := string(c.ok("prompts/list", nil)); !strings.Contains(got, `"new"`) {
				t.Errorf("prompts/list %s", got)
			}
			if got := string(c.ok("resources/list", nil)); !strings.Contains(got, `"skill://new/SKILL.md"`) {
				t.Errorf("resources/list %s", got)
			}
		})
	}
}

// The clients of the SDK hear of it as well, whatever they keep.
func TestSDKClientReceivesChanges(t *testing.T) {
	for _, how := range ways {
		t.Run(how.String(), func(t *testing.T) {
			w := newWorld(t, setup{tree: basic()})
			received := make(chan struct{}, 16)
			c := w.connect(t, how, &mcp.ClientOptions{PromptListChangedHandler: func(context.Context, *mcp.PromptListChangedRequest) { received <- struct{}{} }})
			if _, err := c.ListPrompts(c.ctx, nil); err != nil {
				t.Fatal(err)
			}
			w.change(t, files{"new/SKILL.md": skillText("new", "# New\n")})
			select {
			case <-received:
			case <-c.ctx.Done():
				t.Fatal("nothing is heard of the change")
			}
			list, err := c.ListPrompts(c.ctx, nil)
			if err != nil {
				t.Fatal(err)
			}
			found := false
			for _, p := range list.Prompts {
				found = found || p.Name == "new"
			}
			if !found {
				t.Errorf("the new prompt is not in the list")
			}
		})
	}
}

// A change that no list shows is not announced: clients fetch lists again when
// it is.
func TestEditedBodySendsNoListChanged(t *testing.T) {
	w := newWorld(t, setup{tree: basic()})
	c := w.begin(t, way{"stdio", legacy})
	c.told()
	w.change(t, files{"csv/SKILL.md": skillText("csv", "# CSV, another body\n")})
	w.change(t, files{"new/SKILL.md": skillText("new", "# New\n")})
	c.wait("notifications/tools/list_changed")
	c.ok("ping", nil)
	for _, m := range c.notes {
		if m.Method == "notifications/tools/list_changed" {
			t.Error("it is announced twice")
		}
	}
}

func TestCatalogTextsOfClosedConnectionsAreDropped(t *testing.T) {
	w := newWorld(t, setup{tree: basic()})
	kept := w.begin(t, way{"stdio", legacy})
	for _, how := range ways {
		t.Run(how.String(), func(t *testing.T) {
			c := w.connect(t, how, nil) // which says goodbye at the end
			if _, err := c.ListTools(c.ctx, nil); err != nil {
				t.Fatal(err)
			}
		})
	}
	w.change(t, files{"new/SKILL.md": skillText("new", "# New\n")})
	if got, there := w.server.Told(), w.server.Connections(); got != 1 || there != 1 {
		t.Errorf("%d connections are remembered and %d are there, want one", got, there)
	}
	if text, _ := kept.tool("search_skills", args{"query": "csv"}); !strings.Contains(text, "- new: What new is for.") {
		t.Errorf("the one that is left is not told the news: %q", text)
	}
}
