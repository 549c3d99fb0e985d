package upstream_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/skill"
)

type configs []*upstream.Config

// places removes the positions of declarations.
var places = cmp.Options{cmpopts.IgnoreFields(upstream.Config{}, "File", "Line"), unseen}

// unseen is what only the package itself knows of a configuration.
var unseen = cmpopts.IgnoreUnexported(upstream.Config{})

// found are diagnostics as severity line:column code.
func found(ds []skill.Diagnostic) []string {
	var out []string
	for _, d := range ds {
		out = append(out, fmt.Sprintf("%s %d:%d %s", d.Severity, d.Line, d.Column, d.Code))
	}
	return out
}

// The files of the programs that have servers already, as their manuals show
// them.
func TestW21Formats(t *testing.T) {
	for _, tt := range []struct {
		name, file, src string
		want            configs
		found           []string
	}{
		{"Claude Code", "/repo/.mcp.json", `{
  "mcpServers": {
    "github": {"type": "http", "url": "https://api.example.com/mcp/", "headers": {"Authorization": "Bearer ${GITHUB_TOKEN}"}},
    "files": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "${HOME:-/tmp}"], "env": {"DEBUG": "1", "N": 3}, "timeout": 600},
    "old": {"type": "sse", "url": "https://mcp.example.com/sse"}
  }
}`, configs{
			{Name: "github", Type: upstream.HTTP, URLs: []string{"https://api.example.com/mcp/"}, Headers: map[string]string{"Authorization": "Bearer ${GITHUB_TOKEN}"}},
			{Name: "files", Type: upstream.Stdio, Command: "npx", Args: []string{"-y", "@modelcontextprotocol/server-filesystem", "${HOME:-/tmp}"}, Env: map[string]string{"DEBUG": "1", "N": "3"}, CallTimeout: 600 * time.Millisecond},
			{Name: "old", Type: upstream.SSE, URLs: []string{"https://mcp.example.com/sse"}},
		}, nil},
		{"desktop, other settings beside", "claude_desktop_config.json", `{"globalShortcut": "x", "mcpServers": {"a b": {"command": "/opt/my server/run", "disabled": true, "autoApprove": []}}}`,
			configs{{Name: "a b", Type: upstream.Stdio, Command: "/opt/my server/run", Disabled: true}}, nil},
		{"VS Code", ".vscode/mcp.json", `{
  // asked for once
  "inputs": [{"type": "promptString", "id": "key", "description": "API key", "password": true},],
  "servers": {
    "perplexity": {"type": "stdio", "command": "npx", "args": ["-y", "server"], "env": {"KEY": "${input:key}"}, "envFile": "${workspaceFolder}/.env"},
    "remote": {"url": "https://mcp.example.com", "headers": {"X-Key": "${input:key}"}},
  },
}`, configs{
			{Name: "perplexity", Type: upstream.Stdio, Command: "npx", Args: []string{"-y", "server"}, Env: map[string]string{"KEY": "${input:key}"}, EnvFile: "${workspaceFolder}/.env"},
			{Name: "remote", URLs: []string{"https://mcp.example.com"}, Headers: map[string]string{"X-Key": "${input:key}"}},
		}, nil},
		{"VS Code settings", "settings.json", `{"editor.fontSize": 12, "mcp": {"inputs": [], "servers": {"a": {"command": "b"}}}}`,
			configs{{Name: "a", Type: upstream.Stdio, Command: "b"}}, nil},
		{"Gemini", ".gemini/settings.json", `{"theme": "x", "mcpServers": {
  "py": {"command": "python", "args": ["-m", "srv", "--home=$HOME"], "env": {"K": "$MY_TOKEN", "P": "a$$b"}, "cwd": "./s", "timeout": 15000, "trust": true},
  "h": {"httpUrl": "https://x.example/$PART/mcp", "headers": {"A": "${B}"}, "includeTools": ["safe_*"], "excludeTools": ["unsafe"]},
  "s": {"url": "http://localhost:8080/sse"}}}`, configs{
			{Name: "py", Type: upstream.Stdio, Command: "python", Args: []string{"-m", "srv", "--home=${HOME}"}, Env: map[string]string{"K": "${MY_TOKEN}", "P": "a$$b"}, Dir: "./s", CallTimeout: 15 * time.Second},
			{Name: "h", Type: upstream.HTTP, URLs: []string{"https://x.example/${PART}/mcp"}, Headers: map[string]string{"A": "${B}"}, Include: []string{"safe_*"}, Exclude: []string{"unsafe"}},
			{Name: "s", URLs: []string{"http://localhost:8080/sse"}},
		}, []string{"info 2:142 server-trust"}},
		{"Codex", "config.toml", `model = "x"
[mcp_servers.docs]
command = "npx"
args = ["-y", "docs"]
env = { "A" = "1" }
env_vars = ["TOKEN"]
startup_timeout_sec = 20
tool_timeout_sec = 45.5
enabled_tools = ["search"]
disabled_tools = ["drop"]
[mcp_servers.figma]
url = "https://mcp.figma.example/mcp"
bearer_token_env_var = "FIGMA_TOKEN"
http_headers = { "X-Region" = "eu" }
env_http_headers = { "X-Key" = "FIGMA_KEY" }
enabled = false
required = true
[projects."/home/x"]
trust_level = "trusted"
`, configs{
			{Name: "docs", Type: upstream.Stdio, Command: "npx", Args: []string{"-y", "docs"}, Env: map[string]string{"A": "1", "TOKEN": "${env:TOKEN:-}"},
				ConnectTimeout: 20 * time.Second, CallTimeout: 45500 * time.Millisecond, Include: []string{"search"}, Exclude: []string{"drop"}},
			{Name: "figma", URLs: []string{"https://mcp.figma.example/mcp"}, Disabled: true,
				Headers: map[string]string{"Authorization": "Bearer ${env:FIGMA_TOKEN}", "X-Region": "eu", "X-Key": "${env:FIGMA_KEY}"}},
		}, []string{"info 17:1 server-key"}},
		{"mcphost", ".mcphost.yml", `mcpServers:
  fs:
    type: local
    command: ["npx", "-y", "fs", "${env://ROOT:-/tmp}"]
    environment: {DEBUG: "true", TOKEN: "${env://TOKEN}"}
    allowedTools: ["read"]
    excludedTools: ["write"]
  web: {type: remote, url: "https://x.example", headers: ["Authorization=Bearer ${env://T}"]}
  own: {type: builtin, name: fs}
`, configs{
			{Name: "fs", Type: upstream.Stdio, Command: "npx", Args: []string{"-y", "fs", "${env://ROOT:-/tmp}"}, Env: map[string]string{"DEBUG": "true", "TOKEN": "${env://TOKEN}"}, Include: []string{"read"}, Exclude: []string{"write"}},
			{Name: "web", URLs: []string{"https://x.example"}, Headers: map[string]string{"Authorization": "Bearer ${env://T}"}},
		}, []string{"error 9:15 server-type"}},
		{"Wegent, names by transport", "x.json", `{"mcp_servers": {"a": {"transport": "streamable_http", "url": "https://a.example"}, "b": {"type": "streamableHttp", "url": "https://b.example/${{ user.id }}", "timeout": 30}}}`, configs{
			{Name: "a", Type: upstream.HTTP, URLs: []string{"https://a.example"}},
			{Name: "b", Type: upstream.HTTP, URLs: []string{"https://b.example/${{ user.id }}"}, CallTimeout: 30 * time.Second},
		}, nil},
		{"nested twice", "x.json", `{"mcpServers": {"mcp_servers": {"a": {"command": "b"}}}}`, configs{{Name: "a", Type: upstream.Stdio, Command: "b"}}, nil},
		{"a server called servers", "x.json", `{"mcpServers": {"servers": {"command": "b"}, "connections": {"url": "wss://b.example"}}}`,
			configs{{Name: "servers", Type: upstream.Stdio, Command: "b"}, {Name: "connections", Type: upstream.WebSocket, URLs: []string{"wss://b.example"}}}, nil},
		{"a url of its own beside", "extension.json", `{"name": "x", "url": "https://docs.example", "mcpServers": {"a": {"command": "b"}}}`, configs{{Name: "a", Type: upstream.Stdio, Command: "b"}}, nil},
		{"bare map", "servers.yaml", "a: {command: b}\nurl: {url: 'https://x.example', name: label}\n",
			configs{{Name: "a", Type: upstream.Stdio, Command: "b"}, {Name: "url", URLs: []string{"https://x.example"}}}, nil},
		{"our own", "servers.yaml", `mcpServers:
  hub:
    urls: ["https://a.example/mcp", "https://b.example/mcp", "https://a.example/mcp"]
    connectTimeout: 5s
    callTimeout: 2m
    concurrency: 4
    safety: high
    pin: strict
    ask: true
    stateful: true
    connect: at-start
    tools: [{name: a}, b, "*"]
`, configs{{Name: "hub", URLs: []string{"https://a.example/mcp", "https://b.example/mcp"}, ConnectTimeout: 5 * time.Second, CallTimeout: 2 * time.Minute,
			Concurrency: 4, Safety: "HIGH", Strict: true, RequireApproval: true, Stateful: true, AtStart: true, Tools: []string{"a", "b"}}}, nil},
		{"a Ghost", "ghost.yaml", "kind: Ghost\nspec:\n  skills: [a]\n  mcpServers:\n    w: {type: streamable-http, url: 'https://w.example', headers: {Authorization: 'Bearer ${{user.t}}'}}\n",
			configs{{Name: "w", Type: upstream.HTTP, URLs: []string{"https://w.example"}, Headers: map[string]string{"Authorization": "Bearer ${{user.t}}"}}}, nil},
		{"merge keys", "x.yaml", "x-base: &base {command: run, env: {A: '1'}}\nmcpServers:\n  a: {<<: *base, args: [one]}\n",
			configs{{Name: "a", Type: upstream.Stdio, Command: "run", Args: []string{"one"}, Env: map[string]string{"A": "1"}}}, []string{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, ds := upstream.Parse([]byte(tt.src), upstream.ParseOptions{Name: tt.file})
			if diff := cmp.Diff([]*upstream.Config(tt.want), f.Servers, places); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.found, found(ds), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s\n%v", diff, ds)
			}
		})
	}
}

