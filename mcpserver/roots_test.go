package mcpserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/mcpserver"
)

// rootedWorld is a world whose server serves the skills in the roots of its client.
type rootedWorld struct {
	*world
	set chan []string // receives what SetRoots was called with
}

func newRootedWorld(t *testing.T, tree files, options mcpserver.Options) *rootedWorld {
	w := &rootedWorld{set: make(chan []string, 100)}
	options.SetRoots = func(ctx context.Context, dirs []string) error {
		sources := w.rt.Catalog().Sources()[:1]
		for i, dir := range dirs {
			if dir == "/" { // the skills of this machine
				continue
			}
			sources = append(sources, catalog.NewDir(fmt.Sprintf("root%d", i), catalog.Project, dir, &catalog.DirOptions{Optional: true, Within: dir}))
		}
		err := w.rt.Catalog().SetSources(ctx, sources)
		w.set <- dirs
		return err
	}
	w.world = newWorld(t, setup{tree: tree, options: options})
	return w
}

// beginWithRoots connects a client that has roots. The server has not asked for them yet.
func (w *rootedWorld) beginWithRoots(t *testing.T, how way, name string) (c *wire, instructions string) {
	t.Helper()
	c = w.dial(t, how)
	res := c.ok("initialize", map[string]any{"protocolVersion": c.version, "capabilities": map[string]any{"roots": map[string]any{"listChanged": true}}, "clientInfo": map[string]any{"name": name, "version": "1"}})
	return c, field(t, res, "instructions")
}

// answerRoots answers the server's next question for roots.
func (c *wire) answerRoots(answer string) {
	c.t.Helper()
	m := c.wait("roots/list")
	c.raw(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, m.ID, answer))
}

// rootsOf is the answer with some URIs.
func rootsOf(uris ...string) string {
	roots := make([]map[string]string, len(uris))
	for i, uri := range uris {
		roots[i] = map[string]string{"uri": uri}
	}
	js, err := json.Marshal(map[string]any{"roots": roots})
	if err != nil {
		panic(err)
	}
	return `"result":` + string(js)
}

// field returns a member of a JSON object that is a string.
func field(t *testing.T, object json.RawMessage, name string) string {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(object, &m); err != nil {
		t.Fatal(err)
	}
	s, _ := m[name].(string)
	return s
}

// loadDescription lists the tools and returns the description of load_skill.
func (c *wire) loadDescription() string {
	c.t.Helper()
	var list struct {
		Tools []struct{ Name, Description string }
	}
	if err := json.Unmarshal(c.ok("tools/list", map[string]any{}), &list); err != nil {
		c.t.Fatal(err)
	}
	for _, tool := range list.Tools {
		if tool.Name == "load_skill" {
			return tool.Description
		}
	}
	c.t.Fatal("load_skill is not listed")
	return ""
}

