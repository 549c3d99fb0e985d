package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// setupSkill is a bundled skill, so that it is available to a new user.
const setupSkill = "csv-analysis"

// checkSetup connects Claude Code and Codex in a new home directory with
// "loadout setup", and checks that a skill is loaded in both. Then it checks
// that "loadout disconnect --all" restores Codex's file and removes the entry
// from that of Claude Code, which Claude Code writes itself.
func checkSetup(loadout, modules string) error {
	dir, err := os.MkdirTemp("", "clients-setup-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	bin, home, project := filepath.Join(dir, "bin"), filepath.Join(dir, "home"), filepath.Join(dir, "project")
	if err := errors.Join(os.Mkdir(bin, 0o700), os.MkdirAll(filepath.Join(project, ".git"), 0o700)); err != nil {
		return err
	}
	for name, target := range map[string]string{"loadout": loadout, "claude": filepath.Join(modules, clients[0].program), "codex": filepath.Join(modules, clients[1].program)} {
		if err := os.Symlink(target, filepath.Join(bin, name)); err != nil {
			return err
		}
	}
	models := map[string]*fakeModel{}
	for _, name := range []string{"claude", "codex"} {
		models[name] = newFakeModel("load_skill", `{"name":"`+setupSkill+`"}`)
		defer models[name].Close()
	}
	// Only the model is configured.
	config := filepath.Join(home, ".codex", "config.toml")
	before := fmt.Sprintf("# my model\nmodel = \"gpt-5\"\nmodel_provider = \"fake\"\n\n[model_providers.fake]\nname = \"fake\"\nbase_url = %q # here\nwire_api = \"responses\"\nenv_key = \"FAKE_KEY\"\n",
		models["codex"].URL+"/v1")
	if err := writeFile(config, before); err != nil {
		return err
	}
	run := func(name string, args ...string) (string, error) {
		ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, filepath.Join(bin, name), args...)
		cmd.Dir = project
		cmd.Env = []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + home, "TERM=dumb", "NO_COLOR=1", "LANG=C.UTF-8", "FAKE_KEY=none",
			"ANTHROPIC_BASE_URL=" + models["claude"].URL, "ANTHROPIC_API_KEY=none", "DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "MCP_TIMEOUT=120000"}
		cmd.WaitDelay = 10 * time.Second
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := run("loadout", "setup", "--yes"); err != nil || !strings.Contains(out, "Claude Code") || !strings.Contains(out, "Codex") {
		return fmt.Errorf("loadout setup: %w: %s", err, out)
	}
	var shown struct{ Instructions string }
	text, err := run("loadout", "show", setupSkill, "--json")
	if err := errors.Join(err, json.Unmarshal([]byte(text), &shown)); err != nil {
		return err
	}
	line, _, _ := strings.Cut(strings.TrimSpace(shown.Instructions), "\n")
	for name, args := range map[string][]string{
		"claude": {"-p", prompt, "--allowedTools", "mcp__loadout"},
		"codex":  {"exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", prompt},
	} {
		out, err := run(name, args...)
		requests, _ := models[name].recorded()
		bodies := bytes.Join(requests, nil)
		if line == "" || !bytes.Contains(bodies, []byte(line)) {
			return fmt.Errorf("%s did not show %q to its model (%v): %s", name, line, err, out[max(0, len(out)-2000):])
		}
	}
	if out, err := run("loadout", "disconnect", "--all", "--yes"); err != nil {
		return fmt.Errorf("loadout disconnect: %w: %s", err, out)
	}
	after, err := os.ReadFile(config)
	claude, err2 := os.ReadFile(filepath.Join(home, ".claude.json"))
	if errors.Join(err, err2) != nil || bytes.Contains(claude, []byte(`"loadout"`)) {
		return fmt.Errorf("still connected to Claude Code: %v", errors.Join(err, err2))
	}
	// Codex appends the trust of the project.
	if !strings.HasPrefix(string(after), before) || strings.Contains(string(after), "loadout") {
		return fmt.Errorf("file of Codex was not restored: %s", after)
	}
	fmt.Printf("setup: %s was loaded in Claude Code and Codex after one command\n", setupSkill)
	return nil
}