func TestVSCodeInputs(t *testing.T) {
	f, _ := upstream.Parse([]byte(`{"inputs": [{"id": "a", "type": "promptString", "password": true, "description": "d"},
		{"id": "b", "type": "pickString", "options": ["x", "y"], "default": "x"}, {"type": "promptString"}], "servers": {}}`), upstream.ParseOptions{Name: "mcp.json"})
	want := []upstream.Input{{ID: "a", Description: "d", Password: true}, {ID: "b", Default: "x", Options: []string{"x", "y"}}}
	if diff := cmp.Diff(want, f.Inputs); diff != "" {
		t.Error(diff)
	}
}

func TestW21Transports(t *testing.T) {
	for spelled, want := range map[string]string{
		"http": upstream.HTTP, "streamable-http": upstream.HTTP, "streamable_http": upstream.HTTP, "streamableHttp": upstream.HTTP, "STREAMABLE_HTTP": upstream.HTTP,
		"sse": upstream.SSE, "SSE": upstream.SSE, "ws": upstream.WebSocket, "websocket": upstream.WebSocket, "remote": "", "": "",
	} {
		for _, key := range []string{"type", "transport", "transport_type", "transportType"} {
			f, ds := upstream.Parse(fmt.Appendf(nil, `{"a": {%q: %q, "url": "https://x.example"}}`, key, spelled), upstream.ParseOptions{Name: "x.json"})
			if len(ds) > 0 || f.Servers[0].Type != want {
				t.Errorf("%s %q: %+v %v", key, spelled, f.Servers, ds)
			}
		}
	}
	for _, spelled := range []string{"stdio", "STDIO", "local", ""} {
		f, ds := upstream.Parse(fmt.Appendf(nil, `{"a": {"type": %q, "command": "x"}}`, spelled), upstream.ParseOptions{Name: "x.json"})
		if len(ds) > 0 || f.Servers[0].Type != upstream.Stdio {
			t.Errorf("%q: %+v %v", spelled, f.Servers, ds)
		}
	}
	f, ds := upstream.Parse([]byte("a: {url: 'WSS://x.example'}\n"), upstream.ParseOptions{Name: "x.yaml"})
	if len(ds) > 0 || f.Servers[0].Type != upstream.WebSocket {
		t.Errorf("%+v %v", f.Servers, ds)
	}
}

