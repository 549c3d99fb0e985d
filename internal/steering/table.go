package steering

import (
	"strings"
	"sync"
)

// Readers that occur several times in the tables.
const (
	git    = "Git"
	agents = "coding agents"
	shells = "shells"
	ci     = "continuous integration"
)

// names maps names of files and directories to the program that reads them. An
// entry for a directory also applies to everything below it. Each entry applies
// at any depth, because agents and editors read the files of whichever
// subdirectory a user opens. The entries come from the documentation of each
// program.
var names = map[string]string{
	// Instructions and settings of coding agents.
	"agents.md": agents, "agents.override.md": "Codex", "agent.md": agents, "skill.md": agents, // agents.md, agentskills.io
	".agents": agents, ".agent": agents, ".rules": "Zed", // zed.dev/docs/ai/rules
	"claude.md": "Claude Code", "claude.local.md": "Claude Code", ".claude": "Claude Code", ".claude-plugin": "Claude Code", ".claude.json": "Claude Code", // code.claude.com/docs/en/settings, memory, plugins
	".codex": "Codex", ".codex-plugin": "Codex", // developers.openai.com/codex/config
	"gemini.md": "Gemini CLI", ".gemini": "Gemini CLI", "gemini-extension.json": "Gemini CLI", // geminicli.com/docs/cli/settings
	"qwen.md": "Qwen Code", ".qwen": "Qwen Code", // qwenlm.github.io/qwen-code-docs
	".cursor": "Cursor", ".cursorrules": "Cursor", ".cursorignore": "Cursor", // cursor.com/docs/context/rules
	".windsurf": "Windsurf", ".windsurfrules": "Windsurf", ".codeium": "Windsurf", ".devin": "Devin", // docs.windsurf.com, docs.devin.ai/cli/extensibility
	".clinerules": "Cline", ".cline": "Cline", ".roo": "Roo Code", ".roorules": "Roo Code", ".roomodes": "Roo Code", ".kilocode": "Kilo Code", ".kilocoderules": "Kilo Code", ".kilocodemodes": "Kilo Code", // kilo.ai/docs/customize, docs.cline.bot, docs.roocode.com
	".aider.conf.yml": "Aider", ".aiderignore": "Aider", ".aider.model.settings.yml": "Aider", // aider.chat/docs/config
	".continue": "Continue", ".continuerules": "Continue", ".continuerc.json": "Continue", // docs.continue.dev
	".goosehints": "goose", ".goose": "goose", // block.github.io/goose
	"opencode.json": "opencode", "opencode.jsonc": "opencode", ".opencode": "opencode", // opencode.ai/docs/config
	"crush.md": "Crush", "crush.json": "Crush", ".crush.json": "Crush", ".crush": "Crush", // github.com/charmbracelet/crush
	".amp": "Amp", ".factory": "Droid", ".junie": "Junie", ".kiro": "Kiro", ".trae": "Trae", ".augment": "Auggie", ".augment-guidelines": "Auggie",
	".amazonq": "Amazon Q", ".openhands": "OpenHands", ".kimi": "Kimi CLI", "warp.md": "Warp", ".warp": "Warp", ".pi": "pi", ".qoder": "Qoder", ".zencoder": "Zencoder", // docs.qoder.com/user-guide/rules
	".idx": "Firebase Studio", ".tabnine": "Tabnine",
	".mcp.json": agents, "mcp.json": agents, ".mcp": agents, // modelcontextprotocol.io
	".loadout": "Loadout", "loadout.yaml": "Loadout", "loadout.lock": "Loadout",
	".env":                    agents,                           // geminicli.com/docs/get-started/configuration, aider.chat/docs/config/dotenv: also the address of the model
	"copilot-instructions.md": "Copilot", ".copilot": "Copilot", // docs.github.com/copilot

	// Editors and development environments.
	".vscode": "VS Code", ".vscode-insiders": "VS Code", ".vs": "Visual Studio", ".idea": "JetBrains IDEs", ".run": "JetBrains IDEs", ".fleet": "Fleet",
	".zed": "Zed", ".helix": "Helix", ".devcontainer": "development containers", ".devcontainer.json": "development containers", // containers.dev
	".gitpod.yml": "Gitpod", ".replit": "Replit", "replit.nix": "Replit", ".nova": "Nova",
	".exrc": "Vim", ".vimrc": "Vim", ".gvimrc": "Vim", ".nvimrc": "Neovim", ".nvim.lua": "Neovim", ".lvimrc": "Vim", ".vim": "Vim",
	".dir-locals.el": "Emacs", ".dir-locals-2.el": "Emacs", ".emacs": "Emacs", ".emacs.d": "Emacs", ".projectile": "Emacs",

	// Version control and its hooks.
	".hg": "Mercurial", ".hgrc": "Mercurial", ".svn": "Subversion", ".jj": "Jujutsu", ".bzr": "Bazaar", ".gitmodules": git, ".gitconfig": git, ".githooks": git,
	".husky": "Husky", ".huskyrc": "Husky", ".lefthook": "Lefthook", "lefthook.yml": "Lefthook", "lefthook.yaml": "Lefthook", ".lefthook.yml": "Lefthook", "lefthook-local.yml": "Lefthook",
	".pre-commit-config.yaml": "pre-commit", ".pre-commit-hooks.yaml": "pre-commit", ".overcommit.yml": "Overcommit", ".lintstagedrc": "lint-staged", // pre-commit.com

	// Shells, and programs that read settings from the current directory.
	".mise": "mise", "mise": "mise", // mise.jdx.dev/configuration.html
	".envrc": "direnv", ".env.ps1": shells, "mise.toml": "mise", ".mise.toml": "mise", ".tool-versions": "asdf", ".autoenv": "autoenv",
	".bashrc": shells, ".bash_profile": shells, ".bash_login": shells, ".bash_logout": shells, ".bash_aliases": shells, ".profile": shells, ".zshrc": shells, ".zshenv": shells,
	".zprofile": shells, ".zlogin": shells, ".kshrc": shells, ".inputrc": shells,
	".gdbinit": "GDB", ".lldbinit": "LLDB", ".pdbrc": "the Python debugger", ".irbrc": "irb", ".pryrc": "Pry", ".rprofile": "R", ".renviron": "R", ".iex.exs": "Elixir",
	".tmux.conf": "tmux", ".screenrc": "screen", ".netrc": "curl", ".curlrc": "curl", ".wgetrc": "wget", ".ssh": "SSH", ".gnupg": "GnuPG", ".docker": "Docker", ".kube": "kubectl",
	"sitecustomize.py": "Python", "usercustomize.py": "Python", "autorun.inf": "Windows", "desktop.ini": "Windows",

	// Package managers and build tools, whose settings name programs or servers.
	".npmrc": "npm", ".yarnrc": "Yarn", ".yarnrc.yml": "Yarn", ".pnpmfile.cjs": "pnpm", ".pnpmfile.mjs": "pnpm", "pnpmfile.cjs": "pnpm", ".pnp.cjs": "Yarn", ".pnp.loader.mjs": "Yarn", // yarnpkg.com/features/pnp
	"rust-toolchain": "rustup", "rust-toolchain.toml": "rustup", ".luarc.json": "the Lua language server", ".pylintrc": "Pylint", // rust-lang.github.io/rustup/overrides.html
	".bunfig.toml": "Bun", "bunfig.toml": "Bun",
	".pypirc": "pip", "pip.conf": "pip", "pip.ini": "pip", "uv.toml": "uv", ".condarc": "conda", ".gemrc": "RubyGems", ".bundle": "Bundler",
	".cargo": "Cargo", ".mvn": "Maven", "gradle.properties": "Gradle", ".bazelrc": "Bazel", ".buckconfig": "Buck", ".sbtopts": "sbt", ".jvmopts": "sbt",

	// Continuous integration, which runs on the next push.
	".github": ci, ".gitlab-ci.yml": ci, ".gitlab": ci, ".circleci": ci, ".travis.yml": ci, ".drone.yml": ci, ".woodpecker": ci, ".woodpecker.yml": ci, ".buildkite": ci,
	".gitea": ci, ".forgejo": ci, "jenkinsfile": ci, "azure-pipelines.yml": ci, "bitbucket-pipelines.yml": ci, ".azure-pipelines": ci, "appveyor.yml": ci, ".appveyor.yml": ci, "cloudbuild.yaml": ci,
}

