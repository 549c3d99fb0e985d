package upstream

import (
	"maps"
	"slices"
	"strings"
)

// runners look for packages in the directory that they begin in, and believe its
// configuration: what is cloned there would decide what runs.
var runners = []string{"npx", "npm", "pnpm", "pnpx", "yarn", "bun", "bunx", "deno", "uvx", "uv", "pipx"}

// begins is where a command begins whose configuration names no directory: in that
// of v, unless it names the workspace. What looks for code there does so even then.
func (c *Config) begins(v Variables) string {
	if c.namesWorkspace() && !c.looksAround() {
		return ""
	}
	return v.Dir
}

func (c *Config) namesWorkspace() bool {
	found := false
	for _, s := range slices.Concat([]string{c.Command}, c.Args, slices.Collect(maps.Values(c.Env))) {
		each(template(s, 0), func(v *variable) {
			found = found || v.kind == FromPath && (v.name == "workspaceFolder" || v.name == "workspaceRoot")
		})
	}
	return found
}

// looksAround says whether a command takes code from the directory that it begins
// in: a package runner, wrapped too as in cmd /c npx, and python -m.
func (c *Config) looksAround() bool {
	python := false
	for _, text := range append([]string{c.Command}, c.Args...) {
		for word := range strings.FieldsSeq(text) {
			base := strings.ToLower(word[strings.LastIndexAny(word, `/\`)+1:])
			for _, suffix := range []string{".exe", ".cmd", ".bat", ".ps1"} {
				base = strings.TrimSuffix(base, suffix)
			}
			if slices.Contains(runners, base) || python && strings.HasPrefix(word, "-m") {
				return true
			}
			python = python || strings.HasPrefix(base, "python") || base == "py"
		}
	}
	return false
}