// L3, L4: connections are one object, a list, or under connections; JSON or
// YAML.
func TestL3Connections(t *testing.T) {
	full := &upstream.Config{Name: "browser", Type: upstream.Stdio, Command: "npx", Args: []string{"-y", "devtools"}, Env: map[string]string{"A": "1"},
		Dir: "/srv", Safety: "MEDIUM", Tools: []string{"navigate_page", "click"}}
	entry := `{"name": "browser", "command": "npx", "args": ["-y", "devtools"], "env": {"A": "1"}, "workdir": "/srv", "safety": "MEDIUM", "tools": ["navigate_page", "click"]}`
	for _, tt := range []struct {
		file, src string
		want      configs
		found     []string
	}{
		{"one.json", entry, configs{full}, nil},
		{"list.json", "[" + entry + `, {"name": "b", "command": "c"}]`, configs{full, {Name: "b", Type: upstream.Stdio, Command: "c"}}, nil},
		{"map.json", `{"connections": [` + entry + `]}`, configs{full}, nil},
		{"one.yaml", "name: browser\ncommand: npx\nargs: ['-y', devtools]\nenv: {A: 1}\nworkdir: /srv\nsafety: medium\ntools: [navigate_page, click]\n", configs{full}, nil},
		{"map.yml", "connections:\n- name: a\n  command: b\n- {name: c, url: 'http://localhost:1/mcp'}\n", configs{{Name: "a", Type: upstream.Stdio, Command: "b"}, {Name: "c", URLs: []string{"http://localhost:1/mcp"}}}, nil},
		{"dir/files.json", `{"command": "b"}`, configs{{Name: "files", Type: upstream.Stdio, Command: "b"}}, nil},
		{"several.yaml", "name: a\ncommand: b\n---\nname: c\ncommand: d\n", configs{{Name: "a", Type: upstream.Stdio, Command: "b"}, {Name: "c", Type: upstream.Stdio, Command: "d"}}, nil},
		{"bad.json", `[{"command": "x"}, {"name": "a", "command": "b"}, 7, {"name": "a", "command": "c"}]`, configs{{Name: "a", Type: upstream.Stdio, Command: "c"}},
			[]string{"error 1:2 server-name", "error 1:51 server-shape", "warning 1:63 server-duplicate"}},
	} {
		f, ds := upstream.Parse([]byte(tt.src), upstream.ParseOptions{Name: tt.file})
		if diff := cmp.Diff([]*upstream.Config(tt.want), f.Servers, places); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.file, diff)
		}
		if diff := cmp.Diff(tt.found, found(ds)); diff != "" {
			t.Errorf("%s (-want +got):\n%s\n%v", tt.file, diff, ds)
		}
	}
}

