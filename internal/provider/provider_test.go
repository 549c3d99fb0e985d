package provider_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/decision"
	"github.com/loadout-dev/loadout/internal/execution"
	"github.com/loadout-dev/loadout/internal/provider"
	"github.com/loadout-dev/loadout/internal/sandbox/native"
	"github.com/loadout-dev/loadout/internal/sandbox/stage/stagetest"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/skill"
)

type staged struct{ *testing.M }

func (m staged) Run() int {
	var exe string // is in the environment too
	return stagetest.Run(m.M.Run, &exe)
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(staged{m}) }

func backend() sandbox.Backend {
	return native.New(&native.Options{Stage: os.Getenv(stagetest.Variable)})
}

var usable = sync.OnceValue(func() error {
	_, err := backend().Probe(context.Background())
	return err
})

var (
	ann   = policy.Principal{ID: "ann", Kind: policy.UserPrincipal}
	robot = policy.Principal{ID: "robot", Kind: policy.AgentPrincipal}
)

// fixture is a runtime of copies of the skills in testdata.
type fixture struct {
	*loadout.Runtime
	dir    string
	grants policy.Store
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	if err := usable(); err != nil {
		t.Skipf("no sandbox here: %v", err)
	}
	w := &fixture{dir: t.TempDir(), grants: policy.NewMemoryStore()}
	if err := os.CopyFS(w.dir, os.DirFS("testdata")); err != nil {
		t.Fatal(err)
	}
	rt, err := loadout.New(t.Context(), &loadout.Options{Sources: []catalog.Source{catalog.NewDir("local", catalog.User, w.dir, nil)},
		Scripts: &loadout.Scripts{Sandbox: backend(), Grants: w.grants, Getenv: os.Getenv}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close() })
	w.Runtime = rt
	return w
}

