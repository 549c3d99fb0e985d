package mcpserver_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func promptTree() files {
	front := func(name, more, body string) string {
		return "---\nname: " + name + "\ndescription: What " + name + " is for.\n" + more + "---\n" + body
	}
	return files{
		"plain/SKILL.md":      front("plain", "", "# Plain\n"),
		"all/SKILL.md":        front("all", "argument-hint: what to translate\n", "Translate: $ARGUMENTS!\n"),
		"words/SKILL.md":      front("words", "", "Fix $1 with priority $2, not $10 or $ARGUMENTSX.\n"),
		"awk/SKILL.md":        front("awk", "", "Run `awk '{print $1}'` or\n\n```sh\necho $1\n```\n\non $1.\n"),
		"hinted/SKILL.md":     front("hinted", "argument-hint: '[issue] <priority>'\n", "Run `gh issue view $1` at $2.\n"),
		"one-hint/SKILL.md":   front("one-hint", "argument-hint: '[file]'\n", "Read $1.\n"),
		"place/SKILL.md":      front("place", "", "In {baseDir}.\n"),
		"base/SKILL.md":       front("base", "", "# Base\n"),
		"needs/SKILL.md":      front("needs", "dependencies: [base]\n", "# Needs\n"),
		"person/SKILL.md":     front("person", "disable-model-invocation: true\n", "# For people\n"),
		"model-only/SKILL.md": front("model-only", "user-invocable: false\n", "# For models\n"),
		"named/SKILL.md":      "---\nname: Two Words\ndescription: A name with a space.\ndisplayName: Zwei Wörter\n---\n# Two\n",
	}
}