// What a skill's frontmatter has, decoded already.
func TestParseMap(t *testing.T) {
	for _, tt := range []struct {
		raw   string
		want  *upstream.File
		found []string
	}{
		{`{"weibo": {"type": "stdio", "command": "weibo"}}`, &upstream.File{Servers: configs{{Name: "weibo", Type: upstream.Stdio, Command: "weibo"}}}, nil},
		{`["weibo", "docs", "weibo"]`, &upstream.File{Names: []string{"weibo", "docs"}}, []string{"info 0:0 server-duplicate"}},
		{`"weibo, docs"`, &upstream.File{Names: []string{"weibo", "docs"}}, nil},
		{`{"mcpServers": {"a": {"command": "b"}}}`, &upstream.File{Servers: configs{{Name: "a", Type: upstream.Stdio, Command: "b"}}}, nil},
		{`{"a": {}}`, &upstream.File{}, []string{"error 0:0 server-target"}},
		{``, &upstream.File{}, nil},
		{`7`, &upstream.File{}, []string{"error 0:0 servers-shape"}},
	} {
		f, ds := upstream.ParseMap(json.RawMessage(tt.raw), "SKILL.md")
		if diff := cmp.Diff(tt.want, f, places); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.raw, diff)
		}
		if diff := cmp.Diff(tt.found, found(ds)); diff != "" {
			t.Errorf("%s (-want +got):\n%s\n%v", tt.raw, diff, ds)
		}
	}
}