func (w *fixture) approve(t *testing.T, name string) {
	t.Helper()
	request, err := w.ReadApprovalRequest(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	g := policy.Grant{Principal: robot, By: ann, Subject: request.Digest, Name: name, Permissions: request.Requested.Permissions(), Needs: request.Needs, Scope: policy.Always}
	if _, err := w.grants.Put(t.Context(), g); err != nil {
		t.Fatal(err)
	}
}

// start starts the provider of a skill in its current version.
func (w *fixture) start(t *testing.T, name string) (*execution.Service, error) {
	t.Helper()
	e, err := w.Catalog().Snapshot().Get(name)
	if err != nil {
		t.Fatal(err)
	}
	s, _, err := w.Catalog().Read(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := provider.Plan(s, provider.Options{UserName: "ann", Session: "s-1"})
	if err != nil {
		t.Fatal(err)
	}
	return w.Runner().Serve(t.Context(), &execution.ServiceRequest{Skill: name, Command: plan.Command, Env: plan.Env, Files: plan.Files, Caller: execution.Caller{Principal: robot}})
}

// dial connects to a provider over MCP; elicit answers its prompts.
func (w *fixture) dial(t *testing.T, name string, elicit func(*mcp.ElicitRequest) *mcp.ElicitResult) (*mcp.ClientSession, *execution.Service) {
	t.Helper()
	served, err := w.start(t, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { served.Close() })
	o := &mcp.ClientOptions{}
	if elicit != nil {
		o.ElicitationHandler = func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) { return elicit(r), nil }
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, o).Connect(ctx, &mcp.IOTransport{Reader: io.NopCloser(served), Writer: served}, nil)
	if err != nil {
		t.Fatalf("connect: %v; it said:\n%s", err, served.Stderr())
	}
	t.Cleanup(func() { c.Close() })
	return c, served
}

// call returns the text of a result and whether the call failed.
func call(t *testing.T, c *mcp.ClientSession, name string, args any) (string, bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	res, err := c.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	var text []string
	for _, part := range res.Content {
		text = append(text, part.(*mcp.TextContent).Text)
	}
	return strings.Join(text, "\n"), res.IsError
}

func list(t *testing.T, c *mcp.ClientSession) (*mcp.ListToolsResult, []string) {
	t.Helper()
	res, err := c.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range res.Tools {
		names = append(names, tool.Name)
	}
	return res, names
}

type args = map[string]any

// A provider has provider_name, supported_tools and create_tool. It receives
// its user, but no token.
func TestP1Contract(t *testing.T) {
	w := newFixture(t)
	w.approve(t, "notes")
	c, served := w.dial(t, "notes", nil)
	res, names := list(t, c)
	if want := []string{"add", "slow", "about", "fail", "question", "structured", "decorated"}; !slices.Equal(names, want) {
		t.Errorf("tools are %q, want %q", names, want)
	}
	schema, _ := json.Marshal(res.Tools[0].InputSchema)
	for _, part := range []string{`"required":["text"]`, `"what to keep"`, `"enum":["good","bad"]`, `"maximum":9`} {
		if !bytes.Contains(schema, []byte(part)) && !bytes.Contains(schema, []byte("$defs")) {
			t.Errorf("schema of add has no %s: %s", part, schema)
		}
	}
	if res.Tools[0].Title != "Add a note" || res.Tools[2].Annotations == nil || !res.Tools[2].Annotations.ReadOnlyHint {
		t.Errorf("title %q, annotations %+v", res.Tools[0].Title, res.Tools[2].Annotations)
	}
	for _, tt := range []struct {
		tool   string
		args   any
		want   string // a part of it
		failed bool
	}{
		{"add", args{"text": "milk", "tags": []any{args{"name": "shop"}, args{"name": "now", "weight": 9}}}, "MILK good [('shop', 1), ('now', 9)] 3 1", false},
		{"add", args{"text": "", "mood": "odd", "tags": []any{args{"weight": 10}}}, "invalid arguments for add", true},
		{"add", nil, "text", true},
		{"structured", args{"words": []string{"a", "b"}}, `{"count": 3.0}`, false},
		{"decorated", args{"x": 21}, "42", false},
		{"fail", nil, "skill notes, shelf.py, line 7, in fail", true},
		{"fail", nil, "KeyError: 'no such shelf'", true},
		{"question", nil, "decline {}", false},
		{"about", nil, `{"person": "ann", "session": "s-1", "user": "ann", "config": {"shout": false, "limit": 3}, "tokens": "", "get": "notes", "task": true}`, false},
	} {
		if got, failed := call(t, c, tt.tool, tt.args); !strings.Contains(got, tt.want) || failed != tt.failed {
			t.Errorf("%s(%v) is %q (failed: %v), want %q", tt.tool, tt.args, got, failed, tt.want)
		}
	}
	if _, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "nothing"}); err == nil || !strings.Contains(err.Error(), "tool nothing not found in the provider of skill notes") {
		t.Errorf("an unknown tool: %v", err)
	}
	served.Close() // until then, standard error may be incomplete
	for _, part := range []string{"this is printed while it loads", "adding milk", "a program prints too", "skill notes, tool fail:"} {
		if !strings.Contains(served.Stderr(), part) {
			t.Errorf("standard error has no %q:\n%s", part, served.Stderr())
		}
	}
}

