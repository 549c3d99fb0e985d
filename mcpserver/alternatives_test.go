package mcpserver_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/policy"
)

// Failed loads and tools with an error result offer alternatives in one form, without
// hidden skills. What the model can correct has none.
func TestFailuresOfferAlternatives(t *testing.T) {
	tree := files{
		"echo-text/SKILL.md":   "---\nname: echo-text\ndescription: Speaks a text aloud.\n---\nSay it.\n",
		"text-echo/SKILL.md":   "---\nname: text-echo\ndescription: Repeats.\n---\nSay it.\n",
		"secret-echo/SKILL.md": "---\nname: secret-echo\ndescription: Says an echo of text.\ndisable-model-invocation: true\n---\nSay it.\n",
		"broken-echo/SKILL.md": "---\nname: broken-echo\n---\nSay it.\n",
	}
	const (
		skills = "\nOther skills to try:\n"
		tools  = "\nOther tools to try:\n- one__echo: Say it again. [read_tool]\n- two__echo: Say it again. [read_tool]\n"
	)
	everyWay(t, setup{tree: tree, servers: []string{"one", "two"}}, func(t *testing.T, w *world, c *client) {
		w.set.Connect(t.Context(), "")
		for _, test := range []struct {
			tool string
			args args
			want string // end of the text
			is   bool   // whether it offers anything
		}{
			{"load_skill", args{"name": "speaks-aloud"}, `skill "speaks-aloud" not found. Find skills with search_skills.` + skills + "- echo-text: Speaks a text aloud.\n", true},
			{"load_skill", args{"name": "my-echo-text"}, "did you mean echo-text? Find skills with search_skills." + skills + "- text-echo: Repeats.\n" + tools, true},
			{"load_skill", args{"name": "echo"}, tools, true},
			{"load_skill", args{"name": "echo-txt"}, "did you mean echo-text? Find skills with search_skills." + tools, true},
			{"load_skill", args{"name": "photoshop"}, "Available skills: echo-text, text-echo.", false},
			{"call_tool", args{"name": "one__echo", "arguments": args{"text": "fail"}}, "failed|Other tools to try:\n- two__echo: Say it again. [read_tool]", true},
			{"call_tool", args{"name": "one__echo", "arguments": args{"text": "hello"}}, "one: hello", false},
			{"call_tool", args{"name": "one__echo", "arguments": args{"text": 1}}, "", false},
		} {
			text := textOf(c.call(test.tool, test.args))
			if !strings.HasSuffix(text, test.want) || strings.Contains(text, "to try:") != test.is || strings.Contains(text, "secret") || strings.Contains(text, "\n- broken") {
				t.Errorf("%s %v: %q, want the end %q", test.tool, test.args, text, test.want)
			}
		}
	})
}

// A script that fails, or cannot start, offers alternatives; one that works or whose
// arguments the model can correct does not.
func TestFailedScriptsOfferAlternatives(t *testing.T) {
	if err := usable(); err != nil {
		t.Skipf("no sandbox here: %v", err)
	}
	tree := shell()
	tree["echo/SKILL.md"], tree["echo/say.sh"] = skillText("echo", "Say it."), "exit $1\n"
	tree["unapproved-echo/SKILL.md"], tree["unapproved-echo/say.sh"] = skillText("unapproved-echo", "Say it."), "true\n"
	grants := policy.NewMemoryStore()
	s := &workshop{box: newBox(), grants: grants}
	s.world = newWorld(t, setup{tree: tree, servers: []string{"one"}, scripts: &loadout.Scripts{Sandbox: s.box, Grants: grants, FolderDir: filepath.Join(t.TempDir(), "work")}})
	s.approve(t, "echo")
	s.set.Connect(t.Context(), "")
	c := s.connect(t, ways[0], nil)
	for _, test := range []struct {
		skill, script, arg, want string
	}{
		{"echo", "say.sh", "0", ""},
		{"echo", "say.sh", "3", "Other skills to try:\n- unapproved-echo: What unapproved-echo is for.\n\nOther tools to try:\n- one__echo: Say it again. [read_tool]\n"},
		{"echo", "sya.sh", "0", ""},
		{"echo", "../say.sh", "0", ""},
		{"unapproved-echo", "say.sh", "0", "Other skills to try:\n- echo: What echo is for.\n\nOther tools to try:\n- one__echo: "},
		{"one-echo", "say.sh", "0", "Other skills to try:\n- "},
		{"sh", "do.sh", "exit 3", ""},
	} {
		text := textOf(c.call("run_skill_script", args{"skill": test.skill, "script": test.script, "args": []string{test.arg}}))
		if !strings.Contains(text, test.want) || (test.want == "") == strings.Contains(text, "to try:") {
			t.Errorf("%s", fmt.Sprintf("%+v: %q", test, text))
		}
	}
}
