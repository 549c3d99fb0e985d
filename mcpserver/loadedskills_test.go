package mcpserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/mcpserver"
)

// The first result after the body of a loaded skill was edited says so, once,
// and the lists that show it are announced. Skills that the connection has not
// loaded, or has loaded since, are not mentioned.
func TestEditedBodyOfLoadedSkillIsReported(t *testing.T) {
	for _, how := range ways {
		if !how.lasts() {
			continue
		}
		t.Run(how.String(), func(t *testing.T) {
			w := newWorld(t, setup{tree: basic()})
			c, other := w.begin(t, how), w.begin(t, how)
			if how.version >= modern {
				c.start("subscriptions/listen", args{"notifications": args{"promptsListChanged": true, "resourcesListChanged": true}})
				c.wait("notifications/subscriptions/acknowledged")
			}
			c.told()
			other.told()
			c.tool("load_skill", args{"name": "csv"})
			w.change(t, files{"csv/SKILL.md": skillText("csv", "# CSV, another body\n"), "pdf/SKILL.md": basic()["pdf/SKILL.md"] + "More.\n"})
			for _, method := range []string{"notifications/prompts/list_changed", "notifications/resources/list_changed"} {
				c.wait(method)
			}
			const news = "Loaded skills that changed: csv. Load a skill again before you use it.\n"
			text, content := c.tool("search_skills", args{"query": "pdf"})
			if !strings.HasSuffix(text, "|"+news) {
				t.Errorf("the next result is %q, want %q at the end", text, news)
			}
			var structured struct{ News string }
			if err := json.Unmarshal(content, &structured); err != nil || structured.News != news {
				t.Errorf("its structured content is %s: %v", content, err)
			}
			silent := func(when string, c *wire) {
				t.Helper()
				if text, _ := c.tool("search_skills", args{"query": "pdf"}); strings.Contains(text, "Loaded skills") {
					t.Errorf("%s: %q", when, text)
				}
			}
			silent("again", c)
			silent("another connection", other)
			if text, _ := c.tool("load_skill", args{"name": "csv"}); !strings.Contains(text, "another body") || strings.Contains(text, "Loaded skills") {
				t.Errorf("loaded again: %q", text)
			}
			silent("loaded again", c)

			w.change(t, files{"csv/SKILL.md": skillText("csv", "# CSV, the third\n")})
			if text, _ := c.tool("load_skill", args{"name": "csv"}); !strings.Contains(text, "the third") || strings.Contains(text, "Loaded skills") {
				t.Errorf("the result with the new text is %q", text)
			}
			w.change(t, files{"csv/SKILL.md": skillText("csv", "# CSV, the third\n") + " "})
			w.change(t, files{"csv/SKILL.md": skillText("csv", "# CSV, the third\n")})
			silent("changed and changed back", c)
		})
	}
}

// A client that says which version it holds is told of later ones too.
func TestHeldSkillIsRemembered(t *testing.T) {
	w := newWorld(t, setup{tree: basic()})
	first := w.begin(t, way{"stdio", legacy})
	_, content := first.tool("load_skill", args{"name": "csv"})
	var loaded struct{ Digest string }
	if err := json.Unmarshal(content, &loaded); err != nil {
		t.Fatal(err)
	}
	c := w.begin(t, way{"stdio", legacy})
	c.told()
	if text, _ := c.tool("load_skill", args{"name": "csv", "have": loaded.Digest}); !strings.Contains(text, "is unchanged") {
		t.Fatal(text)
	}
	w.change(t, files{"csv/SKILL.md": skillText("csv", "# CSV, another body\n")})
	if text, _ := c.tool("search_skills", args{"query": "pdf"}); !strings.Contains(text, "Loaded skills that changed: csv.") {
		t.Errorf("got %q", text)
	}
}

// A skill that only users load is loaded by its prompt.
func TestEditedSkillOfPromptIsReported(t *testing.T) {
	tree := basic()
	tree["mine/SKILL.md"] = "---\nname: mine\ndescription: For users.\ndisable-model-invocation: true\n---\n# Mine\n"
	w := newWorld(t, setup{tree: tree})
	c := w.begin(t, way{"stdio", legacy})
	c.told()
	c.ok("prompts/get", args{"name": "mine"})
	w.change(t, files{"mine/SKILL.md": tree["mine/SKILL.md"] + "More.\n"})
	if text, _ := c.tool("search_skills", args{"query": "pdf"}); !strings.Contains(text, "Loaded skills that changed: mine. Only the user can load them again.\n") {
		t.Errorf("got %q", text)
	}
}