// A tool needs no base class, only _run or _arun, or is a function. Invalid
// tools are reported when the tools are listed, not by the first call.
func TestP1ToolsWithoutBaseClass(t *testing.T) {
	w := newFixture(t)
	w.approve(t, "bare")
	c, _ := w.dial(t, "bare", nil)
	res, names := list(t, c)
	if want := []string{"bar", "later", "both", "untyped", "anything", "function", "fails", "mistaken", "invalid"}; !slices.Equal(names, want) {
		t.Errorf("tools are %q, want %q", names, want)
	}
	if res.Tools[0].Title != "Bar chart" || res.Tools[0].Description != "Draws bars." {
		t.Errorf("title %q, description %q", res.Tools[0].Title, res.Tools[0].Description)
	}
	for i, part := range map[int]string{0: `"one for each bar"`, 1: `"required":["x"]`, 3: `"required":["x"]`, 5: `"x":{"type":"integer"}`} {
		if schema, _ := json.Marshal(res.Tools[i].InputSchema); !bytes.Contains(schema, []byte(part)) {
			t.Errorf("schema of %s has no %s: %s", names[i], part, schema)
		}
	}
	for _, tt := range []struct {
		tool   string
		args   any
		want   string // a part of it
		failed bool
	}{
		{"bar", args{"values": []int{3, 5}}, "bars: 5", false},
		{"bar", args{"values": "x"}, "invalid arguments for bar", true},
		{"later", args{"x": 1}, "2", false},
		{"both", args{"x": 1}, "3", false},
		{"untyped", args{"x": 2}, "6", false},
		{"anything", args{"b": 1, "a": 2}, `["a", "b"]`, false},
		{"function", args{"x": 2}, "4", false},
		{"fails", nil, "KeyError: 'no such bar'\n  skill bare, provider.py, line 57, in _run", true},
		{"mistaken", args{"values": []int{1}}, "skill bare, provider.py, line 64, in _run", true},
		{"invalid", nil, "skill bare, provider.py, line 72, in _run", true},
	} {
		if got, failed := call(t, c, tt.tool, tt.args); !strings.Contains(got, tt.want) || failed != tt.failed {
			t.Errorf("%s(%v) is %q (failed: %v), want %q", tt.tool, tt.args, got, failed, tt.want)
		}
	}
	told, _ := res.Meta[upstream.ProblemsKey].([]any)
	for i, want := range []string{
		"tool thing skipped: TypeError: create_tool returned a Thing, not a tool: no _run or _arun method\n  skill bare, provider.py, line 93, in create_tool",
		"tool forgotten skipped: TypeError: create_tool returned the class Bar: return an instance, Bar()",
		"tool nothing skipped: TypeError: create_tool returned None, not a tool",
		"tool idle skipped: TypeError: Idle is not a tool: no _run or _arun method",
	} {
		if len(told) != 4 || !strings.HasPrefix(told[i].(string), want) {
			t.Errorf("problems are %q, want one that begins with %q", told, want)
		}
	}
}

// Calls run concurrently, and a cancelled call is not answered.
func TestP1ConcurrentCalls(t *testing.T) {
	w := newFixture(t)
	w.approve(t, "notes")
	c, _ := w.dial(t, "notes", nil)
	var waiting sync.WaitGroup
	waiting.Go(func() {
		if got, failed := call(t, c, "slow", args{"wait": true}); failed || got != `{"waited": true}` {
			t.Errorf("slow: %q %v", got, failed)
		}
	})
	if got, failed := call(t, c, "slow", nil); failed || got != `{"waited": false}` {
		t.Errorf("slow: %q %v", got, failed)
	}
	waiting.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "slow", Arguments: args{"wait": true}}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if got, _ := call(t, c, "decorated", args{"x": 1}); got != "2" {
		t.Errorf("after that: %q", got)
	}
}

func TestP1Questions(t *testing.T) {
	w := newFixture(t)
	w.approve(t, "notes")
	c, _ := w.dial(t, "notes", func(r *mcp.ElicitRequest) *mcp.ElicitResult {
		if r.Params.Message != "How many?" {
			t.Errorf("asked %q", r.Params.Message)
		}
		return &mcp.ElicitResult{Action: "accept", Content: args{"n": 7}}
	})
	if got, failed := call(t, c, "question", nil); failed || got != "accept {'n': 7}" {
		t.Errorf("got %q %v", got, failed)
	}
}