func TestW24BadEntryHidesNoOthers(t *testing.T) {
	const good = `"good": {"command": "b"}`
	for _, tt := range []struct{ entry, want, says string }{
		{`"x": {"type": "carrier-pigeon", "url": "https://x.example"}`, "error 2:15 server-type", `unknown type "carrier-pigeon"`},
		{`"x": {}`, "error 2:1 server-target", "neither command nor url"},
		{`"x": null`, "error 2:1 server-shape", "no configuration"},
		{`"x": "npx"`, "error 2:6 server-shape", "is a text"},
		{`"x": {"command": "a", "url": "https://x.example"}`, "error 2:1 server-target", "both"},
		{`"x": {"type": "http", "command": "a"}`, "error 2:15 server-type", "requires a url"},
		{`"x": {"type": "stdio", "url": "https://x.example"}`, "error 2:15 server-type", "requires a command"},
		{`"x": {"url": "ftp://x.example"}`, "error 2:14 server-url", "does not start with"},
		{`"x": {"url": "https://%zz:secret@x"}`, "error 2:14 server-url", "is invalid"},
		{`"x": {"url": 7}`, "error 2:14 server-url", "does not start"},
		{`"x": {"urls": ["https://x.example", "ws://x.example"]}`, "error 2:16 server-url", "different transports"},
		{`"x": {"command": {"a": 1}}`, "error 2:18 server-command", "is a map"},
		{`"x": {"command": " "}`, "error 2:18 server-command", "command is empty"},
		{`"x": {"command": []}`, "error 2:18 server-command", "is a list"},
		{`"x": {"command": "a\nb"}`, "error 2:18 server-command", "control character"},
		{`"x": {"command": "a", "args": [["secret"]]}`, "error 2:32 server-value", "args is a list"},
		{`"x": {"command": "a", "args": ["secret\u0000"]}`, "error 2:32 server-value", "NUL"},
		{`"x": {"command": "a", "env": {"A=B": "secret"}}`, "error 2:31 server-env", `invalid variable name "A=B"`},
		{`"x": {"command": "a", "env": {"A": ["secret"]}}`, "error 2:31 server-value", `"A" is a list`},
		{`"x": {"url": "https://x.example", "headers": {"A": "secret\r\nB: c"}}`, "error 2:47 server-headers", `invalid header "A"`},
		{`"x": {"url": "https://x.example", "headers": {"a b": "secret"}}`, "error 2:47 server-headers", `invalid header "a b"`},
		{`"x": {"url": "https://x.example", "headers": {"x-a": "secret", "X-A": "secret"}}`, "error 2:64 server-headers", "two spellings"},
		{`"x": {"url": "https://x.example", "bearer_token_env_var": "sk-secret"}`, "error 2:59 server-token", "not a variable name"},
		{`"` + strings.Repeat("x", 129) + `": {"command": "a"}`, "error 2:1 server-name", "longer than 128"},
		{`"x\u202ey": {"command": "a"}`, "error 2:1 server-name", "invisible character"},
		{`"": {"command": "a"}`, "error 2:1 server-name", "is empty"},
		{`"x": {"command": "a", "label": "My Docs"}`, "error 2:32 server-label", "the label \"My Docs\" is not"},
		// The server is there, and something about it disappoints.
		{`"x": {"command": "a", "skills": "all"}`, "warning 2:33 server-skills", "off is used"},
		{`"x": {"command": "a", "skillLimits": 7}`, "warning 2:38 server-skill-limits", "not a mapping"},
		{`"x": {"command": "a", "skillLimits": {"megabytes": 1}}`, "warning 2:52 server-skill-limits", "4 is used"},
		{`"x": {"command": "a", "skillLimits": {"skills": 0}}`, "warning 2:49 server-skill-limits", "1 is used"},
		{`"x": {"command": "a", "skillLimits": {"time": "soon"}}`, "warning 2:47 server-skill-limits", "not a duration"},
		{`"x": {"command": "a", "skillLimits": {"files": 9}}`, "warning 2:39 server-skill-limits", "unknown limit"},
		{`"x": {"command": "a", "colour": "secret"}`, "info 2:23 server-key", `"colour" is unknown`},
		{`"x": {"command": "npx -y a"}`, "warning 2:18 server-command", "not split by a shell"},
		{`"x": {"command": "a", "args": "secret b"}`, "warning 2:31 server-args", "single argument"},
		{`"x": {"type": "stdio", "command": "a", "url": "https://x.example"}`, "warning 2:1 server-target", "url is ignored"},
		{`"x": {"type": "http", "url": "wss://x.example"}`, "warning 2:15 server-type", "WebSocket"},
		{`"x": {"command": "a", "safety": "HIHG"}`, "warning 2:33 server-safety", "CRITICAL is used"},
		{`"x": {"command": "a", "pin": "stict"}`, "warning 2:30 server-pin", "strict is used"},
		{`"x": {"command": "a", "ask": "perhaps"}`, "warning 2:30 server-value", "true is used"},
		{`"x": {"command": "a", "connect": "never"}`, "warning 2:34 server-connect", "on-load"},
		{`"x": {"command": "a", "timeout": "soon"}`, "warning 2:34 server-timeout", "not a duration"},
		{`"x": {"command": "a", "timeout": -1}`, "warning 2:34 server-timeout", "not between"},
		{`"x": {"command": "a", "timeout": 5000}`, "info 2:34 server-timeout", "milliseconds, 5s"},
		{`"x": {"command": "a", "concurrency": 1e9}`, "warning 2:38 server-value", "not a number"},
		{`"x": {"command": "a", "includeTools": ["[a"]}`, "warning 2:23 server-pattern", "invalid pattern"},
		{`"x": {"command": "a", "env": {"A": null}}`, "warning 2:31 server-value", "is ignored"},
		{`"x": {"command": "a", "command": "b"}`, "warning 2:7 server-key-twice", "duplicate key"},
		{`"x": {"command": "a"}, "x": {"command": "c"}`, "warning 2:24 server-duplicate", "on line 2"},
	} {
		f, ds := upstream.Parse([]byte("{\"mcpServers\": {\n"+tt.entry+",\n"+good+"}}"), upstream.ParseOptions{Name: "x.json"})
		if diff := cmp.Diff([]string{tt.want}, found(ds)); diff != "" {
			t.Errorf("%s (-want +got):\n%s\n%v", tt.entry, diff, ds)
			continue
		}
		want := 1
		if ds[0].Severity != skill.Error {
			want = 2
		}
		if len(f.Servers) != want || f.Servers[want-1].Name != "good" || f.Servers[want-1].Line != 3 {
			t.Errorf("%s: servers %+v", tt.entry, f.Servers)
		}
		if !strings.Contains(ds[0].Message, tt.says) || strings.Contains(ds[0].Message, "secret") || ds[0].Severity != skill.Info && ds[0].Fix == "" {
			t.Errorf("%s: %s, fix %q", tt.entry, ds[0].Message, ds[0].Fix)
		}
	}
}

