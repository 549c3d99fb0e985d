package mcpserver_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/sandbox/native"
	"github.com/loadout-dev/loadout/internal/sandbox/stage/stagetest"
	"github.com/loadout-dev/loadout/internal/tokencount"
	"github.com/loadout-dev/loadout/internal/toolname"
	"github.com/loadout-dev/loadout/mcpserver"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/sandbox"
)

// staged runs the tests with a stage of their own: a test binary is one too, but
// with -race it needs more memory than a sandbox allows its first process.
type staged struct{ *testing.M }

func (m staged) Run() int {
	var exe string // is in the environment too
	return stagetest.Run(m.M.Run, &exe)
}

// box is the native backend, which reports the start of commands and the end of
// sandboxes.
type box struct {
	sandbox.Backend
	begun, done chan struct{}
}

func newBox() *box {
	return &box{native.New(&native.Options{Stage: os.Getenv(stagetest.Variable)}), make(chan struct{}, 64), make(chan struct{}, 64)}
}

func (b *box) Start(ctx context.Context, spec *sandbox.Spec) (sandbox.Sandbox, error) {
	s, err := b.Backend.Start(ctx, spec)
	if err != nil {
		return nil, err
	}
	return &boxed{Sandbox: s, box: b}, nil
}

type boxed struct {
	sandbox.Sandbox
	box  *box
	once sync.Once
}

func (s *boxed) Exec(ctx context.Context, cmd *sandbox.Cmd) (sandbox.Process, error) {
	p, err := s.Sandbox.Exec(ctx, cmd)
	s.box.begun <- struct{}{}
	return p, err
}

func (s *boxed) Close() error {
	err := s.Sandbox.Close()
	s.once.Do(func() { s.box.done <- struct{}{} })
	return err
}

// await waits for a signal.
func await(t testing.TB, ctx context.Context, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-ctx.Done():
		t.Fatalf("%s does not come", what)
	}
}

var usable = sync.OnceValue(func() error {
	_, err := newBox().Probe(context.Background())
	return err
})

// workshop is a world whose server runs scripts.
type workshop struct {
	*world
	box    *box
	grants policy.Store
}

// newWorkshop returns a workshop in which all skills of the tree are approved.
func newWorkshop(t testing.TB, tree files, o mcpserver.Options) *workshop {
	t.Helper()
	if err := usable(); err != nil {
		t.Skipf("no sandbox here: %v", err)
	}
	s := &workshop{box: newBox(), grants: policy.NewMemoryStore()}
	s.world = newWorld(t, setup{tree: tree, options: o, scripts: &loadout.Scripts{Sandbox: s.box, Grants: s.grants, FolderDir: filepath.Join(t.TempDir(), "work")}})
	for name := range tree {
		if dir, ok := strings.CutSuffix(name, "/SKILL.md"); ok {
			s.approve(t, dir)
		}
	}
	return s
}

