package config

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// Skills says which skills there are and which of them are available.
type Skills struct {
	Enabled bool
	Dirs    []string
	Project bool
	Home    bool
	Bundled bool
	Allow   []string
	Shell   string
	Depth   int
	Watch   bool
}

// MCP adjusts the MCP server.
type MCP struct {
	Address    string
	TokenFile  string
	TextBudget int
	Compat     string
}

// setting is one key: its place in the file, its environment variable, what
// it means, and the field it sets.
type setting struct {
	key, env, doc string
	value         func(*Config) any // *bool, *int, *string or *[]string
	// project says that a project's own file may set it before the project
	// is trusted.
	project bool
	path    bool // its texts are paths
	check   func(any) error
}

// settings are all keys in the order of the example.
var settings = []setting{
	{key: "skills.enabled", env: "LOADOUT_SKILLS_ENABLED", value: func(c *Config) any { return &c.Skills.Enabled },
		doc: "The kill switch: false hides all skills from everybody."},
	{key: "skills.dirs", env: "LOADOUT_SKILLS_DIRS", value: func(c *Config) any { return &c.Skills.Dirs }, project: true, path: true,
		doc: "Further directories, .skill or .zip files with skills, preferred to the default places.\n" +
			"Relative paths are relative to this file; in the environment separate them as in PATH."},
	{key: "skills.project", env: "LOADOUT_SKILLS_PROJECT", value: func(c *Config) any { return &c.Skills.Project },
		doc: "Look in the project: skills, .loadout/skills, .agents/skills, .claude/skills, .codex/skills,\n" +
			".gemini/skills, .cursor/skills and .github/skills, from the working directory up to the\nroot of its repository."},
	{key: "skills.home", env: "LOADOUT_SKILLS_HOME", value: func(c *Config) any { return &c.Skills.Home },
		doc: "Look in the same dotted directories below the home directory, and in installed Claude plugins."},
	{key: "skills.bundled", env: "LOADOUT_SKILLS_BUNDLED", value: func(c *Config) any { return &c.Skills.Bundled },
		doc: "Offer the skills that come with Loadout."},
	{key: "skills.allow", env: "LOADOUT_SKILLS_ALLOW", value: func(c *Config) any { return &c.Skills.Allow },
		doc: "The only skills that are available: names, globs (docs-*), or either with a version\n(pdf@>=1.2). Empty means all."},
	{key: "skills.shell", env: "LOADOUT_SKILLS_SHELL", value: func(c *Config) any { return &c.Skills.Shell },
		doc: "The kind of agent that the skills are for, as ClaudeCode or Chat: skills that are bound to\nother kinds (bindShells) are hidden. Empty hides none."},
	{key: "skills.depth", env: "LOADOUT_SKILLS_DEPTH", value: func(c *Config) any { return &c.Skills.Depth }, check: between(1, 32),
		doc: "How many levels below a directory skills are searched."},
	{key: "skills.watch", env: "LOADOUT_SKILLS_WATCH", value: func(c *Config) any { return &c.Skills.Watch },
		doc: "Notice changes while running; without it, on SIGHUP only."},
	{key: "mcp.address", env: "LOADOUT_MCP_ADDRESS", value: func(c *Config) any { return &c.MCP.Address },
		doc: "Serve MCP over HTTP at this address, as 127.0.0.1:8485; empty means stdio."},
	{key: "mcp.token_file", env: "LOADOUT_MCP_TOKEN_FILE", value: func(c *Config) any { return &c.MCP.TokenFile }, path: true,
		doc: "File with the token that clients must send over HTTP; needed for other than loopback addresses.\nA relative path is relative to this file."},
	{key: "mcp.text_budget", env: "LOADOUT_MCP_TEXT_BUDGET", value: func(c *Config) any { return &c.MCP.TextBudget }, check: between(200, 1_000_000),
		doc: "How many characters of skill names and descriptions a client is told at the start."},
	{key: "mcp.compat", env: "LOADOUT_MCP_COMPAT", value: func(c *Config) any { return &c.MCP.Compat }, check: oneOf("", "weknora", "ba-agent", "wegent"),
		doc: "Serve the tools of an earlier system in place of ours: weknora, ba-agent or wegent."},
}

func between(low, high int) func(any) error {
	return func(v any) error {
		if n := *v.(*int); n < low || n > high {
			return fmt.Errorf("%d is not between %d and %d", n, low, high)
		}
		return nil
	}
}

func oneOf(names ...string) func(any) error {
	return func(v any) error {
		for _, n := range names {
			if *v.(*string) == n {
				return nil
			}
		}
		return fmt.Errorf("%q is not one of %s", *v.(*string), strings.Join(names[1:], ", "))
	}
}

// defaults is the configuration where nothing is set.
func defaults() *Config {
	return &Config{
		Skills: Skills{Enabled: true, Project: true, Home: true, Bundled: true, Depth: 6, Watch: true},
		MCP:    MCP{TextBudget: 2000},
		from:   map[string]string{},
	}
}

// parse sets a value from text, as in the environment.
func (s setting) parse(c *Config, text string) error {
	switch v := s.value(c).(type) {
	case *bool:
		b, err := parseBool(text)
		if err != nil {
			return err
		}
		*v = b
	case *int:
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil {
			return fmt.Errorf("%q is not a number", text)
		}
		*v = n
	case *string:
		*v = text
	case *[]string:
		if *v = splitList(s.path, text); len(*v) == 0 {
			return fmt.Errorf("%q names nothing; unset it, or give it a value", text)
		}
	}
	return s.valid(c)
}

func (s setting) valid(c *Config) error {
	if s.check == nil {
		return nil
	}
	return s.check(s.value(c))
}

func parseBool(s string) (bool, error) {
	switch strings.ToLower(strings.TrimSpace(s)) {
	case "1", "true", "yes", "on":
		return true, nil
	case "0", "false", "no", "off", "":
		return false, nil
	}
	return false, fmt.Errorf("%q is neither true nor false", s)
}

// splitList splits paths as in PATH, other lists at commas.
func splitList(paths bool, text string) []string {
	parts := strings.Split(text, ",")
	if paths {
		parts = filepath.SplitList(text)
	}
	var out []string
	for _, p := range parts {
		if p = strings.TrimSpace(p); p != "" {
			out = append(out, p)
		}
	}
	return out
}
