//go:build linux

package repositories_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/packages/packagestest"
	"github.com/loadout-dev/loadout/internal/testprogram"
)

// use is a use of a skill: a call of a tool, a run of a script, reading a file,
// or, if none of these is set, loading the instructions.
type use struct {
	tool   string // its own name, or SERVER__NAME for a server of the user
	args   map[string]any
	script string
	argv   []string // BACKEND stands for the address of the fake services
	stdin  string
	in     map[string]string // input files in /work/in by path; the first part of the paths is the same
	host   bool              // allow the host network
	file   string
	want   []string // parts of the result

	// refused says that the use cannot succeed here. want is the explanation.
	refused bool
}

// String returns what is called.
func (c use) String() string {
	switch {
	case c.tool != "":
		return "tool " + c.tool
	case c.script != "":
		return "script " + c.script
	case c.file != "":
		return "file " + c.file
	}
	return "instructions"
}

// user is a user with a home directory of their own and a client of loadout mcp.
type user struct {
	t       *testing.T
	exe     string
	home    string
	env     []string
	backend string // address of the fake services
	client  *mcp.ClientSession
	loaded  map[string]*loaded
}

// loaded is a result of load_skill.
type loaded struct {
	State, Instructions string
	Problems            []string
	Tools               []struct{ Name string }
}

const token = "0123456789abcdef" // of the fake task

// newUser creates the home directory, with the values that Wegent's skills expect
// of their platform. With packages, the skills require Python packages and a
// Python that is new enough for ba-agent.
func newUser(t *testing.T, packages bool) *user {
	t.Helper()
	u := &user{t: t, home: t.TempDir(), backend: startBackend(t), loaded: map[string]*loaded{}}
	u.exe = filepath.Join(t.TempDir(), "loadout")
	if err := testprogram.Loadout.Install(u.exe); err != nil {
		t.Fatal(err)
	}
	search, index := os.Getenv("PATH"), ""
	if packages {
		search, index = newPython(t)+string(os.PathListSeparator)+search, pythonIndex(t)
	}
	u.env = []string{"HOME=" + u.home, "PATH=" + search, "TMPDIR=" + os.TempDir()}
	u.write(".config/loadout/loadout.yaml", fmt.Sprintf(`
sandbox:
  python_index: "%[2]s"
  private: [127.0.0.0/8]
servers:
  files: [%[3]s/mine.yaml]
variables:
  backend_url: %[1]s
  task_token: {secret: WEGENT_TOKEN}
  task_data.user_mcps.dingtalk.services.docs.credentials.url: %[1]s/mcp/dingtalk-docs/sse
  task_data.user_mcps.dingtalk.services.ai_table.credentials.url: %[1]s/mcp/dingtalk-ai-table/sse
`, u.backend, index, u.home))
	// The servers that a user adds because their systems did not export them.
	u.write("mine.yaml", fmt.Sprintf(`
mcpServers:
  chrome: {url: "%s/mcp/chrome-devtools/sse", headers: {Authorization: Bearer %s}}
  example: {command: node, args: [%s/checkout/wework/src-tauri/bundled-plugins/wework-plugin-example/mcp/server.mjs]}
`, u.backend, token, u.home))
	if _, stderr, err := u.loadout(token, "secret", "set", "WEGENT_TOKEN"); err != nil {
		t.Fatalf("%v: %s", err, stderr)
	}
	return u
}

// newPython returns a directory in which python3 is Python 3.12 or newer, which
// ba-agent requires.
func newPython(t *testing.T) string {
	candidates := []string{os.Getenv("LOADOUT_TEST_PYTHON"), "python3"}
	for minor := 12; minor < 20; minor++ {
		candidates = append(candidates, fmt.Sprintf("python3.%d", minor))
	}
	home, _ := os.UserHomeDir()
	managed, _ := filepath.Glob(filepath.Join(home, ".pyenv", "versions", "3.1[2-9]*", "bin", "python3"))
	for _, c := range slices.Concat(candidates, managed) {
		if c == "" {
			continue
		}
		out, err := exec.CommandContext(t.Context(), c, "-c", "import sys; print(sys.executable if sys.version_info >= (3, 12) else '')").Output()
		if exe := strings.TrimSpace(string(out)); err == nil && exe != "" {
			bin := t.TempDir()
			if err := os.Symlink(exe, filepath.Join(bin, "python3")); err != nil {
				t.Fatal(err)
			}
			return bin
		}
	}
	t.Fatal("no Python 3.12 or newer, which ba-agent requires: set LOADOUT_TEST_PYTHON")
	return ""
}

// pythonIndex returns the address of a package index: LOADOUT_TEST_PYTHON_INDEX, or
// PyPI if it can be reached, or else one on loopback with stand-ins.
func pythonIndex(t *testing.T) string {
	if index := os.Getenv("LOADOUT_TEST_PYTHON_INDEX"); index != "" {
		return index
	}
	if c, err := net.DialTimeout("tcp", "pypi.org:443", 5*time.Second); err == nil {
		c.Close()
		return "https://pypi.org/simple"
	}
	t.Log("PyPI cannot be reached: pandas is a stand-in with few functions, and the other packages are empty")
	pandas, err := os.ReadFile(filepath.Join("testdata", "python", "pandas.py"))
	if err != nil {
		t.Fatal(err)
	}
	index := packagestest.NewIndex(t)
	index.Add("pandas", "2.2.0", map[string]string{"pandas/__init__.py": string(pandas)})
	for name, version := range map[string]string{"numpy": "2.0.0", "scipy": "1.14.0", "anthropic": "0.39.0", "matplotlib": "3.9.0", "reportlab": "4.2.0", "python-docx": "1.1.2", "google-genai": "1.0.0"} {
		module := strings.ReplaceAll(name, "-", "_")
		index.Add(name, version, map[string]string{module + "/__init__.py": ""})
	}
	return index.URL
}