// What a provider asks of the page of Wegent, as those before 2026 did, is an action for a
// client. A failure says why.
func TestProvidersBefore2026AskThePage(t *testing.T) {
	w := newFixture(t)
	w.approve(t, "page")
	for name, test := range map[string]struct {
		answer *mcp.ElicitResult
		want   string
	}{
		"done":      {&mcp.ElicitResult{Action: "accept", Content: args{"success": true, "result": args{"svg": "<svg/>"}}}, `{"success": true, "result": {"svg": "<svg/>"}}`},
		"not drawn": {&mcp.ElicitResult{Action: "accept", Content: args{"success": false, "error": "line 1"}}, `{"success": false, "error": "line 1"}`},
		"only text": {&mcp.ElicitResult{Action: "accept"}, `{"success": false, "error": "the page did not perform render: no answer from the user, or the client has no page"}`},
		"no client": {nil, `{"success": false, "error": "the page did not perform render: the client cannot ask the user"}`},
	} {
		t.Run(name, func(t *testing.T) {
			var elicit func(*mcp.ElicitRequest) *mcp.ElicitResult
			if test.answer != nil {
				elicit = func(r *mcp.ElicitRequest) *mcp.ElicitResult {
					want := map[string]any{"skill_name": "page", "action": "render", "data": map[string]any{"code": "A --> B"}, "timeout": 7.0}
					if diff := cmp.Diff(want, r.Params.Meta["loadout/action"]); diff != "" {
						t.Error(diff)
					}
					return test.answer
				}
			}
			c, _ := w.dial(t, "page", elicit)
			var got, want any
			text, failed := call(t, c, "draw", args{"code": "A --> B"})
			if err := errors.Join(json.Unmarshal([]byte(text), &got), json.Unmarshal([]byte(test.want), &want)); err != nil || failed || !cmp.Equal(want, got) {
				t.Errorf("got %s, failed %v, %v; want %s", text, failed, err, test.want)
			}
		})
	}
}

// A part of Wegent that has no stand-in fails with what to write instead.
func TestAbsentPartsSayWhatToWrite(t *testing.T) {
	w := newFixture(t)
	w.approve(t, "page")
	c, _ := w.dial(t, "page", nil)
	for tool, want := range map[string]string{
		"model":  "app.chat_shell.models.LangChainModelFactory.create_from_config is not available: it belongs to the program that the provider was written for. Remove it. To ask the user, use await context.ask(message, schema)",
		"socket": "ws_emitter.sio is not supported: to ask the user, use await context.ask(message, schema)",
	} {
		if got, failed := call(t, c, tool, nil); !failed || !strings.Contains(got, want) || !strings.Contains(got, "provider.py, line ") {
			t.Errorf("%s: %v %s", tool, failed, got)
		}
	}
}

// The error for a module that cannot be loaded names the skill and the file.
func TestP2LoadFails(t *testing.T) {
	w := newFixture(t)
	w.approve(t, "broken")
	c, served := w.dial(t, "broken", nil)
	_, err := c.ListTools(t.Context(), nil)
	for _, part := range []string{"skill broken", "provider.py, line 1", "shelf_that_is_not_there", "requirements.txt"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("got %v, want %q in it", err, part)
		}
	}
	served.Close() // until then, standard error may be incomplete
	if !strings.Contains(served.Stderr(), "Traceback") {
		t.Error("no traceback on standard error")
	}
}

// The error for code that this version of Python cannot parse names the version.
// ba-agent's report_gen requires Python 3.12.
func TestUnknownSyntaxNamesPythonVersion(t *testing.T) {
	w := newFixture(t)
	w.approve(t, "newer")
	c, _ := w.dial(t, "newer", nil)
	_, err := c.ListTools(t.Context(), nil)
	for _, part := range []string{"SyntaxError", "provider.py, line 3", "this is Python 3.", "newer python3 that comes first in PATH"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("got %v, want %q in it", err, part)
		}
	}
}

// A tool that imports httpx, like download_attachment of Wegent's sandbox, is
// provided where httpx is not installed. It uses httpx only with a token.
func TestHTTPXNeedNotBeInstalled(t *testing.T) {
	w := newFixture(t)
	w.approve(t, "fetching")
	c, _ := w.dial(t, "fetching", nil)
	if got, failed := call(t, c, "download", map[string]any{"url": "http://127.0.0.1/"}); failed || got != "no token" {
		t.Errorf("%v %q", failed, got)
	}
}

// W19: a tool's configuration overrides its skill's configuration. Unknown tools are
// skipped and the others are provided.
func TestW19UnknownToolsAreSkipped(t *testing.T) {
	w := newFixture(t)
	w.approve(t, "notes")
	c, served := w.dial(t, "notes", nil)
	res, _ := list(t, c)
	got := map[string]string{}
	told, _ := res.Meta[upstream.ProblemsKey].([]any)
	for _, s := range told {
		name, reason, _ := strings.Cut(strings.TrimPrefix(s.(string), "tool "), " skipped: ")
		got[name] = reason
	}
	for name, part := range map[string]string{"explodes": "shared.utils.things.thing is not available", "unheard_of": "not supported by provider notes", "elsewhere": "provider another not found: the skill has notes"} {
		if !strings.Contains(got[name], part) || !strings.Contains(served.Stderr(), name+" skipped") {
			t.Errorf("%s: %q, want %q", name, got[name], part)
		}
	}
	if len(got) != 3 {
		t.Errorf("skipped are %v", got)
	}
}