func (s *workshop) approve(t testing.TB, name string) {
	t.Helper()
	w, err := s.rt.ReadApprovalRequest(t.Context(), name)
	if err == nil {
		_, err = s.grants.Put(t.Context(), policy.Grant{Principal: policy.LocalUser(), By: policy.LocalUser(), Scope: policy.Always,
			Subject: w.Digest, Needs: w.Needs, Name: w.Entry.Name, Origin: w.Entry.Origin, Permissions: w.Requested.Permissions()})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// shell is a skill whose script does what its first argument says.
func shell() files {
	return files{"sh/SKILL.md": skillText("sh", "x"), "sh/do.sh": `eval "$1"` + "\n", "sh/notes.txt": "x"}
}

func line(script string, more ...any) args {
	a := args{"skill": "sh", "script": "do.sh", "args": []string{script}}
	for i := 0; i < len(more); i += 2 {
		a[more[i].(string)] = more[i+1]
	}
	return a
}

// ran is the structured result of a run.
type ran struct {
	ExitCode    int      `json:"exit_code"`
	Stdout      string   `json:"stdout"`
	Stderr      string   `json:"stderr"`
	DurationMS  int64    `json:"duration_ms"`
	Killed      bool     `json:"killed"`
	Truncated   bool     `json:"truncated"`
	Reason      string   `json:"reason"`
	Detail      string   `json:"detail"`
	Backend     string   `json:"backend"`
	Tier        int      `json:"tier"`
	DeniedHosts []string `json:"denied_hosts"`
	Digest      string   `json:"digest"`
	Files       []struct {
		Path   string `json:"path"`
		Size   int64  `json:"size"`
		SHA256 string `json:"sha256"`
	} `json:"files"`
	MoreFiles int      `json:"more_files"`
	Skill     string   `json:"skill"`
	Script    string   `json:"script"`
	Folder    string   `json:"folder"`
	Notes     []string `json:"notes"`
	News      string   `json:"news"`
}

func links(res *mcp.CallToolResult) []*mcp.ResourceLink {
	var out []*mcp.ResourceLink
	for _, c := range res.Content {
		if l, ok := c.(*mcp.ResourceLink); ok {
			out = append(out, l)
		}
	}
	return out
}

func TestRunSkillScript(t *testing.T) {
	for _, how := range ways {
		t.Run(how.String(), func(t *testing.T) {
			s := newWorkshop(t, shell(), mcpserver.Options{})
			c := s.connect(t, how, nil)
			res := c.call("run_skill_script", line("echo hi; cat; echo a,b > out/r.csv; mkdir out/d; printf '\\377\\000' > out/d/b; echo kept > k", "stdin", "from stdin\n"))
			got := structured[ran](t, res)
			if res.IsError || got.Stdout != "hi\nfrom stdin\n" || got.Reason != "ok" || got.Skill != "sh" || got.Script != "do.sh" || got.Backend != "native" || got.Tier != 3 ||
				!strings.HasPrefix(got.Digest, "sha256:") || len(got.Files) != 3 || got.Files[1].Path != "out/d/b" || got.Files[1].Size != 2 || len(got.Files[1].SHA256) != 64 || got.Folder == "" {
				t.Fatalf("got %+v", got)
			}
			dir, err := s.rt.FolderPath(got.Folder)
			if err != nil {
				t.Fatal(err)
			}
			want := "Exit code 0.\nOutput:\nhi\nfrom stdin\nFiles in the working folder " + got.Folder + "; to go on with them, run with this folder:\n- " +
				dir + "/k (5 bytes)\n- " + dir + "/out/d/b (2 bytes)\n- " + dir + "/out/r.csv (4 bytes)\n"
			if textOf(res) != want {
				t.Errorf("the text is %q, want %q", textOf(res), want)
			}
			found := links(res)
			if len(found) != 3 || found[2].URI != "loadout-work://"+got.Folder+"/out/r.csv" || found[2].MIMEType != "text/csv" || *found[2].Size != 4 || found[2].Name != "out/r.csv" {
				t.Fatalf("links %+v", found)
			}
			for i, want := range []string{"kept\n", "\xff\x00", "a,b\n"} {
				read, err := c.ReadResource(c.ctx, &mcp.ReadResourceParams{URI: found[i].URI})
				if err != nil || len(read.Contents) != 1 || read.Contents[0].Text+string(read.Contents[0].Blob) != want || read.Contents[0].MIMEType != found[i].MIMEType {
					t.Errorf("reading %s: %+v, %v", found[i].URI, read, err)
				}
			}
			again := structured[ran](t, c.call("run_skill_script", line("cat out/r.csv; rm -r out/*", "folder", got.Folder)))
			if again.Stdout != "a,b\n" || again.Folder != got.Folder || len(again.Files) != 1 {
				t.Errorf("going on in the folder: %+v", again)
			}
			if res := c.call("run_skill_script", line("echo nothing")); strings.Contains(textOf(res), "folder") || len(links(res)) != 0 || structured[ran](t, res).Folder != "" {
				t.Errorf("a run without files: %q", textOf(res))
			}
			bad := c.call("run_skill_script", line("echo said; echo why >&2; echo a > out/a; exit 3"))
			if got := structured[ran](t, bad); !bad.IsError || got.ExitCode != 3 || got.Reason != "exit" || len(links(bad)) != 1 ||
				!strings.HasPrefix(textOf(bad), "Exit code 3.\nOutput:\nsaid\nErrors:\nwhy\nFiles in") || !strings.HasSuffix(textOf(bad), "/out/a (2 bytes)\n") {
				t.Errorf("a failure: %+v, %q", got, textOf(bad))
			}
			templates, err := c.ListResourceTemplates(c.ctx, nil)
			if err != nil || !slices.ContainsFunc(templates.ResourceTemplates, func(r *mcp.ResourceTemplate) bool { return strings.HasPrefix(r.URITemplate, "loadout-work://") }) {
				t.Errorf("templates %+v, %v", templates, err)
			}
		})
	}
}

func TestArgumentsAreListOrLine(t *testing.T) {
	tree := shell()
	tree["sh/show.sh"] = `for a in "$@"; do echo "<$a>"; done` + "\n"
	s := newWorkshop(t, tree, mcpserver.Options{})
	c := s.connect(t, way{"stdio", modern}, nil)
	for _, tt := range []struct {
		args any
		want string
	}{
		{nil, ""},
		{[]string{}, ""},
		{[]string{"a b", "", "$HOME; ls", "-x"}, "<a b>\n<>\n<$HOME; ls>\n<-x>\n"},
		{"", ""},
		{`one 'two three' "$HOME" a\ b; ls *`, "<one>\n<two three>\n<$HOME>\n<a b;>\n<ls>\n<*>\n"},
	} {
		a := args{"skill": "sh", "script": "show.sh"}
		if tt.args != nil {
			a["args"] = tt.args
		}
		if res := c.call("run_skill_script", a); structured[ran](t, res).Stdout != tt.want {
			t.Errorf("%v: got %q, want %q", tt.args, textOf(res), tt.want)
		}
	}
	if res := c.call("run_skill_script", line("echo ran", "arguments", []string{"x"})); !res.IsError || !strings.Contains(textOf(res), `unexpected additional properties ["arguments"]`) {
		t.Errorf("an argument that the tool has not: %q", textOf(res))
	}
	for _, bad := range []any{`one 'two`, nil, 7, map[string]any{"a": 1}, []any{1}} {
		res, err := c.CallTool(c.ctx, &mcp.CallToolParams{Name: "run_skill_script", Arguments: args{"skill": "sh", "script": "show.sh", "args": bad}})
		if err == nil && !res.IsError {
			t.Errorf("%v: got %q", bad, textOf(res))
		}
	}
}

func TestClientInputs(t *testing.T) {
	parent := t.TempDir()
	workspace := filepath.Join(parent, "project")
	files{"project/doc/a.txt": "ay\n", "project/doc/b.txt": "bee\n", "secret": "secret\n"}.write(t, parent)
	if err := errors.Join(os.Symlink("../secret", filepath.Join(workspace, "out")), os.Symlink(parent, filepath.Join(workspace, "up")), os.Symlink("doc/a.txt", filepath.Join(workspace, "in")),
		os.Chmod(parent, 0o755), os.Chmod(filepath.Dir(parent), 0o755)); err != nil {
		t.Fatal(err)
	}
	s := newWorkshop(t, shell(), mcpserver.Options{Workspace: workspace})
	c := s.connect(t, way{"stdio", legacy}, nil)
	const list = `cd in && find . -type f | sort | while read f; do echo "$f: $(cat "$f")"; done`
	for _, tt := range []struct {
		name   string
		inputs []args
		want   string
	}{
		{"text", []args{{"name": "d/a", "text": "t"}}, "./d/a: t\n"},
		{"nothing", []args{{"name": "empty", "text": ""}}, "./empty: \n"},
		{"nothing in base64", []args{{"name": "empty", "base64": ""}}, "./empty: \n"},
		{"a text and nothing else", []args{{"name": "a", "text": "t", "base64": "", "path": ""}}, "./a: t\n"},
		{"a path and nothing else", []args{{"name": "", "text": "", "base64": "", "path": "doc/a.txt"}}, "./a.txt: ay\n"},
		{"base64", []args{{"name": "b", "base64": base64.StdEncoding.EncodeToString([]byte("é\n"))}}, "./b: é\n"},
		{"a path", []args{{"path": "doc/a.txt"}}, "./a.txt: ay\n"},
		{"a path by another name", []args{{"path": "./doc//a.txt", "name": "x/y"}}, "./x/y: ay\n"},
		{"an absolute one", []args{{"path": filepath.Join(workspace, "doc/b.txt")}}, "./b.txt: bee\n"},
		{"a directory", []args{{"path": "doc"}}, "./doc/a.txt: ay\n./doc/b.txt: bee\n"},
		{"a link inside", []args{{"path": "in"}}, "./in: ay\n"},
		{"several", []args{{"path": "doc/a.txt"}, {"name": "b", "text": "t"}}, "./a.txt: ay\n./b: t\n"},
	} {
		res := c.call("run_skill_script", line(list, "inputs", tt.inputs))
		if res.IsError || structured[ran](t, res).Stdout != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, textOf(res), tt.want)
		}
	}
	for _, tt := range []struct {
		name   string
		inputs []args
		want   string
	}{
		{"above", []args{{"path": "../secret"}}, "is not a path in the workspace"},
		{"absolute elsewhere", []args{{"path": "/etc/passwd"}}, "is not a path in the workspace"},
		{"all of it", []args{{"path": "."}}, "is not a path in the workspace"},
		{"a link out of it", []args{{"path": "out"}}, "escapes"},
		{"through a link out of it", []args{{"path": "up/secret"}}, "escapes"},
		{"missing", []args{{"path": "doc/c.txt"}}, "no such file"},
		{"two at once", []args{{"name": "a", "text": "x", "base64": "eA=="}}, "one of text, base64 and path"},
		{"a name alone", []args{{"name": "x"}}, `input "x": set exactly one of text, base64 and path`},
		{"a name and no path", []args{{"name": "x", "path": ""}}, `input "x": set exactly one of text, base64 and path`},
		{"what no input has", []args{{"name": "x", "content": "t"}}, `unexpected additional properties ["content"]`},
		{"path and text", []args{{"path": "doc/a.txt", "text": "x"}}, "one of text, base64 and path"},
		{"no base64", []args{{"name": "a", "base64": "%"}}, "base64"},
		{"no name", []args{{"text": "x"}}, "invalid input name"},
		{"a name that climbs", []args{{"name": "../x", "text": "x"}}, "invalid input name"},
		{"twice", []args{{"path": "doc/a.txt"}, {"name": "a.txt", "text": "x"}}, "duplicate input name a.txt"},
	} {
		if res := c.call("run_skill_script", line("echo ran; cat in/*", "inputs", tt.inputs)); !res.IsError || !strings.Contains(textOf(res), tt.want) || res.StructuredContent != nil {
			t.Errorf("%s: got %q, want %q", tt.name, textOf(res), tt.want)
		}
	}
	res := c.call("run_skill_script", line("cat /workspace/doc/a.txt; cat /workspace/out; cat /workspace/up/secret; (echo x > /workspace/x) || echo read-only"))
	if got := structured[ran](t, res); got.Stdout != "ay\nread-only\n" {
		t.Errorf("the workspace itself: %+v", got)
	}
	none := newWorkshop(t, shell(), mcpserver.Options{}).connect(t, way{"stdio", legacy}, nil)
	if res := none.call("run_skill_script", line("true", "inputs", []args{{"path": "doc/a.txt"}})); !res.IsError || !strings.Contains(textOf(res), "--workspace DIR") {
		t.Errorf("without a workspace: %q", textOf(res))
	}
}

