// Package steeringtest lists files for tests of code that must not write
// steering files.
package steeringtest

// Files lists paths that attacks write to. A file at any of these paths can
// give instructions to an agent or make another program run a command.
var Files = []string{
	".git/hooks/pre-commit", ".git/hooks/post-checkout", ".git/config", ".git/config.worktree", ".git/info/attributes", "sub/.git/hooks/post-merge", "sub/.git/config", "wt/.git",
	".git/modules/lib/hooks/post-update", ".git/modules/lib/config", ".git/rebase-merge/git-rebase-todo", ".gitmodules", ".hg/hgrc", "sub/.hg/hgrc",
	".vscode/tasks.json", ".vscode/settings.json", ".vscode/mcp.json", "sub/.vscode/launch.json", "x.code-workspace", ".idea/workspace.xml", ".run/x.run.xml", ".zed/tasks.json", ".zed/settings.json",
	".devcontainer/devcontainer.json", ".devcontainer.json", ".exrc", ".dir-locals.el",
	".claude/settings.json", ".claude/settings.local.json", ".claude/commands/x.md", ".claude/agents/x.md", ".claude/skills/x/SKILL.md", "CLAUDE.md", "CLAUDE.local.md", "sub/CLAUDE.md",
	"AGENTS.md", "sub/AGENTS.md", ".agents/skills/git-commit-review/SKILL.md", "skills/x/SKILL.md", ".codex/config.toml", ".gemini/settings.json", "GEMINI.md",
	".cursor/rules/x.mdc", ".cursor/mcp.json", ".cursorrules", ".windsurfrules", ".devin/mcp_config.json", ".clinerules/x.md", ".github/copilot-instructions.md", ".github/workflows/x.yml", ".gitlab-ci.yml",
	".mcp.json", "opencode.json", ".loadout/skills/x/SKILL.md", "loadout.yaml",
	".envrc", ".husky/pre-commit", ".pre-commit-config.yaml", ".npmrc",
}