func TestEmptyToolListAllowsNone(t *testing.T) {
	f, _ := upstream.Parse([]byte(`{"a": {"command": "b", "includeTools": []}}`), upstream.ParseOptions{Name: "x.json"})
	if diff := cmp.Diff([]string{"*"}, f.Servers[0].Exclude); diff != "" {
		t.Error(diff)
	}
}

func TestUnreadableFiles(t *testing.T) {
	for _, tt := range []struct{ file, src, want string }{
		{"x.json", `{"a": {"command": "b"}`, "error 1:23 servers-unreadable"},
		{"x.yaml", "a:\n  command: 'b\n", "error 2:12 servers-unreadable"},
		{"x.toml", "[mcp_servers.a]\ncommand = b\n", "error 2:11 servers-unreadable"},
		{"x.json", strings.Repeat(" ", 1<<20) + "{}", "error 0:0 servers-unreadable"},
		{"x.json", `{"theme": "dark"}`, "error 1:1 servers-shape"},
		{"x.json", "// nothing\n", "error 2:1 servers-unreadable"},
		{"x.yaml", "# nothing\n", "info 0:0 servers-empty"},
	} {
		f, ds := upstream.Parse([]byte(tt.src), upstream.ParseOptions{Name: tt.file})
		if diff := cmp.Diff([]string{tt.want}, found(ds)); diff != "" || len(f.Servers) > 0 {
			t.Errorf("%.40q (-want +got):\n%s\n%v", tt.src, diff, ds)
		}
	}
	var many strings.Builder
	for i := range 1001 {
		fmt.Fprintf(&many, "s%d: {command: a}\n", i)
	}
	f, ds := upstream.Parse([]byte(many.String()), upstream.ParseOptions{Name: "x.yaml"})
	if diff := cmp.Diff([]string{"error 1001:1 servers-many"}, found(ds)); diff != "" || len(f.Servers) != 1000 {
		t.Errorf("%d servers\n%s", len(f.Servers), diff)
	}
}