func (u *user) write(name, text string) {
	u.t.Helper()
	file := filepath.Join(u.home, filepath.FromSlash(name))
	err := os.MkdirAll(filepath.Dir(file), 0o755)
	if err == nil {
		err = os.WriteFile(file, []byte(text), 0o644)
	}
	if err != nil {
		u.t.Fatal(err)
	}
}

// loadout runs a command with the home directory of the user.
func (u *user) loadout(stdin string, args ...string) (stdout, stderr string, err error) {
	ctx, cancel := context.WithTimeout(u.t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, u.exe, args...)
	var out, problems strings.Builder
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = u.home, u.env, strings.NewReader(stdin), &out, &problems
	err = cmd.Run()
	return out.String(), problems.String(), err
}

// approve approves a skill, with the host network if one of its uses needs it.
func (u *user) approve(skill string, uses []use) {
	u.t.Helper()
	args := []string{"approve", skill}
	if slices.ContainsFunc(uses, func(c use) bool { return c.host }) {
		args = append(args, "--host-network")
	}
	if stdout, stderr, err := u.loadout("", args...); err != nil {
		u.t.Errorf("approve %s: %v\n%s%s", skill, err, stdout, stderr)
	}
}

// connect starts loadout mcp and connects to it. The user allows each call.
func (u *user) connect() {
	u.t.Helper()
	cmd := exec.Command(u.exe, "mcp", "--quiet")
	cmd.Dir, cmd.Env, cmd.Stderr = u.home, u.env, os.Stderr
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "once"}}, nil
	}})
	s, err := c.Connect(u.t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		u.t.Fatal(err)
	}
	u.t.Cleanup(func() { s.Close() })
	u.client = s
}

// use uses a skill and returns the result, which must have all the wanted parts.
func (u *user) use(skill string, c use) (result string, err error) {
	l, err := u.load(skill)
	if err != nil {
		return "", err
	}
	switch {
	case c.tool != "":
		result, err = u.callTool(l, c)
	case c.script != "":
		result, err = u.runScript(skill, c)
	case c.file != "":
		result, err = u.call("read_skill_file", map[string]any{"skill": skill, "path": c.file})
	default:
		result = l.Instructions
	}
	for _, part := range c.want {
		if err == nil && !strings.Contains(result, part) {
			err = fmt.Errorf("no %q in the result %s", part, result)
		}
	}
	return result, err
}

// load loads a skill once. All that it provides must work.
func (u *user) load(skill string) (*loaded, error) {
	if l := u.loaded[skill]; l != nil {
		return l, nil
	}
	ctx, cancel := context.WithTimeout(u.t.Context(), limit)
	defer cancel()
	res, err := u.client.CallTool(ctx, &mcp.CallToolParams{Name: "load_skill", Arguments: map[string]any{"name": skill}})
	if err != nil {
		return nil, err
	}
	var l loaded
	data, err := json.Marshal(res.StructuredContent)
	if err == nil {
		err = json.Unmarshal(data, &l)
	}
	if err != nil || l.State != "loaded" || len(l.Problems) > 0 {
		return nil, fmt.Errorf("state %q, problems %q: %v", l.State, l.Problems, err)
	}
	u.loaded[skill] = &l
	return &l, nil
}

// shortened is the end of the name of a tool that was too long. Without it, the name
// ends with the tool's own name, or the beginning of it.
var shortened = regexp.MustCompile(`_[0-9a-f]{8}$`)

// callTool calls a tool that a skill provides, or one of the user's servers that
// its instructions name.
func (u *user) callTool(l *loaded, c use) (string, error) {
	name := c.tool
	if _, own, others := strings.Cut(name, "__"); others {
		if !strings.Contains(l.Instructions, own) {
			return "", fmt.Errorf("the instructions do not name %s", own)
		}
	} else {
		i := slices.IndexFunc(l.Tools, func(tool struct{ Name string }) bool {
			short := shortened.ReplaceAllString(tool.Name, "")
			_, own, _ := strings.Cut(short, "__")
			return own == c.tool || short != tool.Name && strings.HasPrefix(c.tool, own)
		})
		if i < 0 {
			return "", fmt.Errorf("no such tool in %v", l.Tools)
		}
		name = l.Tools[i].Name
	}
	return u.call("call_tool", map[string]any{"name": name, "arguments": c.args})
}

// call calls a tool of loadout mcp and returns the text of its result.
func (u *user) call(tool string, args map[string]any) (string, error) {
	ctx, cancel := context.WithTimeout(u.t.Context(), limit)
	defer cancel()
	res, err := u.client.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for _, content := range res.Content {
		if c, ok := content.(*mcp.TextContent); ok {
			text.WriteString(c.Text)
		}
	}
	if res.IsError {
		return "", errors.New(text.String())
	}
	return text.String(), nil
}

// runScript runs a script of a skill with loadout run.
func (u *user) runScript(skill string, c use) (string, error) {
	args := []string{"run", skill, c.script}
	if c.host {
		args = append(args, "--host-network")
	}
	for name, text := range c.in {
		u.write("in/"+name, text)
		top, _, _ := strings.Cut(name, "/")
		if in := "--in=in/" + top; !slices.Contains(args, in) {
			args = append(args, in)
		}
	}
	args = append(args, "--")
	for _, a := range c.argv {
		args = append(args, strings.ReplaceAll(a, "BACKEND", u.backend))
	}
	stdout, stderr, err := u.loadout(c.stdin, args...)
	if err != nil {
		return "", fmt.Errorf("%w: %s%s", err, stdout, stderr)
	}
	return stdout, nil
}