// Code of a skill without an approval is not loaded.
func TestP3OnlyApprovedCodeRuns(t *testing.T) {
	w := newFixture(t)
	_, err := w.start(t, "notes")
	if re, ok := errors.AsType[*loadout.RefusedError](err); !ok || re.Decision.Code != decision.NotApproved {
		t.Errorf("got %v", err)
	}
}

// Changed code needs a new approval, but no restart of anything else.
func TestP4ChangedCodeIsReloaded(t *testing.T) {
	w := newFixture(t)
	w.approve(t, "plain")
	old, _ := w.dial(t, "plain", nil)
	file := filepath.Join(w.dir, "plain", "bin", "serve.py")
	src, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, bytes.ReplaceAll(src, []byte(`"name": "echo"`), []byte(`"name": "echo2"`)), 0o644)
	}
	if err == nil {
		err = w.Catalog().Reload(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.start(t, "plain"); err == nil {
		t.Error("changed code was started")
	}
	w.approve(t, "plain")
	fresh, _ := w.dial(t, "plain", nil)
	if _, names := list(t, fresh); !slices.Equal(names, []string{"echo2"}) {
		t.Errorf("the new one has %q", names)
	}
	if _, names := list(t, old); !slices.Equal(names, []string{"echo"}) {
		t.Errorf("the old one has %q", names)
	}
}

// A program of the skill runs in the sandbox and receives the same context.
func TestP5ProgramsAreSandboxed(t *testing.T) {
	w := newFixture(t)
	w.approve(t, "plain")
	c, served := w.dial(t, "plain", nil)
	if served.Backend != "native" {
		t.Errorf("it runs in %q", served.Backend)
	}
	if got, _ := call(t, c, "echo", nil); got != `[["--fast"], {"a": 1, "b": 2}, "plain"]` {
		t.Errorf("got %s", got)
	}
}

func TestP6ProviderGetsNoTokens(t *testing.T) {
	s := parse(t, "notes")
	plan, err := provider.Plan(s, provider.Options{Digest: "sha256:x", UserName: "ann", Session: "s"})
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(plan.Files["provider.json"], &got); err != nil {
		t.Fatal(err)
	}
	for key := range got {
		if !slices.Contains([]string{"skill", "description", "module", "class", "function", "config", "tools", "person", "session"}, key) {
			t.Errorf("it got %q", key)
		}
	}
}

func parse(t *testing.T, name string) *skill.Skill {
	t.Helper()
	src, err := os.ReadFile(filepath.Join("testdata", name, "SKILL.md"))
	if err != nil {
		t.Fatal(err)
	}
	s, problems := skill.ParseBytes(src, "SKILL.md", name)
	if s == nil {
		t.Fatal(problems)
	}
	return s
}

func TestPlan(t *testing.T) {
	for name, tt := range map[string]struct {
		p    *skill.Provider
		kind string
		want []string
		err  string
	}{
		"none":         {nil, "", nil, "no provider"},
		"command":      {&skill.Provider{Command: []string{"bin/x", "-a"}}, provider.Command, []string{"bin/x", "-a"}, ""},
		"wasm":         {&skill.Provider{WASM: "tools.wasm"}, provider.WASM, []string{"/skill/tools.wasm"}, ""},
		"class":        {&skill.Provider{Class: "P"}, provider.Python, []string{"python3", "/needs/.loadout/provider.py", "/skill/provider.py"}, ""},
		"module":       {&skill.Provider{Module: "a.b", Class: "P"}, provider.Python, []string{"python3", "/needs/.loadout/provider.py", "/skill/a/b.py"}, ""},
		"a file":       {&skill.Provider{Module: "tools.py", Class: "P"}, provider.Python, []string{"python3", "/needs/.loadout/provider.py", "/skill/tools.py"}, ""},
		"a path":       {&skill.Provider{Module: "../x", Class: "P"}, "", nil, "invalid module"},
		"no class":     {&skill.Provider{Module: "x"}, "", nil, "missing class, command or wasm file"},
		"not a class":  {&skill.Provider{Class: "os.system"}, "", nil, "invalid module"},
		"function":     {&skill.Provider{Module: "a.main", Function: "detect"}, provider.Function, []string{"python3", "/needs/.loadout/provider.py", "/skill/a/main.py"}, ""},
		"no function":  {&skill.Provider{Module: "main", Function: "os.system"}, "", nil, "invalid module"},
		"of elsewhere": {&skill.Provider{WASM: "./t.wasm"}, provider.WASM, []string{"/skill/t.wasm"}, ""},
	} {
		got, err := provider.Plan(&skill.Skill{Name: "s", Provider: tt.p}, provider.Options{Digest: "sha256:1"})
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || got.Kind != tt.kind || got.Digest != "sha256:1" {
			t.Errorf("%s: %+v, %v", name, got, err)
			continue
		}
		if diff := cmp.Diff(tt.want, got.Command); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// pythonEnv is the environment of every interpreter that the tests start.
var pythonEnv = []string{"PYTHONDONTWRITEBYTECODE=1", "PATH=/usr/bin:/bin"}

// findPython returns the path of an interpreter of the given version, such as "3.9",
// or "". A python3.9 on PATH may be a shim of pyenv, which only runs where that
// version is selected. So every candidate has to report its version first, and the
// versions of the pyenv that a shim belongs to are candidates too.
func findPython(t *testing.T, version string) string {
	var candidates []string
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		candidates = append(candidates, filepath.Join(dir, "python"+version))
		if filepath.Base(dir) == "shims" {
			installed, _ := filepath.Glob(filepath.Join(filepath.Dir(dir), "versions", version+".*", "bin", "python3"))
			candidates = append(candidates, installed...)
		}
	}
	for _, python := range candidates {
		cmd := exec.CommandContext(t.Context(), python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])")
		cmd.Env = pythonEnv
		if out, err := cmd.Output(); err == nil && strings.TrimSpace(string(out)) == version {
			return python
		}
	}
	return ""
}

// The shim works on every Python from 3.9 on that this machine has.
// A borrowed tool runs in the owner's provider, with the borrower's settings.
func TestLend(t *testing.T) {
	owner := &skill.Skill{Name: "owner", Tools: []skill.Tool{{Name: "own"}}}
	to := &skill.Skill{Name: "to", Config: json.RawMessage(`{"a":1,"b":1}`)}
	declared := []skill.Tool{{Name: "x", Provider: "owner", Config: json.RawMessage(`{"b":2}`)}}
	got, err := provider.Lend(owner, to, declared)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Tools) != 1 || got.Tools[0].Name != "x" || got.Tools[0].Provider != "" || string(got.Tools[0].Config) != `{"a":1,"b":2}` || got.Name != "owner" {
		t.Errorf("lent %+v", got)
	}
	if owner.Tools[0].Name != "own" || declared[0].Provider != "owner" || string(declared[0].Config) != `{"b":2}` {
		t.Error("a parameter was modified")
	}
}

