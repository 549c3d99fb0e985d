package mcpserver_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/toolname"
	"github.com/loadout-dev/loadout/mcpserver"
	"github.com/loadout-dev/loadout/policy"
)

func everyCompat(t *testing.T, test func(t *testing.T, compat, tool string)) {
	for compat, tool := range map[string]string{"weknora": "read_skill", "ba-agent": "activate_skill", "wegent": "load_skill"} {
		t.Run(compat, func(t *testing.T) { test(t, compat, tool) })
	}
}

// B1, B2: one tool with the old name, which lists the skills that a model may load.
func TestB1CompatServesOldToolOnly(t *testing.T) {
	everyCompat(t, func(t *testing.T, compat, name string) {
		everyWay(t, setup{tree: basic(), options: mcpserver.Options{Compat: compat}}, func(t *testing.T, w *world, c *client) {
			list, err := c.ListTools(c.ctx, nil)
			if err != nil || len(list.Tools) != 1 {
				t.Fatalf("got %v, %v; want one tool", list, err)
			}
			tool := list.Tools[0]
			if tool.Name != name || !tool.Annotations.ReadOnlyHint {
				t.Errorf("the tool is %+v", tool)
			}
			for _, line := range []string{"- csv: What csv is for.\n", "- pdf: What pdf is for.\n", "- report: Writes reports.\n"} {
				if !strings.Contains(tool.Description, line) {
					t.Errorf("the description %q lacks %q", tool.Description, line)
				}
			}
			if strings.Contains(tool.Description, "deploy") {
				t.Errorf("the description tells a model of what is for users: %q", tool.Description)
			}
			for _, other := range []string{"search_skills", "read_skill_file", "load_skill", "read_skill", "activate_skill"} {
				if other != name && strings.Contains(tool.Description+c.InitializeResult().Instructions+" ", other+" ") {
					t.Errorf("a tool that there is not, %s, is spoken of: %q", other, c.InitializeResult().Instructions)
				}
			}
			if !strings.Contains(c.InitializeResult().Instructions, name) {
				t.Errorf("instructions %q do not name the tool", c.InitializeResult().Instructions)
			}
		})
	})
}

func TestB1CompatHasNoToolWithoutSkills(t *testing.T) {
	everyCompat(t, func(t *testing.T, compat, name string) {
		for _, s := range []setup{
			{options: mcpserver.Options{Compat: compat}},
			{tree: basic(), filter: catalog.Filter{Disabled: true}, options: mcpserver.Options{Compat: compat}},
			{tree: files{"deploy/SKILL.md": basic()["deploy/SKILL.md"]}, options: mcpserver.Options{Compat: compat}},
		} {
			everyWay(t, s, func(t *testing.T, w *world, c *client) {
				list, err := c.ListTools(c.ctx, nil)
				if err != nil || len(list.Tools) != 0 {
					t.Errorf("got %v, %v; want no tool", list, err)
				}
				res, err := c.CallTool(c.ctx, &mcp.CallToolParams{Name: name, Arguments: args{"skill_name": "pdf"}})
				if err == nil && !res.IsError {
					t.Errorf("a call of it gives %q", textOf(res))
				}
			})
		}
	})
}