func TestRefusedRunSaysWhatToDo(t *testing.T) {
	tree := shell()
	tree["deploy/SKILL.md"] = "---\nname: deploy\ndescription: Deploys.\ndisable-model-invocation: true\n---\n"
	tree["deploy/do.sh"] = "echo ran"
	tree["fresh/SKILL.md"], tree["fresh/do.sh"] = skillText("fresh", "x"), "echo ran"
	s := newWorkshop(t, tree, mcpserver.Options{HowToApprove: func(err error) string {
		if e, ok := errors.AsType[*loadout.RefusedError](err); ok {
			return "press the button for " + e.Skill
		}
		return ""
	}})
	s.grants.Revoke(t.Context(), "fresh")
	c := s.connect(t, way{"http", modern}, nil)
	for _, tt := range []struct {
		name string
		args args
		want string
	}{
		{"not approved", args{"skill": "fresh", "script": "do.sh"}, "The user can press the button for fresh: skill fresh may not run scripts: not approved."},
		{"for people", args{"skill": "deploy", "script": "do.sh"}, "only users can load skill"},
		{"no such skill", args{"skill": "shh", "script": "do.sh"}, "did you mean sh?"},
		{"no such script", args{"skill": "sh", "script": "scripts/do.sh"}, "did you mean do.sh?"},
		{"no script", args{"skill": "sh", "script": "notes.txt"}, "notes.txt is not a script; its scripts are do.sh"},
		{"outside", args{"skill": "sh", "script": "../fresh/do.sh"}, "is not a path in the skill"},
		{"no such folder", line("echo ran", "folder", "abcdefghijklmnop"), "working folder not found; omit folder to start a new one"},
		{"no folder", line("echo ran", "folder", "../../etc"), "working folder not found; omit folder to start a new one"},
	} {
		if res := c.call("run_skill_script", tt.args); !res.IsError || !strings.Contains(textOf(res), tt.want) || res.StructuredContent != nil {
			t.Errorf("%s: got %q, want %q", tt.name, textOf(res), tt.want)
		}
	}
	s.change(t, files{"sh/notes.txt": "y"})
	if res := c.call("run_skill_script", line("echo ran")); !res.IsError || !strings.Contains(textOf(res), "changed since it was approved") || !strings.Contains(textOf(res), "press the button for sh") {
		t.Errorf("after a change: %q", textOf(res))
	}
	s.approve(t, "sh")
	if err := s.rt.Catalog().SetFilter(catalog.Filter{Allow: []string{"fresh"}}); err != nil {
		t.Fatal(err)
	}
	if res := c.call("run_skill_script", line("echo ran")); !res.IsError || !strings.Contains(textOf(res), "allowlist") {
		t.Errorf("off the allowlist: %q", textOf(res))
	}
	if err := s.rt.Catalog().SetFilter(catalog.Filter{Disabled: true}); err != nil {
		t.Fatal(err)
	}
	if res := c.call("run_skill_script", line("echo ran")); !res.IsError || textOf(res) != "Skills are switched off by the configuration (skills.enabled)." {
		t.Errorf("with the kill switch: %q", textOf(res))
	}
	select {
	case <-s.box.begun:
		t.Error("something was run")
	default:
	}
}

