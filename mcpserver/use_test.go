package mcpserver_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/mcpserver"
)

// counter collects the reports of a server as lines.
type counter struct {
	mu    sync.Mutex
	lines []string
}

func (c *counter) note(u mcpserver.Use) {
	c.mu.Lock()
	defer c.mu.Unlock()
	outcome := "ok"
	switch {
	case u.Refused:
		outcome = "refused"
	case u.Failed:
		outcome = "failed"
	}
	line := strings.TrimSpace(fmt.Sprintf("%s %s %s %s", u.Kind, u.Key, u.Script, outcome))
	if u.Tokens > 0 {
		line += " tokens"
	}
	if u.Took > 0 {
		line += " took"
	}
	c.lines = append(c.lines, strings.Join(strings.Fields(line), " "))
}

// told returns the reports since the last call.
func (c *counter) told() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.lines
	c.lines = nil
	return out
}

// Every way to load or read a skill is counted, with the name of the skill and never
// with text of the client.
func TestUsesAreReported(t *testing.T) {
	var told counter
	w := newWorld(t, setup{tree: basic(), options: mcpserver.Options{OnUse: told.note}})
	c := w.connect(t, way{"http", modern}, nil)
	digest := ""
	tool := func(name string, a args) func() {
		return func() {
			res := c.call(name, a)
			if m, ok := res.StructuredContent.(map[string]any); ok {
				if d, ok := m["digest"].(string); ok {
					digest = d
				}
			}
		}
	}
	for _, tt := range []struct {
		name string
		do   func()
		want []string
	}{
		{"a load", tool("load_skill", args{"name": "pdf"}), []string{"load local/pdf ok tokens"}},
		{"one that is held already", func() { tool("load_skill", args{"name": "pdf", "have": digest})() }, []string{"load local/pdf ok"}},
		{"one with what it needs", tool("load_skill", args{"name": "report"}), []string{"load local/csv ok tokens", "load local/report ok tokens"}},
		{"one of nothing", tool("load_skill", args{"name": "sk-secret"}), []string{"load failed"}},
		{"one that is for people", tool("load_skill", args{"name": "deploy"}), []string{"load local/deploy refused"}},
		{"a file", tool("read_skill_file", args{"skill": "pdf", "path": "references/forms.md"}), []string{"file local/pdf ok tokens"}},
		{"a file that is not there", tool("read_skill_file", args{"skill": "pdf", "path": "sk-secret"}), []string{"file local/pdf failed"}},
		{"a file of nothing", tool("read_skill_file", args{"skill": "sk-secret", "path": "x"}), []string{"file failed"}},
		{"a search", tool("search_skills", args{"query": "sk-secret"}), nil},
		{"a prompt", func() {
			if _, err := c.GetPrompt(c.ctx, &mcp.GetPromptParams{Name: "deploy", Arguments: map[string]string{"arguments": "sk-secret"}}); err != nil {
				t.Error(err)
			}
		}, []string{"load local/deploy ok tokens"}},
		{"SKILL.md as a resource", func() { c.read("skill://pdf/SKILL.md") }, []string{"load local/pdf ok tokens"}},
		{"another file as a resource", func() { c.read("skill://pdf/references/forms.md") }, []string{"file local/pdf ok tokens"}},
	} {
		tt.do()
		if got := told.told(); !slices.Equal(got, tt.want) {
			t.Errorf("%s: told %q, want %q", tt.name, got, tt.want)
		}
	}
}

// The tools of earlier systems are counted as ours are.
func TestCompatUsesAreReported(t *testing.T) {
	for compat, tool := range map[string]string{"weknora": "read_skill", "ba-agent": "activate_skill", "wegent": "load_skill"} {
		var told counter
		c := newWorld(t, setup{tree: basic(), options: mcpserver.Options{OnUse: told.note, Compat: compat}}).connect(t, way{"http", modern}, nil)
		c.call(tool, args{"skill_name": "report"})
		c.call(tool, args{"skill_name": "nothing"})
		if got, want := told.told(), []string{"load local/csv ok tokens", "load local/report ok tokens", "load failed"}; !slices.Equal(got, want) {
			t.Errorf("%s: told %q, want %q", compat, got, want)
		}
	}
}

func TestRunsAreReported(t *testing.T) {
	var told counter
	tree := shell()
	tree["fresh/SKILL.md"], tree["fresh/do.sh"] = skillText("fresh", "x"), "echo ran"
	s := newWorkshop(t, tree, mcpserver.Options{OnUse: told.note})
	s.grants.Revoke(t.Context(), "fresh")
	c := s.connect(t, way{"http", modern}, nil)
	for _, tt := range []struct {
		name string
		args args
		want string
	}{
		{"one that ends well", line("echo"), "script local/sh do.sh ok took"},
		{"one that fails", line("exit 3"), "script local/sh do.sh failed took"},
		{"one that is not there", args{"skill": "sh", "script": "sk-secret"}, "script local/sh failed"},
		{"one that is not approved", args{"skill": "fresh", "script": "do.sh"}, "script local/fresh refused"},
		{"one of nothing", args{"skill": "sk-secret", "script": "do.sh"}, "script failed"},
	} {
		c.call("run_skill_script", tt.args)
		if got := told.told(); !slices.Equal(got, []string{tt.want}) {
			t.Errorf("%s: told %q, want %q", tt.name, got, tt.want)
		}
	}
}