func TestRootsOfClients(t *testing.T) {
	many := strings.Repeat(`,{"uri":""}`, 1_000_000) // 11 MB; a message has at most 16
	for _, tt := range []struct {
		what, answer string
		want         []string // nil if the answer is not used
	}{
		{"two roots", rootsOf("file:///work/api", "file:///work/my%20lib/"), []string{"/work/api", "/work/my lib"}},
		{"no roots", rootsOf(), []string{}},
		{"one root twice", rootsOf("file:///work/api", "file:///work//api/."), []string{"/work/api"}},
		{"this machine by name", rootsOf("file://localhost/work/api"), []string{"/work/api"}},
		{"spaces that are not escaped", rootsOf("file:///work/my lib"), []string{"/work/my lib"}},
		{"the root of the file system", rootsOf("file:///"), []string{"/"}},
		{"other schemes", rootsOf("http://example.com/work", "HTTP:/work", "/work", "", "file:///kept"), []string{"/kept"}},
		{"relative", rootsOf("file:work/api", "file:../api", "file://work/api", "file://"), []string{}},
		{"another machine", rootsOf("file://example.com/work"), []string{}},
		{"parent directories", rootsOf("file:///work/../etc", "file:///work/%2e%2e/etc", "file:///.."), []string{}},
		{"queries, fragments and bad escapes", rootsOf("file:///work?x", "file:///work#x", "file:///%zz", "file:///a%00b"), []string{}},
		{"no objects", `"result":{"roots":[null,{"uri":"file:///kept"},{}]}`, []string{"/kept"}},
		{"too long", rootsOf("file:///" + strings.Repeat("x", 1<<20)), []string{}},
		{"a million", `"result":{"roots":[{"uri":"file:///first"}` + many + `,{"uri":"file:///last"}]}`, []string{"/first"}},
		{"no list", `"result":{"roots":7}`, nil},
		{"an error", `"error":{"code":-32601,"message":"no roots here"}`, nil},
	} {
		t.Run(tt.what, func(t *testing.T) {
			t.Parallel()
			w := newRootedWorld(t, files{"pdf/SKILL.md": skillText("pdf", "")}, mcpserver.Options{RootsWait: time.Hour})
			c, _ := w.beginWithRoots(t, way{"stdio", legacy}, "test")
			c.notify("notifications/initialized", nil)
			c.answerRoots(tt.answer)
			if text := c.loadDescription(); !strings.Contains(text, "- pdf: ") { // and the answer was handled
				t.Errorf("the description is %q", text)
			}
			var got []string
			select {
			case got = <-w.set:
				if got == nil {
					got = []string{}
				}
			default:
			}
			for i := range tt.want {
				tt.want[i] = filepath.FromSlash(tt.want[i])
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Each skill has one line, in one of the texts, wherever it was found.
func TestSkillsInRootsAreListedOnce(t *testing.T) {
	all := []string{"api-one", "api-two", "lib-one", "own-0", "own-1"}
	var many files = files{}
	for i := range 40 {
		many[fmt.Sprintf("own-%d/SKILL.md", i)] = strings.Replace(skillText(fmt.Sprintf("own-%d", i), ""), "What", "What "+strings.Repeat("many words ", 20), 1)
	}
	for _, tt := range []struct {
		client  string
		tree    files
		options mcpserver.Options
		want    []string
	}{
		{"test", files{"own-0/SKILL.md": skillText("own-0", ""), "own-1/SKILL.md": skillText("own-1", "")}, mcpserver.Options{}, all},
		{"codex-mcp-client", files{"own-0/SKILL.md": skillText("own-0", ""), "own-1/SKILL.md": skillText("own-1", "")}, mcpserver.Options{}, all},
		{"gemini-cli-mcp-client", files{}, mcpserver.Options{}, []string{"api-one", "api-two", "lib-one"}},
		{"claude-code", many, mcpserver.Options{}, append(all, "own-39")},
		{"claude-code", many, mcpserver.Options{TextBudget: 3000}, append(all, "own-39")},
		// Claude Code lists the skills of its project, which is its first root.
		{"claude-code", files{"own-0/SKILL.md": skillText("own-0", "")}, mcpserver.Options{ClientHome: "/home", ClientProject: "/elsewhere"}, []string{"api-two", "lib-one", "own-0"}},
	} {
		t.Run(fmt.Sprintf("%s %d %d", tt.client, len(tt.tree), tt.options.TextBudget), func(t *testing.T) {
			tt.options.RootsWait = time.Hour
			w := newRootedWorld(t, tt.tree, tt.options)
			dir := t.TempDir()
			files{"api/.claude/skills/api-one/SKILL.md": skillText("api-one", ""), "api/skills/api-two/SKILL.md": skillText("api-two", ""), "lib/.claude/skills/lib-one/SKILL.md": skillText("lib-one", "")}.write(t, dir)
			c, instructions := w.beginWithRoots(t, way{"stdio", legacy}, tt.client)
			if strings.Contains(instructions, "api-") {
				t.Errorf("the instructions have skills of roots: %s", instructions)
			}
			c.notify("notifications/initialized", nil)
			c.answerRoots(rootsOf("file://"+filepath.ToSlash(filepath.Join(dir, "api")), "file://"+filepath.ToSlash(filepath.Join(dir, "lib"))))
			description := c.loadDescription()
			text := instructions + "\n" + description
			if tt.client == "claude-code" && len(description) > 2048 {
				t.Errorf("the description has %d characters", len(description))
			}
			for _, name := range []string{"api-one", "api-two", "lib-one", "own-0", "own-1", "own-39"} {
				want := 0
				if slices.Contains(tt.want, name) {
					want = 1
				}
				if n := strings.Count(text, "- "+name+"\n") + strings.Count(text, "- "+name+": "); n != want {
					t.Errorf("%s is listed %d times, want %d, in\n%s", name, n, want, text)
				}
			}
			if !strings.Contains(description, "- api-two: [project]") {
				t.Errorf("the skill of a root is not marked: %s", description)
			}
			if res := string(c.ok("tools/call", map[string]any{"name": "load_skill", "arguments": map[string]any{"name": "api-two"}})); strings.Contains(res, "New or changed") {
				t.Errorf("listed skills are reported as new: %s", res)
			}
			if again := c.loadDescription(); again != description {
				t.Errorf("the description changed to %q", again)
			}
		})
	}
}

// Skills in roots that change later are reported like other changes.
func TestChangedRoots(t *testing.T) {
	w := newRootedWorld(t, files{"pdf/SKILL.md": skillText("pdf", "")}, mcpserver.Options{RootsWait: time.Hour})
	dir := t.TempDir()
	files{"api/one/SKILL.md": skillText("one", ""), "lib/two/SKILL.md": skillText("two", "")}.write(t, dir)
	uri := func(name string) string { return "file://" + filepath.ToSlash(filepath.Join(dir, name)) }
	c, _ := w.beginWithRoots(t, way{"stdio", legacy}, "test")
	c.notify("notifications/initialized", nil)
	c.answerRoots(rootsOf(uri("api")))
	description := c.loadDescription()
	c.notify("notifications/roots/list_changed", nil)
	c.answerRoots(rootsOf(uri("lib")))
	c.wait("notifications/tools/list_changed")
	for range 2 {
		<-w.set
	}
	if res := string(c.ok("tools/call", map[string]any{"name": "load_skill", "arguments": map[string]any{"name": "two"}})); !strings.Contains(res, "New or changed skills:\\n- two: ") || !strings.Contains(res, "Removed skills: one") {
		t.Errorf("the change is not reported: %s", res)
	}
	if again := c.loadDescription(); again != description {
		t.Errorf("the description changed to %q", again)
	}
}

// A client is asked again once, however many changes it reports meanwhile.
func TestRootsThatChangeOften(t *testing.T) {
	w := newRootedWorld(t, nil, mcpserver.Options{})
	c, _ := w.beginWithRoots(t, way{"stdio", legacy}, "test")
	c.notify("notifications/initialized", nil)
	m := c.wait("roots/list")
	for range 100 {
		c.notify("notifications/roots/list_changed", nil)
	}
	c.ok("ping", nil) // the server has read them
	c.raw(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, m.ID, rootsOf("file:///a")))
	c.answerRoots(rootsOf("file:///b"))
	for _, want := range []string{filepath.FromSlash("/a"), filepath.FromSlash("/b")} {
		if got := <-w.set; !slices.Equal(got, []string{want}) {
			t.Errorf("roots %q, want %s", got, want)
		}
	}
	c.ok("ping", nil)
	if slices.ContainsFunc(c.notes, func(m message) bool { return m.Method == "roots/list" }) {
		t.Error("the client is asked a third time")
	}
}

// A client that does not answer gets everything else, and may answer later.
func TestClientThatDoesNotTellItsRoots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newRootedWorld(t, files{"pdf/SKILL.md": skillText("pdf", "")}, mcpserver.Options{})
		start := time.Now()
		c, instructions := w.beginWithRoots(t, way{"stdio", legacy}, "claude-code")
		if took := time.Since(start); took > 0 || !strings.Contains(instructions, "- pdf: ") {
			t.Errorf("initialized after %v with %q", took, instructions)
		}
		c.notify("notifications/initialized", nil)
		c.loadDescription()
		if took := time.Since(start); took != time.Second {
			t.Errorf("tools listed after %v, want a second", took)
		}
		c.ok("tools/call", map[string]any{"name": "load_skill", "arguments": map[string]any{"name": "pdf"}})
		if took := time.Since(start); took != time.Second {
			t.Errorf("skill loaded after %v, want a second", took)
		}
		c.wait("notifications/cancelled")
		if took := time.Since(start); took != 30*time.Second {
			t.Errorf("the question is withdrawn after %v", took)
		}
		c.loadDescription()
		if took := time.Since(start); took != 30*time.Second {
			t.Errorf("tools listed again after %v", took)
		}
		c.notes = slices.DeleteFunc(c.notes, func(m message) bool { return m.Method == "roots/list" })
		c.notify("notifications/roots/list_changed", nil)
		c.answerRoots(rootsOf("file:///a"))
		if got := <-w.set; !slices.Equal(got, []string{filepath.FromSlash("/a")}) {
			t.Errorf("roots %q", got)
		}
	})
}

// A server that is closed does not wait for roots.
func TestCloseWhileAskingForRoots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newRootedWorld(t, nil, mcpserver.Options{})
		c, _ := w.beginWithRoots(t, way{"stdio", legacy}, "test")
		c.notify("notifications/initialized", nil)
		c.wait("roots/list")
		start := time.Now()
		if err := w.server.Close(); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if took := time.Since(start); took > 0 {
			t.Errorf("closed after %v", took)
		}
	})
}