func TestResultContainsExitReason(t *testing.T) {
	w := newWorld(t, setup{tree: shell()})
	for _, tt := range []struct {
		code   int
		reason sandbox.Reason
		detail string
		want   string
	}{
		{0, sandbox.OK, "", "Exit code 0.\n"},
		{3, sandbox.Exited, "", "Exit code 3.\n"},
		{139, sandbox.Exited, "killed by SIGSEGV", "Exit code 139 (exit: killed by SIGSEGV).\n"},
		{137, sandbox.Timeout, "timeout of 1s exceeded", "Exit code 137 (timeout: timeout of 1s exceeded).\n"},
		{137, sandbox.OOM, "", "Exit code 137 (oom).\n"},
		{137, sandbox.Disabled, "", "Exit code 137 (disabled: its grant was revoked).\n"},
	} {
		r := &loadout.RunResult{}
		r.ExitCode, r.Reason, r.Detail = tt.code, tt.reason, tt.detail
		if got := w.server.RanText(r); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.reason, got, tt.want)
		}
	}
}

func TestSchemasUseCommonKeywords(t *testing.T) {
	for _, compat := range append(toolname.CompatSystems(), "") {
		w := newWorld(t, setup{tree: shell(), scripts: &loadout.Scripts{Sandbox: newBox()}, options: mcpserver.Options{Compat: compat}})
		c := w.connect(t, way{"stdio", modern}, nil)
		list, err := c.ListTools(c.ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range list.Tools {
			var check func(at string, schema any, strict bool)
			check = func(at string, schema any, strict bool) {
				m, ok := schema.(map[string]any)
				if !ok {
					t.Errorf("%s: the schema is %v", at, schema)
					return
				}
				if _, ok := m["type"].(string); !ok {
					t.Errorf("%s: type %v", at, m["type"])
				}
				if more, ok := m["additionalProperties"]; m["type"] == "object" && (strict && more != false || !strict && ok) {
					t.Errorf("%s: additionalProperties %v", at, more)
				}
				if m["type"] == "array" {
					check(at+"[]", m["items"], strict)
				}
				properties, _ := m["properties"].(map[string]any)
				for name, p := range properties {
					check(at+"."+name, p, strict)
				}
			}
			check(compat+" "+tool.Name, tool.InputSchema, true)
			if tool.OutputSchema != nil {
				check(compat+" "+tool.Name+" →", tool.OutputSchema, false)
			}
		}
	}
}

func TestRefreshRunsBeforeEachRun(t *testing.T) {
	var s *workshop
	var fail error
	calls := 0
	s = newWorkshop(t, shell(), mcpserver.Options{Refresh: func(ctx context.Context) error {
		if calls++; calls == 3 {
			return s.rt.Catalog().SetFilter(catalog.Filter{Disabled: true})
		}
		return fail
	}})
	c := s.connect(t, way{"stdio", legacy}, nil)
	if res := c.call("run_skill_script", line("echo ran")); res.IsError || calls != 1 {
		t.Errorf("got %q after %d calls", textOf(res), calls)
	}
	<-s.box.begun
	fail = errors.New("config.toml:3: no such key")
	if res := c.call("run_skill_script", line("echo ran")); !res.IsError || textOf(res) != "Nothing was run, as the configuration cannot be read: config.toml:3: no such key" {
		t.Errorf("got %q", textOf(res))
	}
	if res := c.call("run_skill_script", line("echo ran")); !res.IsError || !strings.Contains(textOf(res), "switched off") {
		t.Errorf("what it switches off counts at once: %q", textOf(res))
	}
	select {
	case <-s.box.begun:
		t.Error("something was run")
	default:
	}
}

func TestProgressIsReportedDuringRun(t *testing.T) {
	for _, how := range ways {
		t.Run(how.String(), func(t *testing.T) {
			workspace := t.TempDir()
			if err := errors.Join(os.Chmod(workspace, 0o755), os.Chmod(filepath.Dir(workspace), 0o755)); err != nil {
				t.Fatal(err)
			}
			s := newWorkshop(t, shell(), mcpserver.Options{Workspace: workspace})
			var mu sync.Mutex
			var reported []*mcp.ProgressNotificationParams
			c := s.connect(t, how, &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
				mu.Lock()
				defer mu.Unlock()
				if reported = append(reported, req.Params); len(reported) == 2 {
					files{"go": ""}.write(t, workspace)
				}
			}})
			p := &mcp.CallToolParams{Name: "run_skill_script", Arguments: line("until [ -e /workspace/go ]; do sleep 0.02; done; echo went")}
			p.SetProgressToken("mine")
			res, err := c.CallTool(c.ctx, p)
			if err != nil || structured[ran](t, res).Stdout != "went\n" {
				t.Fatalf("got %+v, %v", res, err)
			}
			mu.Lock()
			defer mu.Unlock()
			for i, n := range reported {
				if n.ProgressToken != "mine" || i > 0 && n.Progress <= reported[i-1].Progress || !strings.Contains(n.Message, "running do.sh") && !strings.Contains(n.Message, "preparing") {
					t.Errorf("got %+v", n)
				}
			}
			if last := reported[len(reported)-1]; !strings.HasPrefix(last.Message, "running do.sh, ") || !strings.HasSuffix(last.Message, "s") {
				t.Errorf("the last is %q", last.Message)
			}
		})
	}
}