// bases lists prefixes of file names. They end with a separator, which any
// extension, mode or environment can follow.
var bases = []struct{ base, reader string }{
	{".lintstagedrc.", "lint-staged"}, {"lint-staged.config.", "lint-staged"}, {".huskyrc.", "Husky"}, {"husky.config.", "Husky"},
	{"lefthook.", "Lefthook"}, {".lefthook.", "Lefthook"}, {"lefthook-local.", "Lefthook"}, {".lefthook-local.", "Lefthook"}, // lefthook.dev/configuration
	{"mise.", "mise"}, {".mise.", "mise"},
	{".pnpmfile.", "pnpm"}, {"pnpmfile.", "pnpm"}, {".pnp.", "Yarn"}, // yarnpkg.com/features/pnp
	{".clinerules-", "Roo Code"}, {".roorules-", "Roo Code"}, {".kilocoderules-", "Kilo Code"}, {".continuerc.", "Continue"}, // docs.roocode.com/advanced-usage/custom-instructions
}

// suffixes lists suffixes of file names.
var suffixes = []struct{ suffix, reader string }{
	{".code-workspace", "VS Code"}, {".sublime-project", "Sublime Text"}, {".run.xml", "JetBrains IDEs"}, {".desktop", "the desktop"}, {".lnk", "Windows"},
	{".instructions.md", "Copilot"}, {".prompt.md", "Copilot"}, {".chatmode.md", "Copilot"}, {".agent.md", "Copilot"}, {".mdc", "Cursor"},
}