// Run ends at once when its context is done, also while the client is asked for its
// roots. The server then serves other connections.
func TestRunEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newRootedWorld(t, nil, mcpserver.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		c, ended := w.dialUntil(t, ctx, legacy)
		defer c.carrier.close()
		c.ok("initialize", map[string]any{"protocolVersion": legacy, "capabilities": map[string]any{"roots": map[string]any{}}, "clientInfo": map[string]any{"name": "test", "version": "1"}})
		c.notify("notifications/initialized", nil)
		c.wait("roots/list")
		select {
		case err := <-ended:
			t.Fatalf("ended before its context: %v", err)
		default:
		}
		start := time.Now()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want that of the context", err)
		}
		if took := time.Since(start); took > 0 {
			t.Errorf("ended after %v", took)
		}
		w.begin(t, way{"stdio", legacy}).ok("ping", nil)
	})
}

func TestClientsThatAreNotAskedForRoots(t *testing.T) {
	for _, tt := range []struct {
		how  way
		caps map[string]any
		set  bool
	}{
		{way{"stdio", legacy}, map[string]any{}, true},
		{way{"stdio", legacy}, map[string]any{"roots": map[string]any{}}, false},
		{way{"http", legacy}, map[string]any{"roots": map[string]any{}}, true},
		{way{"stdio", modern}, map[string]any{"roots": map[string]any{}}, true},
	} {
		t.Run(fmt.Sprint(tt.how, tt.caps, tt.set), func(t *testing.T) {
			w := newRootedWorld(t, nil, mcpserver.Options{RootsWait: time.Hour})
			if !tt.set {
				w.world = newWorld(t, setup{})
			}
			c := w.dial(t, tt.how)
			if tt.how.version < modern {
				c.ok("initialize", map[string]any{"protocolVersion": c.version, "capabilities": tt.caps, "clientInfo": map[string]any{"name": "test", "version": "1"}})
				c.notify("notifications/initialized", nil)
				c.notify("notifications/roots/list_changed", nil)
			}
			c.loadDescription()
			c.loadDescription()
			if slices.ContainsFunc(c.notes, func(m message) bool { return m.Method == "roots/list" }) {
				t.Error("the client is asked")
			}
		})
	}
}