// What is given up ends, with all that it started.
func TestCancelledRunEnds(t *testing.T) {
	for _, how := range ways {
		t.Run(how.String(), func(t *testing.T) {
			s := newWorkshop(t, shell(), mcpserver.Options{})
			c := s.connect(t, how, nil)
			ctx, cancel := context.WithCancel(c.ctx)
			failed := make(chan error, 1)
			go func() {
				_, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "run_skill_script", Arguments: line("sleep 600 & (setsid sleep 600 &); echo x > out/x; sleep 600")})
				failed <- err
			}()
			await(t, c.ctx, s.box.begun, "the run")
			cancel()
			await(t, c.ctx, s.box.done, "the end of the sandbox")
			if err := <-failed; !errors.Is(err, context.Canceled) {
				t.Errorf("the call ends with %v", err)
			}
			if res := c.call("run_skill_script", line("echo next")); structured[ran](t, res).Stdout != "next\n" {
				t.Errorf("the next call: %q", textOf(res))
			}
		})
	}
}

func TestRunEndsWithConnectionOrServer(t *testing.T) {
	t.Run("standard input ends", func(t *testing.T) {
		s := newWorkshop(t, shell(), mcpserver.Options{})
		c := s.begin(t, way{"stdio", legacy})
		c.start("tools/call", map[string]any{"name": "run_skill_script", "arguments": line("sleep 600")})
		await(t, c.ctx, s.box.begun, "the run")
		c.carrier.close()
		await(t, c.ctx, s.box.done, "the end of the sandbox")
	})
	t.Run("approval revoked", func(t *testing.T) {
		s := newWorkshop(t, shell(), mcpserver.Options{})
		c := s.begin(t, way{"stdio", modern})
		id := c.start("tools/call", map[string]any{"name": "run_skill_script", "arguments": line("echo part; sleep 600")})
		await(t, c.ctx, s.box.begun, "the run")
		s.grants.Revoke(t.Context(), "sh")
		var res struct {
			IsError           bool
			StructuredContent ran
		}
		if err := json.Unmarshal(c.answer(id).Result, &res); err != nil || !res.IsError || res.StructuredContent.Reason != "disabled" || !res.StructuredContent.Killed {
			t.Errorf("got %+v, %v", res, err)
		}
	})
}

