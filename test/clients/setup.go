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

// maxAnswers is the number of questions that a new user answers until a skill is
// loaded in Claude Code and Codex. It excludes questions that these clients also ask
// without Loadout, such as whether to trust a directory.
const maxAnswers = 2

// checkSetup connects Claude Code and Codex in a new home directory with "loadout
// setup" in a terminal, checks that a skill is loaded in both, and counts the
// answers. Then it checks that "loadout disconnect --all" restores Codex's file,
// and removes the entry from Claude Code's file, which Claude Code has also
// changed.
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
	run := func(input, name string, args ...string) (string, error) {
		ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Dir = project
		if input != "" {
			cmd.Stdin = strings.NewReader(input)
		}
		cmd.Env = []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + home, "TERM=dumb", "NO_COLOR=1", "LANG=C.UTF-8", "FAKE_KEY=none",
			"ANTHROPIC_BASE_URL=" + models["claude"].URL, "ANTHROPIC_API_KEY=none", "DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "MCP_TIMEOUT=120000"}
		cmd.WaitDelay = 10 * time.Second
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	program := filepath.Join(bin, "loadout")
	out, err := run("y\n", "script", "-qec", program+" setup", "/dev/null") // in a terminal, with one answer
	answers := strings.Count(out, "[y/N]")
	if err != nil || answers != 1 || !strings.Contains(out, "Done: connected Claude Code and Codex.") {
		return fmt.Errorf("loadout setup asked %d times, want once (%v): %s", answers, err, out)
	}
	var shown struct{ Instructions string }
	text, err := run("", program, "show", setupSkill, "--json")
	if err := errors.Join(err, json.Unmarshal([]byte(text), &shown)); err != nil {
		return err
	}
	line, _, _ := strings.Cut(strings.TrimSpace(shown.Instructions), "\n")
	if line == "" {
		return fmt.Errorf("%s has no instructions", setupSkill)
	}
	for _, c := range []struct {
		name       string
		args       []string
		permission []string // what the user allows if the client asks; nil if it asks for nothing
	}{
		{"claude", []string{"-p", prompt}, []string{"--allowedTools", "mcp__loadout__load_skill"}},
		{"codex", []string{"exec", "--skip-git-repo-check", prompt}, nil},
	} {
		loads := func(args []string) (bool, string) {
			out, err := run("", filepath.Join(bin, c.name), args...)
			requests, _ := models[c.name].recorded()
			return bytes.Contains(bytes.Join(requests, nil), []byte(line)), fmt.Sprintf("%v: %s", err, out[max(0, len(out)-2000):])
		}
		ok, problem := loads(c.args)
		if !ok && c.permission != nil {
			answers++
			ok, problem = loads(append(c.args, c.permission...))
		}
		if !ok {
			return fmt.Errorf("%s did not show %q to its model (%s)", c.name, line, problem)
		}
	}
	if answers > maxAnswers {
		return fmt.Errorf("clients needed %d answers to load a skill, want at most %d", answers, maxAnswers)
	}
	if out, err := run("", program, "disconnect", "--all", "--yes"); err != nil {
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
	fmt.Printf("setup: %s was loaded in Claude Code and Codex after one command and %d answers\n", setupSkill, answers)
	return nil
}
