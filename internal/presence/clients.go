package presence

// marker is an environment variable that a client sets for the commands its
// agent runs. Variables that a user sets to configure a client, such as
// CODEX_HOME, and those that an editor sets in each terminal, such as
// CURSOR_TRACE_ID and TERM_PROGRAM, are not markers.
type marker struct {
	variable string
	client   string
	values   []string // values that indicate the client; nil means any
}

var markers = []marker{
	// code.claude.com/docs/en/env-vars: "Set to 1 in shell environments Claude Code spawns".
	{"CLAUDECODE", "Claude Code", nil},
	// openai/codex: codex-rs, shell_environment.rs and unified_exec; spawn.rs for the sandbox.
	{"CODEX_THREAD_ID", "Codex", nil},
	{"CODEX_CI", "Codex", nil},
	{"CODEX_SANDBOX", "Codex", nil},
	{"CODEX_SANDBOX_NETWORK_DISABLED", "Codex", nil},
	// geminicli.com/docs/tools/shell, "Environment variables"; shellExecutionService.ts.
	{"GEMINI_CLI", "Gemini CLI", nil},
	// QwenLM/qwen-code: shellExecutionService.ts.
	{"QWEN_CODE", "Qwen Code", nil},
	// sst/opencode: packages/opencode/src/index.ts.
	{"OPENCODE", "opencode", nil},
	// charmbracelet/crush: internal/shell/shell.go.
	{"CRUSH", "Crush", nil},
	// block/goose: crates/goose-mcp, developer shell.
	{"GOOSE_TERMINAL", "goose", nil},
	// github/copilot-cli: changelog of 0.0.421, for detection by Git hooks.
	{"COPILOT_CLI", "Copilot CLI", nil},
	// aws/aws-cdk-cli: detect-agent.ts; vercel/vercel: packages/detect-agent.
	{"CURSOR_AGENT", "Cursor", nil},
	// cline/cline: discussion 5366 and the documentation of its terminal.
	{"CLINE_ACTIVE", "Cline", nil},
	// docs.augmentcode.com: commands of Auggie.
	{"AUGMENT_AGENT", "Auggie", nil},
	// vercel/vercel: packages/detect-agent/README.md, "The AI_AGENT Standard".
	{"AI_AGENT", "an agent", nil},
	// agentsmd/agents.md: issue 136. Other programs use this name too, so only
	// the values of known clients count.
	{"AGENT", "an agent", []string{"amp", "goose", "crush", "opencode", "pi"}},
}

// client is a command-line client whose agent runs commands.
type client struct {
	name     string
	commands []string // names of its program
	packages []string // directories of its package, for clients that an interpreter runs
}

// clients lists the known clients. The names of commands and packages come from
// the installation instructions.
var clients = []client{
	{"Claude Code", []string{"claude"}, []string{"@anthropic-ai/claude-code"}},  // code.claude.com/docs/en/setup
	{"Codex", []string{"codex"}, []string{"@openai/codex"}},                     // github.com/openai/codex
	{"Gemini CLI", []string{"gemini"}, []string{"@google/gemini-cli"}},          // github.com/google-gemini/gemini-cli
	{"Qwen Code", []string{"qwen"}, []string{"@qwen-code/qwen-code"}},           // github.com/QwenLM/qwen-code
	{"opencode", []string{"opencode"}, []string{"opencode-ai"}},                 // opencode.ai/docs
	{"Crush", []string{"crush"}, []string{"@charmland/crush"}},                  // github.com/charmbracelet/crush
	{"goose", []string{"goose", "goosed"}, nil},                                 // github.com/block/goose
	{"Copilot CLI", []string{"copilot"}, []string{"@github/copilot"}},           // github.com/github/copilot-cli
	{"Cursor CLI", []string{"cursor-agent"}, []string{"cursor-agent/versions"}}, // cursor.com/docs/cli/installation
	{"Aider", []string{"aider"}, nil},                                           // aider.chat/docs/install.html
	{"Amp", []string{"amp"}, []string{"@sourcegraph/amp"}},                      // ampcode.com/manual
	{"Droid", []string{"droid"}, nil},                                           // docs.factory.ai/cli
	{"Auggie", []string{"auggie"}, []string{"@augmentcode/auggie"}},             // docs.augmentcode.com/cli
	{"Kimi CLI", []string{"kimi"}, nil},                                         // github.com/MoonshotAI/kimi-cli
	{"Cline", []string{"cline"}, nil},                                           // docs.cline.bot/cline-cli
}

// interpreters lists programs that run clients written as scripts. Digits at
// the end of a name are ignored.
var interpreters = []string{"node", "bun", "deno", "python"}

// valueOptions lists the interpreter options that take the next argument as
// their value. The sources are nodejs.org/api/cli.html and
// docs.python.org/3/using/cmdline.html.
var valueOptions = []string{
	"-r", "--require", "--import", "--loader", "--experimental-loader", "-C", "--conditions", "--title", "--stack-trace-limit",
	"--env-file", "--inspect-port", "--openssl-config", "--icu-data-dir", "--input-type", "--disable-warning", "--watch-path",
	"-W", "-X", "--check-hash-based-pycs", "--preload", "--config",
}

// shells lists the shells. If a shell has only options as arguments, it is
// considered the user's own shell.
var shells = []string{"sh", "bash", "dash", "zsh", "fish", "ash", "ksh", "nu", "cmd", "powershell", "pwsh"}

// launchers lists programs that only start the program named by their
// arguments, for example one that npx installed.
var launchers = []string{
	"env", "npx", "npm", "pnpm", "yarn", "bunx", "uv", "uvx", "pipx", "loadout",
	"sudo", "nice", "nohup", "setsid", "timeout", "mise", "direnv",
}

// notClients lists programs in which the user, rather than an agent, may have
// typed the command that started loadout mcp: programs that start shells, and
// editors with a terminal. The suffix 64 of some names is omitted. The parent
// processes do not reveal an agent that types into an editor's terminal.
var notClients = []string{
	"init", "systemd", "launchd", "explorer", "sshd", "sshd-session", "login", "tmux", "tmux: server", "screen", "zellij",
	"gnome-terminal-", "gnome-terminal-server", "konsole", "xterm", "kitty", "alacritty", "wezterm-gui", "ghostty", "foot", "tilix", "terminator",
	"xfce4-terminal", "terminal", "warp", "iterm2", "windowsterminal", "openconsole", "conhost",
	"code", "code-insiders", "codium", "vscodium", "cursor", "windsurf", "kiro", "trae", "zed", "zed-editor", "emacs", "vim", "nvim",
	"idea", "pycharm", "goland", "webstorm", "phpstorm", "clion", "rider", "rubymine", "rustrover", "datagrip", "jetbrains_client", "java",
}