func TestLongOutputIsTruncatedForModel(t *testing.T) {
	s := newWorkshop(t, shell(), mcpserver.Options{})
	c := s.connect(t, way{"stdio", legacy}, nil)
	res := c.call("run_skill_script", line(`i=0; while [ $i -lt 10000 ]; do printf 'é%04d' $i; i=$((i+1)); done`))
	got := structured[ran](t, res)
	want := "é2399\n[… 26000 characters are left out …]\né7600"
	if n := len([]rune(got.Stdout)); !strings.HasPrefix(got.Stdout, "é0000é0001") || !strings.Contains(got.Stdout, want) || !strings.HasSuffix(got.Stdout, "é9999") || n > 24_100 || got.Truncated {
		t.Errorf("%d characters: …%s…", n, got.Stdout[:40])
	}
	if !strings.Contains(textOf(res), want) {
		t.Error("the text is not cut the same")
	}
	res = c.call("run_skill_script", line("i=0; while [ $i -lt 150 ]; do echo $i > out/$i; i=$((i+1)); done"))
	if got := structured[ran](t, res); len(got.Files) != 100 || got.MoreFiles != 50 || len(links(res)) != 100 || !strings.HasSuffix(textOf(res), "… and 50 more\n") {
		t.Errorf("%d files, %d more, %d links", len(got.Files), got.MoreFiles, len(links(res)))
	}
	res = c.call("run_skill_script", line("head -c 2000000 /dev/zero | tr '\\0' x"))
	if got := structured[ran](t, res); !got.Truncated || !strings.Contains(textOf(res), "More was written than is kept.") {
		t.Errorf("beyond what is stored: %+v", got.Truncated)
	}
}

func TestWorkspaceFilesAreReadByHandleOnly(t *testing.T) {
	s := newWorkshop(t, shell(), mcpserver.Options{})
	c := s.connect(t, way{"http", legacy}, nil)
	folder := structured[ran](t, c.call("run_skill_script", line("echo x > 'a b%.txt'; mkdir d"))).Folder
	read, err := c.ReadResource(c.ctx, &mcp.ReadResourceParams{URI: "loadout-work://" + folder + "/a%20b%25.txt"})
	if err != nil || read.Contents[0].Text != "x\n" {
		t.Errorf("got %+v, %v", read, err)
	}
	dir, _ := s.rt.FolderPath(folder)
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, uri := range []string{
		folder + "/no", folder + "/", folder, folder + "/..", folder + "/../" + folder + "/a", folder + "/%2e%2e/x", folder + "/link", folder + "//etc/passwd", folder + "/d",
		"../x", "abcdefghijklmnop/a", folder + ".lock/x", folder + "/%zz",
	} {
		if read, err := c.ReadResource(c.ctx, &mcp.ReadResourceParams{URI: "loadout-work://" + uri}); err == nil {
			t.Errorf("%s: got %+v", uri, read.Contents[0])
		}
	}
}

func TestRemoteClientGetsNoWorkspacePaths(t *testing.T) {
	s := newWorkshop(t, shell(), mcpserver.Options{Remote: true})
	res := s.connect(t, way{"http", modern}, nil).call("run_skill_script", line("echo x > out/x"))
	if strings.Contains(textOf(res), t.TempDir()[:5]+"/") || !strings.Contains(textOf(res), "\n- out/x (2 bytes)\n") || len(links(res)) != 1 {
		t.Errorf("got %q", textOf(res))
	}
}

func TestCatalogNoticeComesWithRun(t *testing.T) {
	s := newWorkshop(t, shell(), mcpserver.Options{})
	c := s.connect(t, way{"stdio", legacy}, nil)
	if _, err := c.ListTools(c.ctx, nil); err != nil {
		t.Fatal(err)
	}
	s.change(t, files{"new/SKILL.md": skillText("new", "x")})
	if got := structured[ran](t, c.call("run_skill_script", line("echo hi"))); !strings.Contains(got.News, "- new: What new is for.") {
		t.Errorf("got %+v", got)
	}
}