// shortNames maps the short forms that Windows creates for the keys of names,
// such as claude~1, to the same programs.
var shortNames = sync.OnceValue(func() map[string]string {
	out := map[string]string{}
	for name, reader := range names {
		base, ext, _ := strings.Cut(strings.TrimLeft(name, "."), ".")
		base = base[:min(len(base), 6)]
		for _, n := range []string{"~1", "~2", "~3", "~4"} {
			short := base + n
			if ext != "" {
				short += "." + ext[:min(len(ext), 3)]
			}
			out[short] = reader
		}
	}
	return out
})

// dependencyDirs lists the directories into which package managers install
// packages. Directories for build output, such as target, and for vendored
// source, such as vendor, are not listed, because users review and open them.
var dependencyDirs = map[string]bool{
	"node_modules": true, "bower_components": true, "jspm_packages": true, // npm, Bower, jspm
	"site-packages": true, "dist-packages": true, "__pycache__": true, ".venv": true, "venv": true, ".tox": true, ".nox": true, "__pypackages__": true, // Python
}

// dataDirs and dataFiles list what a Git repository contains besides settings
// and programs, in lower case; see gitrepository-layout(5). Names that end in
// _HEAD are data too.
var (
	dataDirs  = map[string]bool{"objects": true, "refs": true, "logs": true, "lfs": true, "rr-cache": true, "reftable": true}
	dataFiles = map[string]bool{
		"index": true, "head": true, "packed-refs": true, "shallow": true, "description": true, "gc.log": true, "gc.pid": true,
		"commit_editmsg": true, "merge_msg": true, "merge_mode": true, "merge_rr": true, "squash_msg": true, "tag_editmsg": true, "auto_merge": true,
	}
)