// An earlier system's tools report changes too.
func TestEditedSkillIsReportedByCompatTools(t *testing.T) {
	for name, call := range map[string]struct {
		tool string
		args args
	}{
		"weknora":  {"read_skill", args{"skill_name": "csv"}},
		"ba-agent": {"activate_skill", args{"skill_name": "csv"}},
		"wegent":   {"load_skill", args{"skill_name": "csv"}},
	} {
		w := newWorld(t, setup{tree: basic(), options: mcpserver.Options{Compat: name}})
		c := w.begin(t, way{"stdio", legacy})
		c.told()
		c.tool(call.tool, call.args)
		w.change(t, files{"csv/SKILL.md": skillText("csv", "# CSV, another body\n")})
		if text, _ := c.tool(call.tool, args{"skill_name": "pdf"}); !strings.Contains(text, "Loaded skills that changed: csv.") {
			t.Errorf("%s: got %q", name, text)
		}
	}
}

// A removed skill is reported as removed, and its next version is compared with
// the loaded one.
func TestRemovedAndRestoredSkill(t *testing.T) {
	w := newWorld(t, setup{tree: basic()})
	c := w.begin(t, way{"stdio", legacy})
	c.told()
	c.tool("load_skill", args{"name": "csv"})
	w.remove(t, "csv")
	if text, _ := c.tool("search_skills", args{"query": "pdf"}); strings.Contains(text, "Loaded skills") || !strings.Contains(text, "Removed skills: csv") {
		t.Errorf("removed: %q", text)
	}
	w.change(t, files{"csv/SKILL.md": skillText("csv", "# CSV, another body\n")})
	if text, _ := c.tool("search_skills", args{"query": "pdf"}); !strings.Contains(text, "Loaded skills that changed: csv.") {
		t.Errorf("restored: %q", text)
	}
}

// A connection remembers a bounded number of skills, the last loaded ones.
func TestLoadedSkillsAreBounded(t *testing.T) {
	const most = 512
	tree := files{}
	name := func(i int) string { return fmt.Sprintf("s%03d", i) }
	for i := range most + 1 {
		tree[name(i)+"/SKILL.md"] = skillText(name(i), "# Text\n")
	}
	w := newWorld(t, setup{tree: tree})
	c := w.begin(t, way{"stdio", legacy})
	c.told()
	for _, i := range []int{0, 1, 0} { // loading a skill again makes it the last
		c.tool("load_skill", args{"name": name(i)})
	}
	for i := 2; i <= most; i++ {
		c.tool("load_skill", args{"name": name(i)})
	}
	w.change(t, files{name(0) + "/SKILL.md": skillText(name(0), "# Another\n"), name(1) + "/SKILL.md": skillText(name(1), "# Another\n"), name(most) + "/SKILL.md": skillText(name(most), "# Another\n")})
	if text, _ := c.tool("search_skills", args{"query": "x"}); !strings.Contains(text, "Loaded skills that changed: "+name(0)+", "+name(most)+". ") {
		t.Errorf("got %q", text)
	}
	many := files{}
	for i := 2; i < 30; i++ {
		many[name(i)+"/SKILL.md"] = skillText(name(i), "# Another\n")
	}
	w.change(t, many)
	if text, _ := c.tool("search_skills", args{"query": "x"}); !strings.Contains(text, name(21)+" and 8 more. Load") {
		t.Errorf("got %q", text)
	}
}

// An edit that the catalog watches reaches the connection without a reload.
func TestWatchedEditIsReported(t *testing.T) {
	w := newWorld(t, setup{tree: basic()})
	changed := make(chan struct{}, 100)
	defer w.rt.Catalog().Subscribe(func(_, _ *catalog.Snapshot) { changed <- struct{}{} })()
	ctx, stop := context.WithCancel(limited(t))
	done := make(chan struct{})
	go func() { defer close(done); _ = w.rt.Catalog().Run(ctx) }()
	defer func() { stop(); <-done }()
	c := w.begin(t, way{"stdio", legacy})
	c.told()
	c.tool("load_skill", args{"name": "csv"})
	files{"csv/SKILL.md": skillText("csv", "# CSV, another body\n")}.write(t, w.dir)
	select {
	case <-changed:
	case <-ctx.Done():
		t.Fatal("the catalog does not see the change")
	}
	if text, _ := c.tool("search_skills", args{"query": "pdf"}); !strings.Contains(text, "Loaded skills that changed: csv.") {
		t.Errorf("got %q", text)
	}
}