func TestFourToolsWithScriptsCostAtMost1500Tokens(t *testing.T) {
	w := newWorld(t, setup{tree: shell(), scripts: &loadout.Scripts{Sandbox: newBox()}})
	c := w.connect(t, way{"stdio", legacy}, nil)
	list, err := c.ListTools(c.ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	if want := []string{"load_skill", "read_skill_file", "run_skill_script", "search_skills"}; !slices.Equal(names, want) {
		t.Fatalf("tools %q, want %q", names, want)
	}
	a := list.Tools[2].Annotations
	if a.ReadOnlyHint || a.IdempotentHint || a.DestructiveHint == nil || !*a.DestructiveHint || a.OpenWorldHint == nil || !*a.OpenWorldHint {
		t.Errorf("run_skill_script has annotations %+v, want destructive and of an open world", a)
	}
	js, err := json.Marshal(list.Tools)
	if err != nil {
		t.Fatal(err)
	}
	n := tokencount.Estimate(string(js))
	t.Logf("the tools cost %d tokens", n)
	if n > 1500 {
		t.Errorf("the tools cost %d tokens, want 1,500 at most:\n%s", n, js)
	}
}

// K13: if scripts are disabled, there is no tool, and a call of it is a call of an
// unknown tool.
func TestK13NoToolWithoutSandbox(t *testing.T) {
	for _, compat := range append(toolname.CompatSystems(), "") {
		for _, scripts := range []*loadout.Scripts{nil, {}} {
			w := newWorld(t, setup{tree: shell(), scripts: scripts, options: mcpserver.Options{Compat: compat}})
			c := w.connect(t, way{"stdio", modern}, nil)
			list, err := c.ListTools(c.ctx, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, tool := range list.Tools {
				if strings.Contains(tool.Name, "script") {
					t.Errorf("%s: there is %s", compat, tool.Name)
				}
			}
			for _, name := range []string{"run_skill_script", "execute_skill_script"} {
				if _, err := c.CallTool(c.ctx, &mcp.CallToolParams{Name: name, Arguments: line("echo ran")}); code(err) != -32602 {
					t.Errorf("%s: %s answers %v", compat, name, err)
				}
			}
			templates, err := c.ListResourceTemplates(c.ctx, nil)
			if err != nil || slices.ContainsFunc(templates.ResourceTemplates, func(r *mcp.ResourceTemplate) bool { return strings.HasPrefix(r.URITemplate, "loadout-work://") }) {
				t.Errorf("%s: templates %+v, %v", compat, templates, err)
			}
		}
	}
	// Two of the earlier systems had no such tool.
	for compat, want := range map[string]int{"weknora": 2, "ba-agent": 1, "wegent": 1} {
		w := newWorld(t, setup{tree: shell(), scripts: &loadout.Scripts{Sandbox: newBox()}, options: mcpserver.Options{Compat: compat}})
		c := w.connect(t, way{"stdio", modern}, nil)
		list, err := c.ListTools(c.ctx, nil)
		if err != nil || len(list.Tools) != want {
			t.Errorf("%s: %d tools, %v, want %d", compat, len(list.Tools), err, want)
		}
	}
}

type executed struct {
	SkillName  string   `json:"skill_name"`
	ScriptPath string   `json:"script_path"`
	Args       []string `json:"args"`
	ExitCode   int      `json:"exit_code"`
	Stdout     string   `json:"stdout"`
	Stderr     string   `json:"stderr"`
	DurationMS int64    `json:"duration_ms"`
	Killed     bool     `json:"killed"`
	Error      string   `json:"error"`
}

func TestK10ExecuteSkillScript(t *testing.T) {
	tree := shell()
	tree["sh/scripts/show.sh"] = `for a in "$@"; do echo "<$a>"; done; cat` + "\n"
	for _, how := range ways {
		t.Run(how.String(), func(t *testing.T) {
			s := newWorkshop(t, tree, mcpserver.Options{Compat: "weknora"})
			c := s.connect(t, how, nil)
			for _, tt := range []struct {
				args any
				list []string
			}{
				{[]string{"a b", "c"}, []string{"a b", "c"}},
				{`--name 'a b'`, []string{"--name", "a b"}},
				{nil, []string{}},
			} {
				a := args{"skill_name": "sh", "script_path": "scripts/show.sh", "input": "in\n"}
				if tt.args != nil {
					a["args"] = tt.args
				}
				res := c.call("execute_skill_script", a)
				got := structured[executed](t, res)
				want := ""
				for _, a := range tt.list {
					want += "<" + a + ">\n"
				}
				if res.IsError || got.SkillName != "sh" || got.ScriptPath != "scripts/show.sh" || !slices.Equal(got.Args, tt.list) || got.Args == nil || got.Stdout != want+"in\n" || got.ExitCode != 0 || got.Error != "" {
					t.Errorf("%v: got %+v", tt.args, got)
				}
				if !strings.Contains(textOf(res), "Script scripts/show.sh of skill sh took ") || !strings.Contains(textOf(res), "Exit code 0.\nOutput:\n"+want) {
					t.Errorf("%v: text %q", tt.args, textOf(res))
				}
			}
		})
	}
}

func TestK9NonScriptsAreRefusedBeforeSandbox(t *testing.T) {
	s := newWorkshop(t, shell(), mcpserver.Options{Compat: "weknora"})
	c := s.connect(t, way{"stdio", legacy}, nil)
	for path, want := range map[string]string{"notes.txt": "is not a script", "SKILL.md": "is not a script", "../x.sh": "not a path in the skill", "no.sh": "not found in the skill"} {
		if res := c.call("execute_skill_script", args{"skill_name": "sh", "script_path": path}); !res.IsError || !strings.Contains(textOf(res), want) || res.StructuredContent != nil {
			t.Errorf("%s: %q", path, textOf(res))
		}
	}
	select {
	case <-s.box.begun:
		t.Error("something was run")
	default:
	}
}

func TestK11TimeoutIsAResult(t *testing.T) {
	tree := shell()
	tree["sh/SKILL.md"] = "---\nname: sh\ndescription: x\nsandbox: {seconds: 1}\n---\n"
	s := newWorkshop(t, tree, mcpserver.Options{Compat: "weknora"})
	c := s.connect(t, way{"stdio", legacy}, nil)
	res := c.call("execute_skill_script", args{"skill_name": "sh", "script_path": "do.sh", "args": []string{"echo part; sleep 600"}})
	got := structured[executed](t, res)
	if !res.IsError || !got.Killed || got.ExitCode == 0 || got.Stdout != "part\n" || got.DurationMS < 900 || !strings.Contains(got.Error, "timeout of 1s exceeded") || !strings.Contains(textOf(res), "part") {
		t.Errorf("got %+v, %q", got, textOf(res))
	}
	res = c.call("execute_skill_script", args{"skill_name": "sh", "script_path": "do.sh", "args": []string{"echo bad >&2; exit 7"}})
	if got := structured[executed](t, res); !res.IsError || got.Killed || got.ExitCode != 7 || got.Stderr != "bad\n" || got.Error != "Script exited with code 7" {
		t.Errorf("a failure: %+v", got)
	}
}

func TestK16OutputAndInputDirectories(t *testing.T) {
	s := newWorkshop(t, shell(), mcpserver.Options{Compat: "weknora"})
	c := s.connect(t, way{"stdio", modern}, nil)
	res := c.call("execute_skill_script", args{"skill_name": "sh", "script_path": "do.sh", "args": []string{`echo r > "$LOADOUT_OUT/r.txt"; test -d "$LOADOUT_IN" && test -f "$LOADOUT_SKILL/do.sh" && pwd`}})
	found := links(res)
	if got := structured[executed](t, res); got.Stdout != "/work\n" || len(found) != 1 || found[0].Name != "out/r.txt" {
		t.Fatalf("got %+v, %+v", got, found)
	}
	if read, err := c.ReadResource(c.ctx, &mcp.ReadResourceParams{URI: found[0].URI}); err != nil || read.Contents[0].Text != "r\n" {
		t.Errorf("got %+v, %v", read, err)
	}
	if strings.Contains(textOf(res), "run with this folder") {
		t.Errorf("it is notified of an argument that it has not: %q", textOf(res))
	}
}

// Scripts of WeKnora find its variables: where to write, where files are that were given, and
// the directory of the skills that they depend on.
func TestWeKnoraVariables(t *testing.T) {
	tree := shell()
	tree["sh/SKILL.md"] = "---\nname: sh\ndescription: x\ndependencies: [base]\n---\n"
	tree["base/SKILL.md"], tree["base/data.txt"] = skillText("base", "x"), "shared\n"
	s := newWorkshop(t, tree, mcpserver.Options{Compat: "weknora"})
	c := s.connect(t, way{"stdio", modern}, nil)
	res := c.call("execute_skill_script", args{"skill_name": "sh", "script_path": "do.sh", "args": []string{
		`echo r > "$WEKNORA_SKILL_OUTPUT_DIR/r.txt"; ls "$WEKNORA_SKILL_HISTORY_ROOT"; test -d "$WEKNORA_SESSION_INPUT_DIR" && cat "$WEKNORA_SKILLS_DIR/base/data.txt"`}})
	if got, found := structured[executed](t, res), links(res); got.Stdout != "r.txt\nshared\n" || len(found) != 1 || found[0].Name != "out/r.txt" {
		t.Errorf("got %+v, %+v", got, found)
	}
	plain := newWorkshop(t, shell(), mcpserver.Options{}).connect(t, way{"stdio", modern}, nil)
	if got := textOf(plain.call("run_skill_script", args{"skill": "sh", "script": "do.sh", "args": []string{"env"}})); strings.Contains(got, "WEKNORA") || !strings.Contains(got, "LOADOUT_OUT") {
		t.Errorf("under our own names: %q", got)
	}
}

// Images that a run wrote are part of its result. Those of an earlier run in the
// folder are not repeated.
func TestImagesOfScriptsAreReturned(t *testing.T) {
	const draw = `printf '\211PNG\r\n\032\n' > "$LOADOUT_OUT/chart.png"; echo text > "$LOADOUT_OUT/r.txt"`
	images := func(res *mcp.CallToolResult) (out []string) {
		for _, c := range res.Content {
			if i, ok := c.(*mcp.ImageContent); ok {
				out = append(out, i.MIMEType+" "+string(i.Data))
			}
		}
		return out
	}
	want := []string{"image/png \x89PNG\r\n\x1a\n"}
	weknora := newWorkshop(t, shell(), mcpserver.Options{Compat: "weknora"}).connect(t, way{"stdio", modern}, nil)
	res := weknora.call("execute_skill_script", args{"skill_name": "sh", "script_path": "do.sh", "args": []string{draw}})
	if got := images(res); !slices.Equal(got, want) {
		t.Errorf("execute_skill_script: got %q", got)
	}
	c := newWorkshop(t, shell(), mcpserver.Options{}).connect(t, way{"stdio", modern}, nil)
	res = c.call("run_skill_script", args{"skill": "sh", "script": "do.sh", "args": []string{draw}})
	if got := images(res); !slices.Equal(got, want) {
		t.Errorf("run_skill_script: got %q", got)
	}
	folder := structured[ran](t, res).Folder
	if got := images(c.call("run_skill_script", args{"skill": "sh", "script": "do.sh", "folder": folder, "args": []string{"ls out"}})); folder == "" || got != nil {
		t.Errorf("of another run in the folder %q: got %q", folder, got)
	}
}
