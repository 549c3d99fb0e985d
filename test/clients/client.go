package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// client is an MCP client that runs without a terminal.
type client struct {
	name    string // the name of its recording
	npm     string // package whose version is recorded
	program string // path below node_modules
	// prepare writes the configuration with a server and a model, and returns the
	// arguments and the environment of the client.
	prepare func(r *run) (args, env []string, err error)
}

// run describes one run of a client.
type run struct {
	home, project string
	model         string   // URL of the fake model
	server        string   // name of the MCP server
	command       []string // command of the MCP server
	// allowed is set if the client may call the server's tools without asking.
	allowed bool
}

// args returns args, followed by allow if the client may call the server's
// tools.
func (r *run) args(allow []string, args ...string) []string {
	if r.allowed {
		return append(args, allow...)
	}
	return args
}

const prompt = "Call the tool."

// arch returns the name that npm packages use for the architecture.
func arch() string {
	if runtime.GOARCH == "amd64" {
		return "x64"
	}
	return runtime.GOARCH
}

var clients = []client{
	{"claude-code", "@anthropic-ai/claude-code", "@anthropic-ai/claude-code-linux-" + arch() + "/claude", prepareClaude},
	{"codex", "@openai/codex", ".bin/codex", prepareCodex},
	{"gemini-cli", "@google/gemini-cli", ".bin/gemini", prepareGemini},
	{"opencode", "opencode-ai", "opencode-linux-" + arch() + "/bin/opencode", prepareOpencode},
}

func prepareClaude(r *run) (args, env []string, err error) {
	config := filepath.Join(r.home, "mcp.json")
	err = writeJSON(config, object{"mcpServers": object{r.server: object{"type": "stdio", "command": r.command[0], "args": r.command[1:]}}})
	return r.args([]string{"--allowedTools", "mcp__" + r.server}, "-p", prompt, "--mcp-config", config, "--strict-mcp-config"),
		[]string{"ANTHROPIC_BASE_URL=" + r.model, "ANTHROPIC_API_KEY=none", "DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "MCP_TIMEOUT=120000"}, err
}

func prepareCodex(r *run) (args, env []string, err error) {
	quoted, err := json.Marshal(r.command[1:])
	if err != nil {
		return nil, nil, err
	}
	err = writeFile(filepath.Join(r.home, ".codex", "config.toml"), fmt.Sprintf(`model = "gpt-5"
model_provider = "fake"
[model_providers.fake]
name = "fake"
base_url = %q
wire_api = "responses"
env_key = "FAKE_KEY"
[mcp_servers.%s]
command = %q
args = %s
startup_timeout_sec = 120
[analytics]
enabled = false
`, r.model+"/v1", r.server, r.command[0], quoted))
	return r.args([]string{"--dangerously-bypass-approvals-and-sandbox"}, "exec", "--skip-git-repo-check", prompt), []string{"FAKE_KEY=none"}, err
}

func prepareGemini(r *run) (args, env []string, err error) {
	err = writeJSON(filepath.Join(r.home, ".gemini", "settings.json"), object{
		"mcpServers": object{r.server: object{"command": r.command[0], "args": r.command[1:], "trust": r.allowed}},
		"security":   object{"auth": object{"selectedType": "gemini-api-key"}, "folderTrust": object{"enabled": false}},
		"privacy":    object{"usageStatisticsEnabled": false},
		"general":    object{"enableAutoUpdate": false},
	})
	return r.args([]string{"--yolo"}, "-p", prompt, "-m", "gemini-2.5-flash"), []string{"GEMINI_API_KEY=none", "GOOGLE_GEMINI_BASE_URL=" + r.model}, err
}

func prepareOpencode(r *run) (args, env []string, err error) {
	err = writeJSON(filepath.Join(r.home, ".config", "opencode", "opencode.json"), object{
		"provider": object{"fake": object{"npm": "@ai-sdk/openai-compatible", "name": "fake",
			"options": object{"baseURL": r.model + "/v1", "apiKey": "none"}, "models": object{"fake": object{"name": "fake"}}}},
		"model": "fake/fake", "small_model": "fake/fake", "autoupdate": false, "share": "disabled",
		"mcp": object{r.server: object{"type": "local", "command": r.command, "enabled": true, "timeout": 120_000}},
	})
	return []string{"run", prompt}, []string{"OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_AUTOUPDATE=1"}, err
}

type object = map[string]any

func writeJSON(path string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(path, string(b)+"\n")
}

func writeFile(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o600)
}

// skillDirs are the directories in which clients may look for skills, below the
// home directory, and below a project and its parents.
var skillDirs = []string{".agents/skills", ".claude/skills", ".codex/skills", ".codex/skills/.system", ".config/opencode/skills", ".cursor/skills", ".gemini/skills", ".github/skills", ".opencode/skills", "skills"}

// writeSkills writes two skills into each of skillDirs below root: one directly,
// and one in the subdirectory group.
func writeSkills(root, where string) error {
	for _, dir := range skillDirs {
		for _, name := range []string{skillName(where, dir), "group/" + skillName(where, dir) + "-below"} {
			text := "---\nname: " + filepath.Base(name) + "\ndescription: Marks " + filepath.Base(name) + ".\n---\nNothing.\n"
			if err := writeFile(filepath.Join(root, filepath.FromSlash(dir), filepath.FromSlash(name), "SKILL.md"), text); err != nil {
				return err
			}
		}
	}
	return nil
}

// skillName returns the name of the skill in a directory.
func skillName(where, dir string) string {
	return "native-" + where + "-" + strings.Trim(strings.NewReplacer("/.", "-", "/", "-", ".", "").Replace(dir), "-")
}
