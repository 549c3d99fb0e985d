package upstream

import (
	"maps"
	"slices"
	"strings"
)

// packageRunners lists commands that load packages and configuration from the
// working directory. A cloned repository could control them.
var packageRunners = []string{"npx", "npm", "pnpm", "pnpx", "yarn", "bun", "bunx", "deno", "uvx", "uv", "pipx"}

// workDir returns the working directory for a command without a configured
// directory. It returns v.Dir, or "" (the current directory) if the
// configuration mentions the workspace and the command does not load code from
// its working directory.
func (c *Config) workDir(v Variables) string {
	if c.mentionsWorkspace() && !c.loadsFromWorkDir() {
		return ""
	}
	return v.Dir
}

func (c *Config) mentionsWorkspace() bool {
	found := false
	for _, s := range slices.Concat([]string{c.Command}, c.Args, slices.Collect(maps.Values(c.Env))) {
		eachVariable(parseTemplate(s, 0), func(v *variable) {
			found = found || v.kind == FromPath && (v.name == "workspaceFolder" || v.name == "workspaceRoot")
		})
	}
	return found
}

// loadsFromWorkDir reports whether the command loads code from its working
// directory. This is the case for package runners, even if wrapped as in cmd /c
// npx, and for python -m.
func (c *Config) loadsFromWorkDir() bool {
	python := false
	for _, text := range append([]string{c.Command}, c.Args...) {
		for word := range strings.FieldsSeq(text) {
			base := strings.ToLower(word[strings.LastIndexAny(word, `/\`)+1:])
			for _, suffix := range []string{".exe", ".cmd", ".bat", ".ps1"} {
				base = strings.TrimSuffix(base, suffix)
			}
			if slices.Contains(packageRunners, base) || python && strings.HasPrefix(word, "-m") {
				return true
			}
			python = python || strings.HasPrefix(base, "python") || base == "py"
		}
	}
	return false
}
