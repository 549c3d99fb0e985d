package clientconfig_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/clientconfig"
)

func lookup(t testing.TB, name string) clientconfig.Client {
	t.Helper()
	c, err := clientconfig.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestPath(t *testing.T) {
	linux := clientconfig.Environment{OS: "linux", Home: "/home/ann", Dir: "/src/shop"}
	mac := clientconfig.Environment{OS: "darwin", Home: "/Users/ann", Dir: "/src/shop"}
	win := clientconfig.Environment{OS: "windows", Home: `C:\Users\ann`, Dir: `D:\shop`}
	with := func(p clientconfig.Environment, pairs ...string) clientconfig.Environment {
		p.Getenv = env(pairs...)
		return p
	}

	for _, tt := range []struct {
		client string
		scope  clientconfig.Scope
		place  clientconfig.Environment
		want   string
	}{
		{"claude-code", clientconfig.User, linux, "/home/ann/.claude.json"},
		{"claude-code", "", mac, "/Users/ann/.claude.json"},
		{"claude-code", clientconfig.User, win, `C:\Users\ann\.claude.json`},
		{"claude-code", clientconfig.Project, linux, "/src/shop/.mcp.json"},
		{"claude-code", clientconfig.Project, win, `D:\shop\.mcp.json`},
		{"claude-code", clientconfig.User, with(linux, "CLAUDE_CONFIG_DIR", "/cfg/claude/"), "/cfg/claude/.claude.json"},
		{"claude-code", clientconfig.User, with(linux, "CLAUDE_CONFIG_DIR", "cfg"), "/src/shop/cfg/.claude.json"},
		{"claude-code", clientconfig.User, with(win, "CLAUDE_CONFIG_DIR", `E:\c`), `E:\c\.claude.json`},
		{"claude-code", clientconfig.Project, with(linux, "CLAUDE_CONFIG_DIR", "/cfg"), "/src/shop/.mcp.json"},
		{"claude-desktop", "", linux, "/home/ann/.config/Claude/claude_desktop_config.json"},
		{"claude-desktop", "", with(linux, "XDG_CONFIG_HOME", "/xdg"), "/xdg/Claude/claude_desktop_config.json"},
		{"claude-desktop", "", with(linux, "XDG_CONFIG_HOME", "xdg"), "/home/ann/.config/Claude/claude_desktop_config.json"},
		{"claude-desktop", "", with(mac, "XDG_CONFIG_HOME", "/xdg"), "/Users/ann/Library/Application Support/Claude/claude_desktop_config.json"},
		{"claude-desktop", "", win, `C:\Users\ann\AppData\Roaming\Claude\claude_desktop_config.json`},
		{"claude-desktop", "", with(win, "APPDATA", `R:\ann\`), `R:\ann\Claude\claude_desktop_config.json`},
		{"cursor", "", linux, "/home/ann/.cursor/mcp.json"},
		{"cursor", "", mac, "/Users/ann/.cursor/mcp.json"},
		{"cursor", "", win, `C:\Users\ann\.cursor\mcp.json`},
		{"cursor", clientconfig.Project, linux, "/src/shop/.cursor/mcp.json"},
		{"cursor", clientconfig.Project, win, `D:\shop\.cursor\mcp.json`},
		{"vscode", "", linux, "/home/ann/.config/Code/User/mcp.json"},
		{"vscode", "", with(linux, "XDG_CONFIG_HOME", "/xdg"), "/xdg/Code/User/mcp.json"},
		{"vscode", "", mac, "/Users/ann/Library/Application Support/Code/User/mcp.json"},
		{"vscode", "", win, `C:\Users\ann\AppData\Roaming\Code\User\mcp.json`},
		{"vscode", clientconfig.Project, mac, "/src/shop/.vscode/mcp.json"},
		{"codex", "", linux, "/home/ann/.codex/config.toml"},
		{"codex", "", win, `C:\Users\ann\.codex\config.toml`},
		{"codex", "", with(mac, "CODEX_HOME", "/codex"), "/codex/config.toml"},
		{"codex", clientconfig.Project, linux, "/src/shop/.codex/config.toml"},
		{"gemini", "", mac, "/Users/ann/.gemini/settings.json"},
		{"gemini", "", with(linux, "GEMINI_CLI_HOME", "/g"), "/g/.gemini/settings.json"},
		{"gemini", clientconfig.Project, win, `D:\shop\.gemini\settings.json`},
		{"devin", "", with(linux, "XDG_CONFIG_HOME", "/xdg"), "/home/ann/.config/devin/mcp_config.json"},
		{"devin", "", mac, "/Users/ann/.config/devin/mcp_config.json"},
		{"devin", "", win, `C:\Users\ann\AppData\Roaming\devin\mcp_config.json`},
		{"devin", "", with(win, "APPDATA", `R:\ann`), `R:\ann\devin\mcp_config.json`},
		{"devin", clientconfig.Project, linux, "/src/shop/.devin/mcp_config.json"},
		{"windsurf", "", win, `C:\Users\ann\.codeium\windsurf\mcp_config.json`},
		{"cline", "", linux, "/home/ann/.cline/data/settings/cline_mcp_settings.json"},
		{"cline", "", with(linux, "CLINE_DATA_DIR", "/c"), "/c/settings/cline_mcp_settings.json"},
		{"cursor", "", clientconfig.Environment{OS: "freebsd", Home: "/home/ann"}, "/home/ann/.cursor/mcp.json"},
		{"vscode", "", clientconfig.Environment{OS: "freebsd", Home: "/home/ann"}, "/home/ann/.config/Code/User/mcp.json"},
	} {
		got, err := lookup(t, tt.client).Path(tt.place, tt.scope)
		if err != nil || got != tt.want {
			t.Errorf("%s %q on %s: got %s, %v; want %s", tt.client, tt.scope, tt.place.OS, got, err, tt.want)
		}
	}
}

// Claude Desktop from the Windows package reads a private copy.
func TestPathWindowsPackage(t *testing.T) {
	place := clientconfig.Environment{OS: "windows", Home: filepath.Join(t.TempDir(), "ann")}
	want := place.Home + `\AppData\Local\Packages\Claude_pzs8sxrjxfjjc\LocalCache\Roaming\Claude`
	if err := os.MkdirAll(want, 0o700); err != nil {
		t.Fatal(err)
	}
	got, err := lookup(t, "claude-desktop").Path(place, "")
	if want += `\claude_desktop_config.json`; err != nil || got != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
}

func TestPathErrors(t *testing.T) {
	for _, tt := range []struct {
		client string
		scope  clientconfig.Scope
		place  clientconfig.Environment
		kind   error
		want   string
	}{
		{"claude-desktop", clientconfig.Project, clientconfig.Environment{Home: "/h", Dir: "/d"}, clientconfig.ErrUnsupported, `no "project" scope; use user`},
		{"cursor", "team", clientconfig.Environment{Home: "/h", Dir: "/d"}, clientconfig.ErrUnsupported, `no "team" scope; use user or project`},
		{"cursor", clientconfig.User, clientconfig.Environment{Dir: "/d"}, nil, "set HOME"},
		{"cursor", clientconfig.Project, clientconfig.Environment{Home: "/h"}, nil, "project directory unknown"},
	} {
		_, err := lookup(t, tt.client).Path(tt.place, tt.scope)
		if err == nil || !strings.Contains(err.Error(), tt.want) || tt.kind != nil && !errors.Is(err, tt.kind) {
			t.Errorf("%s %q: got %v, want %s", tt.client, tt.scope, err, tt.want)
		}
	}
}

// Devin shares its directory with programs that install skills there.
func TestInstalledDevin(t *testing.T) {
	for _, tt := range []struct {
		file string
		ok   bool
	}{
		{".config/devin/skills/tides/SKILL.md", false},
		{".codeium/windsurf/mcp_config.json", false},
		{".config/devin/config.json", true},
		{".config/devin/mcp_config.json", true},
		{"bin/devin", true},
	} {
		home := t.TempDir()
		file := filepath.Join(home, filepath.FromSlash(tt.file))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("{}"), 0o700); err != nil {
			t.Fatal(err)
		}
		place := clientconfig.Environment{OS: "linux", Home: home, Getenv: env("PATH", filepath.Join(home, "bin"))}
		if got, ok := lookup(t, "devin").Installed(place); ok != tt.ok || ok && got != file {
			t.Errorf("%s: got %q, %t; want %t", tt.file, got, ok, tt.ok)
		}
	}
}

func TestLookupUnknown(t *testing.T) {
	_, err := clientconfig.Lookup("emacs")
	if !errors.Is(err, clientconfig.ErrUnknown) || !strings.Contains(err.Error(), "claude-code, claude-desktop, cursor, vscode, codex, gemini") {
		t.Errorf("got %v", err)
	}
}

func TestTableIsComplete(t *testing.T) {
	for _, c := range clientconfig.All() {
		if c.Name == "" || c.Title == "" || c.Key == "" || c.Next == "" || c.Source == "" || len(c.Scopes) == 0 {
			t.Errorf("%+v lacks something", c)
		}
		c.Scopes[0] = "changed by the caller"
	}
	if got := clientconfig.All()[0].Scopes[0]; got != clientconfig.User {
		t.Errorf("a caller's change shows in the table: %s", got)
	}
}

var (
	command = clientconfig.Entry{Command: "/usr/local/bin/loadout", Args: []string{"mcp", "--skills", "/home/ann/my skills"}}
	remote  = clientconfig.Entry{URL: "http://127.0.0.1:8484/mcp"}
)

func TestSnippet(t *testing.T) {
	local := func(key, extra string) string {
		return "{\n  \"" + key + "\": {\n    \"loadout\": {\n" + extra +
			"      \"command\": \"/usr/local/bin/loadout\",\n      \"args\": [\"mcp\", \"--skills\", \"/home/ann/my skills\"]\n    }\n  }\n}\n"
	}
	byURL := func(key, extra, urlKey string) string {
		return "{\n  \"" + key + "\": {\n    \"loadout\": {\n" + extra +
			"      \"" + urlKey + "\": \"http://127.0.0.1:8484/mcp\"\n    }\n  }\n}\n"
	}
	for _, tt := range []struct{ client, command, url string }{
		{"claude-code", local("mcpServers", "      \"type\": \"stdio\",\n"), byURL("mcpServers", "      \"type\": \"http\",\n", "url")},
		{"claude-desktop", local("mcpServers", ""), ""},
		{"cursor", local("mcpServers", ""), byURL("mcpServers", "", "url")},
		{"vscode", local("servers", "      \"type\": \"stdio\",\n"), byURL("servers", "      \"type\": \"http\",\n", "url")},
		{"gemini", local("mcpServers", ""), byURL("mcpServers", "", "httpUrl")},
		{"devin", local("mcpServers", ""), byURL("mcpServers", "      \"transport\": \"http\",\n", "url")},
		{"codex", "[mcp_servers.loadout]\ncommand = \"/usr/local/bin/loadout\"\nargs = [\"mcp\", \"--skills\", \"/home/ann/my skills\"]\n",
			"[mcp_servers.loadout]\nurl = \"http://127.0.0.1:8484/mcp\"\n"},
	} {
		c := lookup(t, tt.client)
		got, err := clientconfig.Snippet(c, command)
		if diff := cmp.Diff(tt.command, got); err != nil || diff != "" {
			t.Errorf("%s, command: %v\n%s", tt.client, err, diff)
		}
		got, err = clientconfig.Snippet(c, remote)
		if tt.url == "" {
			if !errors.Is(err, clientconfig.ErrUnsupported) || !strings.Contains(err.Error(), "Connectors") {
				t.Errorf("%s, url: got %v", tt.client, err)
			}
			continue
		}
		if diff := cmp.Diff(tt.url, got); err != nil || diff != "" {
			t.Errorf("%s, url: %v\n%s", tt.client, err, diff)
		}
	}
}

// Values that need quoting are read back unchanged: the same entry is no change.
func TestSnippetQuoting(t *testing.T) {
	hard := clientconfig.Entry{Name: "work_2-b", Command: `C:\Program Files\Ann's "x"\loadout.exe`,
		Args: []string{"", `\`, `C:\a b`, `it's`, "tab\tnl\n\x01\x7f", "é中\u2028\u202e</script>&", `"""`, `'''`, "#", "${HOME}"}}
	for _, c := range clientconfig.All() {
		text, err := clientconfig.Snippet(c, hard)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		ch, err := clientconfig.Plan(clientconfig.Target{Client: c, File: file}, hard)
		if err != nil || ch.Action != clientconfig.None {
			t.Errorf("%s: %v %+v\n%s", c.Name, err, ch, text)
		}
	}
}

func TestEntryLimits(t *testing.T) {
	for _, e := range []clientconfig.Entry{
		{Name: strings.Repeat("a", 64), Command: "x"}, {Command: "x", Args: make([]string, 256)}, {Command: "x", Args: []string{strings.Repeat("a", 32<<10)}},
	} {
		if _, err := clientconfig.Snippet(lookup(t, "cursor"), e); err != nil {
			t.Errorf("%.100v: %v", e, err)
		}
	}
	for want, e := range map[string]clientconfig.Entry{
		"(257, limit 256)": {Command: "x", Args: make([]string, 257)}, "32768 bytes": {Command: "x", Args: []string{strings.Repeat("a", 32<<10+1)}},
	} {
		if _, err := clientconfig.Snippet(lookup(t, "cursor"), e); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestEntryErrors(t *testing.T) {
	for _, tt := range []struct {
		entry clientconfig.Entry
		want  string
	}{
		{clientconfig.Entry{}, "either a command or a URL"},
		{clientconfig.Entry{Command: "x", URL: "http://h/mcp"}, "either a command or a URL"},
		{clientconfig.Entry{URL: "http://h/mcp", Args: []string{"a"}}, "entry with a URL cannot have arguments"},
		{clientconfig.Entry{URL: "ftp://h/mcp"}, "incomplete server URL"},
		{clientconfig.Entry{URL: "/mcp"}, "incomplete server URL"},
		{clientconfig.Entry{URL: "https://ann:pw@h/mcp"}, "user name or password"},
		{clientconfig.Entry{Name: "a.b", Command: "x"}, "invalid entry name"},
		{clientconfig.Entry{Name: strings.Repeat("a", 65), Command: "x"}, "invalid entry name"},
		{clientconfig.Entry{Command: "x\x00"}, "without NUL"},
		{clientconfig.Entry{Command: "x", Args: []string{"\xff"}}, "UTF-8"},
		{clientconfig.Entry{Command: "x", Args: []string{strings.Repeat("a", 40<<10)}}, "32768 bytes"},
		{clientconfig.Entry{Command: "x", Args: make([]string, 300)}, "(300, limit 256)"},
	} {
		_, err := clientconfig.Snippet(lookup(t, "cursor"), tt.entry)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("got %v, want %s", err, tt.want)
		}
		if err != nil && strings.Contains(err.Error(), "pw") {
			t.Errorf("the error shows the password: %v", err)
		}
	}
}