// A file with a huge key that has many faults has small diagnostics.
func TestDiagnosticsAreShort(t *testing.T) {
	file := fmt.Sprintf(`{"mcpServers": {"a": {"command": "b", "%s": [%s0]}}}`, "headers"+strings.Repeat("_", 100_000), strings.Repeat("0, ", 50))
	_, ds := upstream.Parse([]byte(file), upstream.ParseOptions{})
	total := 0
	for _, d := range ds {
		total += len(d.Message) + len(d.Fix)
	}
	if len(ds) == 0 || total > 5000*len(ds) {
		t.Errorf("%d diagnostics have %d bytes", len(ds), total)
	}
}

func TestSkillSettings(t *testing.T) {
	for value, want := range map[string]string{`"ask"`: upstream.SkillsAsk, `"Allow"`: upstream.SkillsAllow, `"off"`: upstream.SkillsOff, `false`: upstream.SkillsOff} {
		f, ds := upstream.Parse([]byte(`{"mcpServers": {"x": {"command": "a", "skills": `+value+`, "label": "docs-1"}}}`), upstream.ParseOptions{Name: "x.json"})
		if len(f.Servers) != 1 || len(ds) > 0 || f.Servers[0].Skills != want || f.Servers[0].Label != "docs-1" {
			t.Errorf("%s: %+v, %v; want %s", value, f.Servers, ds, want)
			continue
		}
		plain, _ := upstream.Parse([]byte(`{"mcpServers": {"x": {"command": "a"}}}`), upstream.ParseOptions{Name: "x.json"})
		if plain.Servers[0].Digest() != f.Servers[0].Digest() {
			t.Errorf("%s: the settings are part of the digest, so cached tools would be lost", value)
		}
	}
}

// Limits on the listing of skills never exclude a skill that every host supports.
func TestSkillLimits(t *testing.T) {
	for value, want := range map[string]upstream.SkillLimits{
		`{"pages": 10, "skills": 500, "megabytes": 8, "time": "20s"}`: {Pages: 10, Skills: 500, Bytes: 8 << 20, Time: 20 * time.Second},
		`{"pages": -1, "skills": 0, "megabytes": 1, "time": 0}`:       {Pages: 1, Skills: 1, Bytes: 4 << 20, Time: time.Second},
		`{"megabytes": 1000, "time": "24h"}`:                          {Bytes: 64 << 20, Time: 10 * time.Minute},
		`{"pages": "many"}`:                                           {},
	} {
		f, _ := upstream.Parse([]byte(`{"mcpServers": {"x": {"command": "a", "skillLimits": `+value+`}}}`), upstream.ParseOptions{Name: "x.json"})
		if len(f.Servers) != 1 || f.Servers[0].SkillLimits != want {
			t.Errorf("%s: %+v, want %+v", value, f.Servers, want)
		}
	}
}