func TestPromptsListUserInvocableSkills(t *testing.T) {
	everyWay(t, setup{tree: promptTree()}, func(t *testing.T, w *world, c *client) {
		list, err := c.ListPrompts(c.ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		arguments := map[string][]string{}
		for _, p := range list.Prompts {
			names = append(names, p.Name)
			if p.Title != "" {
				t.Errorf("%s has the title %q, which clients take for a command", p.Name, p.Title)
			}
			for _, a := range p.Arguments {
				if a.Required {
					t.Errorf("%s demands %s", p.Name, a.Name)
				}
				arguments[p.Name] = append(arguments[p.Name], a.Name+": "+a.Description)
			}
		}
		if want := []string{"Two-Words", "all", "awk", "base", "hinted", "needs", "one-hint", "person", "place", "plain", "words"}; !slices.Equal(names, want) {
			t.Errorf("prompts %q, want %q", names, want)
		}
		for name, want := range map[string][]string{
			"plain":    {"arguments: what to do with the skill"},
			"all":      {"arguments: what to translate"},
			"one-hint": {"arguments: [file]"},
			"hinted":   {"issue: [issue]", "priority: <priority>"},
		} {
			if !slices.Equal(arguments[name], want) {
				t.Errorf("%s takes %q, want %q", name, arguments[name], want)
			}
		}
	})
}

func TestPromptContainsSkillAndTypedArguments(t *testing.T) {
	w := newWorld(t, setup{tree: promptTree()})
	c := w.connect(t, way{"stdio", modern}, nil)
	for _, tt := range []struct {
		prompt string
		typed  map[string]string
		want   string // of the text after the first line
	}{
		{"plain", nil, "# Plain\n"},
		{"plain", map[string]string{"arguments": "be quick"}, "# Plain\n\nArguments: be quick\n"},
		{"all", map[string]string{"arguments": "good morning"}, "Translate: good morning!\n"},
		{"all", map[string]string{"arguments": "for $1 and $ARGUMENTS"}, "Translate: for $1 and $ARGUMENTS!\n"},
		{"all", nil, "Translate: !\n"},
		{"words", map[string]string{"arguments": "7 high"}, "Fix 7 with priority high, not $10 or $ARGUMENTSX.\n"},
		{"words", map[string]string{"arguments": `"the  bug" 'very high' x`}, "Fix the  bug with priority very high, not $10 or $ARGUMENTSX.\n"},
		{"words", map[string]string{"arguments": "7"}, "Fix 7 with priority , not $10 or $ARGUMENTSX.\n"},
		{"words", nil, "Fix $1 with priority $2, not $10 or $ARGUMENTSX.\n"},
		{"awk", nil, "Run `awk '{print $1}'` or\n\n```sh\necho $1\n```\n\non $1.\n"},
		{"awk", map[string]string{"arguments": "a.txt"}, "Run `awk '{print $1}'` or\n\n```sh\necho $1\n```\n\non a.txt.\n"},
		{"hinted", map[string]string{"issue": "7", "priority": "high"}, "Run `gh issue view 7` at high.\n"},
		{"hinted", map[string]string{"issue": "7"}, "Run `gh issue view 7` at .\n"},
		{"hinted", map[string]string{"arguments": "7 high"}, "Run `gh issue view 7` at high.\n"},
		{"one-hint", map[string]string{"arguments": "my file.txt"}, "Read my.\n"},
		{"place", nil, "In " + filepath.Join(w.dir, "place") + ".\n"},
		{"person", nil, "# For people\n"},
		{"Two-Words", nil, "# Two\n"},
	} {
		res, err := c.GetPrompt(c.ctx, &mcp.GetPromptParams{Name: tt.prompt, Arguments: tt.typed})
		if err != nil {
			t.Errorf("%s: %v", tt.prompt, err)
			continue
		}
		text, ok := res.Messages[0].Content.(*mcp.TextContent)
		if len(res.Messages) != 1 || res.Messages[0].Role != "user" || !ok {
			t.Errorf("%s: messages %+v", tt.prompt, res.Messages)
			continue
		}
		if _, got, _ := strings.Cut(text.Text, "\n\n"); got != tt.want {
			t.Errorf("%s %v: got %q, want %q", tt.prompt, tt.typed, got, tt.want)
		}
	}
	t.Run("loads with its dependencies", func(t *testing.T) {
		res, err := c.GetPrompt(c.ctx, &mcp.GetPromptParams{Name: "needs"})
		if err != nil {
			t.Fatal(err)
		}
		text := res.Messages[0].Content.(*mcp.TextContent).Text
		if i, j := strings.Index(text, "# Base"), strings.Index(text, "# Needs"); i < 0 || j < i {
			t.Errorf("got %q", text)
		}
	})
	t.Run("the title is its description", func(t *testing.T) {
		if res, err := c.GetPrompt(c.ctx, &mcp.GetPromptParams{Name: "Two-Words"}); err != nil || res.Description != "Zwei Wörter" {
			t.Errorf("got %+v, %v", res, err)
		}
	})
	t.Run("unknown is -32602", func(t *testing.T) {
		for _, name := range []string{"model-only", "nothing", ""} {
			if _, err := c.GetPrompt(c.ctx, &mcp.GetPromptParams{Name: name}); code(err) != -32602 {
				t.Errorf("%q: got %v", name, err)
			}
		}
	})
	t.Run("broken since: error with the reason", func(t *testing.T) {
		files{"plain/SKILL.md": "spoilt"}.write(t, w.dir)
		if _, err := c.GetPrompt(c.ctx, &mcp.GetPromptParams{Name: "plain"}); code(err) != -32602 || !strings.Contains(err.Error(), "does not load") {
			t.Errorf("got %v", err)
		}
	})
}

// The same name in two sources is one prompt, of the skill that the name
// stands for; when that goes, it is the other's.
func TestPromptFollowsSkillName(t *testing.T) {
	w := newWorld(t, setup{tree: files{
		"a/pdf/SKILL.md": skillText("pdf", "# First\n"),
		"b/pdf/SKILL.md": skillText("pdf", "# Second\n"),
	}})
	c := w.connect(t, way{"stdio", modern}, nil)
	get := func() string {
		res, err := c.GetPrompt(c.ctx, &mcp.GetPromptParams{Name: "pdf"})
		if err != nil {
			t.Fatal(err)
		}
		return res.Messages[0].Content.(*mcp.TextContent).Text
	}
	if got := get(); !strings.Contains(got, "# First") {
		t.Errorf("got %q", got)
	}
	w.remove(t, "a")
	if got := get(); !strings.Contains(got, "# Second") {
		t.Errorf("after the first is gone: %q", got)
	}
	w.change(t, files{"a/pdf/SKILL.md": skillText("pdf", "# Third\n")})
	if got := get(); !strings.Contains(got, "# Third") {
		t.Errorf("after the first came back: %q", got)
	}
}

// A skill whose directory has the name of another skill is not taken for it.
func TestPromptUsesTheNamedSkill(t *testing.T) {
	w := newWorld(t, setup{tree: files{
		"one/SKILL.md": skillText("two", "# Named two, in one\n"),
		"two/SKILL.md": skillText("one", "# Named one, in two\n"),
	}})
	c := w.connect(t, way{"stdio", legacy}, nil)
	for _, name := range []string{"one", "two"} {
		res, err := c.GetPrompt(c.ctx, &mcp.GetPromptParams{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		if text := res.Messages[0].Content.(*mcp.TextContent).Text; !strings.Contains(text, "# Named "+name) {
			t.Errorf("%s is %q", name, text)
		}
		if text := textOf(c.call("load_skill", args{"name": name})); !strings.Contains(text, "# Named "+name) {
			t.Errorf("load_skill %s gives %q", name, text)
		}
	}
}