func TestShimOnEveryPython(t *testing.T) {
	plan, err := provider.Plan(parse(t, "notes"), provider.Options{UserName: "ann", Session: "s-1"})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, data := range plan.Files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	at, err := filepath.Abs("testdata/notes")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []string{"3.9", "3.10", "3.11", "3.12", "3.13", "3.14"} {
		python := findPython(t, v)
		if python == "" {
			t.Logf("Python %s is not installed", v)
			continue
		}
		t.Run(v, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), python, filepath.Join(dir, "provider.py"))
			cmd.Env = append([]string{"LOADOUT_SKILL=" + at}, pythonEnv...)
			cmd.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"server/discover"}
{"jsonrpc":"2.0","method":"notifications/cancelled","params":[1]}
{"jsonrpc":"2.0","id":"ask-1","error":"no"}
` + strings.Repeat("[", 200000) + `
[{"jsonrpc":"2.0","id":2,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/initialized"}]
{"jsonrpc":"2.0","id":3,"method":"initialize","params":{"protocolVersion":"1999-01-01"}}
{"jsonrpc":"2.0","id":4,"method":"tools/list"}
7
`)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v\n%s", err, &stderr)
			}
			lines := strings.Split(strings.TrimSpace(string(out)), "\n")
			want := []string{`"code": -32601`, `"code": -32700`, `"id": 2, "result": {}`, `"protocolVersion": "2025-11-25"`, `"name": "decorated"`, `"code": -32600`}
			if len(lines) != len(want) {
				t.Fatalf("got %d lines:\n%s\n%s", len(lines), out, &stderr)
			}
			for i, part := range want {
				if !strings.Contains(lines[i], part) {
					t.Errorf("line %d is %s, want %s", i+1, lines[i], part)
				}
			}
		})
	}
}

// Skills of Wegent, unmodified, from the directory that LOADOUT_TEST_WEGENT names
// (backend/init_data/skills of github.com/wecode-ai/Wegent).
func TestWegentProviders(t *testing.T) {
	dir := os.Getenv("LOADOUT_TEST_WEGENT")
	if dir == "" {
		t.Skip("LOADOUT_TEST_WEGENT names no directory")
	}
	w := newFixture(t)
	for name, want := range map[string][]string{
		"mermaid-diagram": {"render_mermaid", "read_mermaid_reference"},
		"sandbox":         {"exec", "sub_claude_agent", "list_files", "read_file", "write_file", "upload_attachment"},
	} {
		if err := os.CopyFS(filepath.Join(w.dir, name), os.DirFS(filepath.Join(dir, name))); err != nil {
			t.Fatal(err)
		}
		if err := w.Catalog().Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.approve(t, name)
		c, served := w.dial(t, name, nil)
		_, names := list(t, c)
		t.Logf("%s: %q\n%s", name, names, served.Stderr())
		for _, tool := range want { // download_attachment needs httpx
			if !slices.Contains(names, tool) {
				t.Errorf("%s has no %s", name, tool)
			}
		}
		for _, try := range []struct {
			tool string
			args args
			want string
		}{
			{"render_mermaid", args{"code": "flowchart TD\n  A --> B"}, `"success": true`},
			{"render_mermaid", args{"code": "flowchart TD\n  A[x --> B"}, "Unclosed bracket"},
			{"read_mermaid_reference", args{"reference": "pie"}, "# Pie Chart"},
			{"exec", args{"command": "echo hello && pwd"}, `"stdout": "hello\n/work\n"`},
			{"write_file", args{"file_path": "/home/user/a/b.txt", "content": "kept"}, `"success": true`},
			{"list_files", args{"path": "/home/user", "depth": 2}, "/home/user/a/b.txt"},
			{"read_file", args{"file_path": "/home/user/a/b.txt"}, `"content": "kept"`},
			{"exec", args{"command": "sleep 60", "timeout_seconds": 1}, "took longer than 1 seconds"},
		} {
			if !slices.Contains(names, try.tool) {
				continue
			}
			got, failed := call(t, c, try.tool, try.args)
			t.Logf("%s(%v): failed %v: %.300s", try.tool, try.args, failed, got)
			if failed || !strings.Contains(got, try.want) {
				t.Errorf("%s: %s", try.tool, got)
			}
		}
	}
}

func TestPlanOfCommand(t *testing.T) {
	for _, command := range [][]string{{"./serve"}, {"./serve", "--verbose"}} {
		start, err := provider.Plan(&skill.Skill{Name: "x", Provider: &skill.Provider{Command: command}}, provider.Options{})
		if err != nil || start.Kind != provider.Command || !slices.Equal(start.Command, command) {
			t.Errorf("%q: planned %+v, %v", command, start, err)
		}
	}
	if _, err := provider.Plan(&skill.Skill{Name: "x", Provider: &skill.Provider{}}, provider.Options{}); err == nil || errors.Is(err, provider.ErrNone) {
		t.Errorf("without a command: %v", err)
	}
	if _, err := provider.Plan(&skill.Skill{Name: "x"}, provider.Options{}); !errors.Is(err, provider.ErrNone) {
		t.Errorf("without a provider: %v", err)
	}
}