// K1, K10: SKILL.md on request, then its files.
func TestK10ReadSkill(t *testing.T) {
	type result struct {
		SkillName          string   `json:"skill_name"`
		Description        string   `json:"description"`
		Instructions       string   `json:"instructions"`
		InstructionsLength int      `json:"instructions_length"`
		Files              []string `json:"files"`
		FilePath           string   `json:"file_path"`
		Content            string   `json:"content"`
		ContentLength      int      `json:"content_length"`
	}
	tree := basic()
	tree["pdf/long.txt"] = strings.Repeat("x", 70_000)
	w := newWorld(t, setup{tree: tree, options: mcpserver.Options{Compat: "weknora"}})
	c := w.connect(t, way{"stdio", legacy}, nil)
	pdf := filepath.Join(w.dir, "pdf")
	t.Run("without a path: description, instructions and files", func(t *testing.T) {
		res := c.call("read_skill", args{"skill_name": "pdf"})
		got := structured[result](t, res)
		want := "# PDF\n\nFill forms with " + pdf + "/scripts/fill.py."
		if got.SkillName != "pdf" || got.Description != "What pdf is for." || got.Instructions != want || got.InstructionsLength != len(want) {
			t.Errorf("got %+v", got)
		}
		if files := []string{"assets/font.ttf", "assets/logo.png", "empty.md", "long.txt", "references/forms.md", "scripts/fill.py (script)"}; !slices.Equal(got.Files, files) {
			t.Errorf("K8: files %q, want %q", got.Files, files)
		}
		for _, part := range []string{"What pdf is for.\n", want, "scripts/fill.py"} {
			if !strings.Contains(textOf(res), part) {
				t.Errorf("text %q lacks %q", textOf(res), part)
			}
		}
	})
	t.Run("with dependencies", func(t *testing.T) {
		if got := structured[result](t, c.call("read_skill", args{"skill_name": "report"})); !strings.Contains(got.Instructions, "# CSV") || !strings.Contains(got.Instructions, "# Report") {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("with a path: the file", func(t *testing.T) {
		res := c.call("read_skill", args{"skill_name": "pdf", "file_path": "references/forms.md"})
		got := structured[result](t, res)
		text := basic()["pdf/references/forms.md"]
		if got.SkillName != "pdf" || got.FilePath != "references/forms.md" || got.Content != text || got.ContentLength != len(text) || got.Instructions != "" || textOf(res) != text {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("long file is truncated with a note", func(t *testing.T) {
		res := c.call("read_skill", args{"skill_name": "pdf", "file_path": "long.txt"})
		if !strings.HasSuffix(textOf(res), "\n[truncated: 65536 of 70000 bytes]") || structured[result](t, res).Content != textOf(res) {
			t.Errorf("got …%q", textOf(res)[65_000:])
		}
	})
	t.Run("an image is an image", func(t *testing.T) {
		res := c.call("read_skill", args{"skill_name": "pdf", "file_path": "assets/logo.png"})
		if _, ok := res.Content[0].(*mcp.ImageContent); !ok || res.StructuredContent != nil {
			t.Errorf("got %+v", res)
		}
	})
	for path, want := range map[string]string{
		"../csv/SKILL.md": "give a file of the skill",
		"/etc/passwd":     "give a file of the skill",
		"forms.md":        "did you mean references/forms.md?",
	} {
		if res := c.call("read_skill", args{"skill_name": "pdf", "file_path": path}); !res.IsError || !strings.Contains(textOf(res), want) {
			t.Errorf("%s: got %q, want %q", path, textOf(res), want)
		}
	}
	for _, name := range []string{"nothing", "../pdf", "deploy"} {
		if res := c.call("read_skill", args{"skill_name": name}); !res.IsError || !strings.HasSuffix(textOf(res), "Available skills: csv, hollow, pdf, report") || res.StructuredContent != nil {
			t.Errorf("%s: got %q", name, textOf(res))
		}
	}
}

func TestB3ActivateSkill(t *testing.T) {
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
		IsMeta  bool   `json:"isMeta"`
	}
	type result struct {
		SkillName       string         `json:"skill_name"`
		Success         bool           `json:"success"`
		Error           string         `json:"error"`
		Messages        []message      `json:"messages"`
		ContextModifier map[string]any `json:"context_modifier"`
	}
	tree := basic()
	tree["pdf/SKILL.md"] = strings.Replace(tree["pdf/SKILL.md"], "---\n#", "displayName: PDF Tools\nallowed-tools: Bash\nmodel: opus\n---\n#", 1)
	w := newWorld(t, setup{tree: tree, options: mcpserver.Options{Compat: "ba-agent"}, scripts: &loadout.Scripts{Grants: policy.NewMemoryStore()}})
	c := w.connect(t, way{"http", legacy}, nil)
	t.Run("B4: two messages if it is not approved", func(t *testing.T) {
		res := c.call("activate_skill", args{"skill_name": "pdf"})
		got := structured[result](t, res)
		want := []message{
			{"user", "<command-message>The \"PDF Tools\" skill is loading</command-message>\n<command-name>pdf</command-name>", false},
			{"user", "# PDF Tools Skill\n\n# PDF\n\nFill forms with " + filepath.Join(w.dir, "pdf") + "/scripts/fill.py.", true},
		}
		if got.SkillName != "pdf" || !got.Success || got.Error != "" || !slices.Equal(got.Messages, want) || got.ContextModifier != nil {
			t.Errorf("got %+v, want the messages %+v", got, want)
		}
		if !strings.Contains(textOf(res), "# PDF\n") {
			t.Errorf("text %q", textOf(res))
		}
	})
	t.Run("B7: unknown skill fails and names the others", func(t *testing.T) {
		res := c.call("activate_skill", args{"skill_name": "pfd"})
		got := structured[result](t, res)
		if !res.IsError || got.Success || got.Messages != nil || !strings.HasSuffix(got.Error, "Available skills: csv, hollow, pdf, report") || textOf(res) != got.Error {
			t.Errorf("got %+v, %q", got, textOf(res))
		}
	})
	t.Run("user-only skill is hidden from models", func(t *testing.T) {
		if got := structured[result](t, c.call("activate_skill", args{"skill_name": "deploy"})); got.Success || got.Messages != nil {
			t.Errorf("got %+v", got)
		}
	})
}

// An approved skill has the third message and the changes of ba-agent, with the old names; a
// changed one has not, until it is approved again.
func TestB5ActivationOfApprovedSkills(t *testing.T) {
	const text = "---\nname: gmv\ndescription: x\nallowed-tools: Read, Bash(git:*)\nmodel: opus\n---\n# GMV\n"
	s := newWorkshop(t, files{"gmv/SKILL.md": text}, mcpserver.Options{Compat: "ba-agent"})
	c := s.connect(t, way{"stdio", legacy}, nil)
	activate := func() (messages []any, modifier any) {
		t.Helper()
		got := structured[map[string]any](t, c.call("activate_skill", args{"skill_name": "gmv"}))
		return got["messages"].([]any), got["context_modifier"]
	}
	messages, modifier := activate()
	if len(messages) != 3 || !cmp.Equal(modifier, any(map[string]any{"allowed_tools": []any{"Read", "Bash(git:*)"}, "model": "opus"})) {
		t.Fatalf("got %v, %v", messages, modifier)
	}
	want := map[string]any{"role": "user", "content": map[string]any{"type": "command_permissions", "allowed_tools": []any{"Read", "Bash(git:*)"}, "model": "opus"}}
	if diff := cmp.Diff(any(want), messages[2]); diff != "" {
		t.Error(diff)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "gmv", "SKILL.md"), []byte(strings.Replace(text, "Read,", "Write,", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := s.rt.Catalog().Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if messages, modifier := activate(); len(messages) != 2 || modifier != nil {
		t.Errorf("changed: %v, %v", messages, modifier)
	}
}

// The outcomes of a load as the old system worded them; a repeat is a new load
// here, as a server keeps no conversation.
func TestW11CompatLoadSkill(t *testing.T) {
	w := newWorld(t, setup{tree: basic(), options: mcpserver.Options{Compat: "wegent"}})
	c := w.connect(t, way{"stdio", modern}, nil)
	for _, tt := range []struct {
		skill string
		fails bool
		want  string
	}{
		{"nothing", true, "Error: Skill 'nothing' is not available. Available skills: csv, hollow, pdf, report"},
		{"deploy", true, "Error: Skill 'deploy' is not available. Available skills: csv, hollow, pdf, report"},
		{"hollow", true, "Error: Skill 'hollow' has no prompt content."},
		{"csv", false, "Skill 'csv' has been loaded. These are its instructions; follow them strictly.\n\n# CSV"},
		{"csv", false, "Skill 'csv' has been loaded. These are its instructions; follow them strictly.\n\n# CSV"},
	} {
		res := c.call("load_skill", args{"skill_name": tt.skill})
		if textOf(res) != tt.want || res.IsError != tt.fails || res.StructuredContent != nil {
			t.Errorf("%s: got %q, want %q", tt.skill, textOf(res), tt.want)
		}
	}
	pdf := filepath.Join(w.dir, "pdf")
	want := "Skill 'pdf' has been loaded. These are its instructions; follow them strictly.\n\n# PDF\n\nFill forms with " + pdf + "/scripts/fill.py.\n\n" +
		"Files of this skill (in " + pdf + "): assets/font.ttf, assets/logo.png, empty.md, references/forms.md\nScripts of this skill: scripts/fill.py\n"
	if got := textOf(c.call("load_skill", args{"skill_name": "pdf"})); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestCompatListsAreUnchanged(t *testing.T) {
	everyCompat(t, func(t *testing.T, compat, name string) {
		for _, how := range ways[:3] {
			t.Run(how.String(), func(t *testing.T) {
				w := newWorld(t, setup{options: mcpserver.Options{Compat: compat}})
				count := func(c *client) int {
					list, err := c.ListTools(c.ctx, nil)
					if err != nil {
						t.Fatal(err)
					}
					return len(list.Tools)
				}
				before := w.connect(t, how, nil)
				if n := count(before); n != 0 {
					t.Fatalf("%d tools without a skill", n)
				}
				w.change(t, files{"csv/SKILL.md": skillText("csv", "# CSV\n")})
				during := w.connect(t, how, nil)
				if n, m := count(before), count(during); n != 0 || m != 1 {
					t.Errorf("with a skill the old connection has %d tools and a new one %d, want 0 and 1", n, m)
				}
				w.remove(t, "csv")
				after := w.connect(t, how, nil)
				if n, m, o := count(before), count(during), count(after); n != 0 || m != 1 || o != 0 {
					t.Errorf("without it the connections have %d, %d and %d tools, want 0, 1 and 0", n, m, o)
				}
			})
		}
	})
}

func TestCompatNames(t *testing.T) {
	if got := strings.Join(toolname.CompatSystems(), ", "); got != "weknora, ba-agent, wegent" {
		t.Errorf("got %s", got)
	}
	rt := newWorld(t, setup{}).rt
	defer func() {
		if v := recover(); v == nil || !strings.Contains(v.(string), "weknora, ba-agent, wegent") {
			t.Errorf("an unknown one gives %v, want a panic that names the known ones", v)
		}
	}()
	mcpserver.New(rt, &mcpserver.Options{Compat: "other"})
}
