package clientconfig

// clients lists the clients in display order. A client without a TestedVersion
// was never tested: its row is based on the documentation at Source.
var clients = []Client{
	{
		Name: "claude-code", Title: "Claude Code",
		Source: "https://code.claude.com/docs/en/mcp", TestedVersion: "2.1.197", Importable: true,
		Format: JSON, Key: "mcpServers", Scopes: []Scope{User, Project}, Remote: true,
		stdioType: "stdio", httpType: "http", urlKey: "url", plain: true,
		Next: "start a new Claude Code session; /mcp lists the server",
		where: map[Scope]location{
			User: {env: "CLAUDE_CONFIG_DIR", inEnv: ".claude.json", home: ".claude.json",
				note: "Claude Code writes this file while it runs: end its sessions first, or check with /mcp that the entry is still there"},
			Project: {project: ".mcp.json",
				note: "Claude Code asks each user once before it uses the servers of a project"},
		},
		traces: traces{commands: []string{"claude"}},
	},
	{
		Name: "claude-desktop", Title: "Claude Desktop",
		Source: "https://modelcontextprotocol.io/docs/develop/connect-local-servers", Importable: true,
		Format: JSON, Key: "mcpServers", Scopes: []Scope{User}, plain: true,
		noRemote: "add the URL in Claude Desktop under Settings, Connectors, or connect the local command instead",
		Next:     "restart Claude Desktop",
		where: map[Scope]location{
			User: {
				appData: "Claude/claude_desktop_config.json",
				// A Windows package uses a private copy of %APPDATA%
				// (anthropics/claude-code#26073).
				packaged: "Packages/Claude_pzs8sxrjxfjjc/LocalCache/Roaming/Claude/claude_desktop_config.json",
			},
		},
		traces: traces{appData: []string{"Claude"}},
	},
	{
		Name: "cursor", Title: "Cursor",
		Source: "https://cursor.com/docs/mcp", Importable: true,
		Format: JSON, Key: "mcpServers", Scopes: []Scope{User, Project}, Remote: true,
		urlKey: "url",
		Next:   "check in the settings of Cursor, under Tools and MCP, that the server is enabled",
		where: map[Scope]location{
			User:    {home: ".cursor/mcp.json"},
			Project: {project: ".cursor/mcp.json"},
		},
		traces: traces{commands: []string{"cursor", "cursor-agent"}, home: []string{".cursor/extensions"}, appData: []string{"Cursor"}},
	},
	{
		Name: "vscode", Title: "VS Code",
		Source: "https://code.visualstudio.com/docs/copilot/reference/mcp-configuration", Importable: true,
		Format: JSON, Key: "servers", Scopes: []Scope{User, Project}, Remote: true,
		stdioType: "stdio", httpType: "http", urlKey: "url",
		Next: "run \"MCP: List Servers\" in VS Code and start the server",
		where: map[Scope]location{
			User: {appData: "Code/User/mcp.json",
				note: "this is the default profile of VS Code; for another profile or build, pass its mcp.json with --file"},
			Project: {project: ".vscode/mcp.json"},
		},
		traces: traces{commands: []string{"code"}, appData: []string{"Code/User"}},
	},
	{
		Name: "codex", Title: "Codex",
		Source: "https://developers.openai.com/codex/config-reference", TestedVersion: "0.169.0", Importable: true,
		Format: TOML, Key: "mcp_servers", Scopes: []Scope{User, Project}, Remote: true,
		urlKey: "url", envVarsKey: "env_vars",
		Next: "start a new Codex session; /mcp lists the server",
		where: map[Scope]location{
			User: {env: "CODEX_HOME", inEnv: "config.toml", home: ".codex/config.toml"},
			Project: {project: ".codex/config.toml",
				note: "Codex reads this file only in a trusted project"},
		},
		traces: traces{commands: []string{"codex"}, home: []string{".codex/auth.json"}},
	},
	{
		Name: "gemini", Title: "Gemini CLI",
		Source: "https://geminicli.com/docs/tools/mcp-server", TestedVersion: "0.61.0", Importable: true,
		Format: JSON, Key: "mcpServers", Scopes: []Scope{User, Project}, Remote: true,
		// "url" alone used to mean SSE, and some versions rejected "type".
		urlKey: "httpUrl",
		Next:   "restart Gemini CLI; /mcp lists the server",
		Note:   "Google discontinued Gemini CLI; its successor is Antigravity",
		where: map[Scope]location{
			User:    {env: "GEMINI_CLI_HOME", inEnv: ".gemini/settings.json", home: ".gemini/settings.json"},
			Project: {project: ".gemini/settings.json"},
		},
		traces: traces{commands: []string{"gemini"}},
	},
	{
		Name: "opencode", Title: "opencode",
		Source: "https://opencode.ai/docs/mcp-servers", TestedVersion: "1.18.33",
		Format: JSON, Key: "mcp", Scopes: []Scope{User, Project}, Remote: true,
		stdioType: "local", httpType: "remote", urlKey: "url", joined: true, always: object{{"enabled", true}},
		Next: "restart opencode; \"opencode mcp list\" lists the server",
		where: map[Scope]location{
			User:    {xdg: "opencode/opencode.json", instead: "opencode/opencode.jsonc"},
			Project: {project: "opencode.json", instead: "opencode.jsonc"},
		},
		traces: traces{commands: []string{"opencode"}, home: []string{".local/share/opencode", ".config/opencode/package.json"}},
	},
	{
		Name: "copilot", Title: "Copilot CLI",
		Source: "https://docs.github.com/en/copilot/how-tos/copilot-cli/customize-copilot/add-mcp-servers", TestedVersion: "1.0.102",
		Format: JSON, Key: "mcpServers", Scopes: []Scope{User, Project}, Remote: true,
		stdioType: "local", httpType: "http", urlKey: "url", always: object{{"tools", []string{"*"}}},
		Next: "start a new Copilot CLI session; /mcp show lists the server",
		where: map[Scope]location{
			User:    {env: "COPILOT_HOME", inEnv: "mcp-config.json", home: ".copilot/mcp-config.json"},
			Project: {project: ".github/mcp.json"},
		},
		// Another program is named copilot too.
		traces: traces{home: []string{".copilot/config.json", ".copilot/settings.json", ".copilot/session-state"}},
	},
	{
		Name: "zed", Title: "Zed",
		Source: "https://zed.dev/docs/ai/mcp",
		Format: JSON, Key: "context_servers", Scopes: []Scope{User, Project}, Remote: true,
		urlKey: "url",
		Next:   "check in the settings of Zed, under AI, that the server is active",
		where: map[Scope]location{
			User: {env: "FLATPAK_XDG_CONFIG_HOME", inEnv: "zed/settings.json",
				windows: "Zed/settings.json", darwin: ".config/zed/settings.json", xdg: "zed/settings.json"},
			Project: {project: ".zed/settings.json"},
		},
		traces: traces{commands: []string{"zed", "zeditor"}, home: []string{".local/share/zed", ".config/zed/keymap.json"}, appData: []string{"Zed"}},
	},
	{
		Name: "junie", Title: "JetBrains Junie",
		Source: "https://junie.jetbrains.com/docs/junie-cli-mcp-configuration.html",
		Format: JSON, Key: "mcpServers", Scopes: []Scope{User, Project}, Remote: true,
		urlKey: "url",
		Next:   "restart Junie, or its IDE",
		Note:   "JetBrains AI Assistant has no such file: paste the output of \"loadout connect junie --print\" in the settings of the IDE, under Tools, AI Assistant, Model Context Protocol",
		where: map[Scope]location{
			User:    {home: ".junie/mcp/mcp.json"},
			Project: {project: ".junie/mcp/mcp.json"},
		},
		traces: traces{commands: []string{"junie"}, home: []string{".junie/config.json"}},
	},
	{
		Name: "goose", Title: "Goose",
		Source: "https://block.github.io/goose/docs/guides/config-files",
		Format: YAML, Key: "extensions", Scopes: []Scope{User}, Remote: true,
		stdioType: "stdio", httpType: "streamable_http", urlKey: "uri", command: "cmd", named: true, always: object{{"enabled", true}},
		Next: "start a new Goose session",
		where: map[Scope]location{
			User: {windows: "Block/goose/config/config.yaml", xdg: "goose/config.yaml"},
		},
		// A tool for databases is named goose too.
		traces: traces{home: []string{".local/share/goose", ".local/state/goose", ".config/goose/permission.yaml"}, appData: []string{"Block/goose/data"}},
	},
	{
		Name: "cline", Title: "Cline",
		// The documentation of MCP names ~/.cline/mcp.json for the CLI, which no
		// version reads (cline/cline#7081, #11671). Of the variables that move the
		// file, only CLINE_DATA_DIR is documented with its current meaning.
		Source: "https://docs.cline.bot/cli/configuration", TestedVersion: "3.0.65",
		Format: JSON, Key: "mcpServers", Scopes: []Scope{User}, Remote: true,
		httpType: "streamableHttp", urlKey: "url", plain: true,
		Next: "start a new Cline task",
		Note: "the CLI and current versions of the extension share this file; older versions of the extension have their own file, which MCP Servers, Configure opens",
		where: map[Scope]location{
			User: {env: "CLINE_DATA_DIR", inEnv: "settings/cline_mcp_settings.json", home: ".cline/data/settings/cline_mcp_settings.json"},
		},
		traces: traces{commands: []string{"cline"}, home: []string{".cline/data/globalState.json", ".cline/data/secrets.json"}, appData: []string{"Code/User/globalStorage/saoudrizwan.claude-dev"}},
	},
	{
		Name: "windsurf", Title: "Windsurf",
		Source: "https://docs.devin.ai/desktop/cascade/mcp",
		Format: JSON, Key: "mcpServers", Scopes: []Scope{User}, Remote: true,
		urlKey: "serverUrl", plain: true,
		Next: "refresh the MCP servers in the Cascade panel of Windsurf",
		Note: "in Devin Desktop, the name of Windsurf since June 2026, only the legacy agent Cascade reads this file; for its default agent, use: loadout connect devin",
		where: map[Scope]location{
			User: {home: ".codeium/windsurf/mcp_config.json"},
		},
		traces: traces{commands: []string{"windsurf"}, home: []string{".codeium/windsurf/installation_id", ".codeium/windsurf/user_settings.pb", ".windsurf/extensions"}, appData: []string{"Windsurf"}},
	},
	{
		// Devin Desktop with its default agent, Devin Local, and Devin CLI. Before
		// version 3000.3, the servers were in config.json.
		Name: "devin", Title: "Devin",
		Source: "https://docs.devin.ai/cli/extensibility/mcp/configuration",
		Format: JSON, Key: "mcpServers", Scopes: []Scope{User, Project}, Remote: true,
		typeKey: "transport", httpType: "http", urlKey: "url",
		Next: "start a new session of Devin Local or Devin CLI; \"devin mcp list\" lists the server",
		where: map[Scope]location{
			User:    {windows: "devin/mcp_config.json", home: ".config/devin/mcp_config.json"},
			Project: {project: ".devin/mcp_config.json"},
		},
		traces: traces{commands: []string{"devin"}, home: []string{".config/devin/config.json"}, appData: []string{"devin/config.json"}},
	},
	{
		Name: "kiro", Title: "Kiro",
		Source: "https://kiro.dev/docs/mcp/configuration",
		Format: JSON, Key: "mcpServers", Scopes: []Scope{User, Project}, Remote: true,
		urlKey: "url", plain: true,
		Next: "check the list of MCP servers in the Kiro panel; Kiro CLI needs a new session",
		where: map[Scope]location{
			User:    {home: ".kiro/settings/mcp.json"},
			Project: {project: ".kiro/settings/mcp.json"},
		},
		traces: traces{commands: []string{"kiro", "kiro-cli"}, home: []string{".kiro/settings/cli.json", ".kiro/argv.json", ".kiro/extensions"}, appData: []string{"Kiro"}},
	},
	{
		Name: "crush", Title: "Crush",
		// crush.json is deprecated in favor of crushrc, a shell script, which
		// cannot be edited safely. Crush reads both.
		Source: "https://github.com/charmbracelet/crush/blob/main/docs/config/README.md",
		Format: JSON, Key: "mcp", Scopes: []Scope{User, Project}, Remote: true,
		stdioType: "stdio", httpType: "http", urlKey: "url", plain: true,
		Next: "restart Crush",
		Note: "Crush also reads a crushrc in the same directory, and logs a warning if both files exist",
		where: map[Scope]location{
			User:    {env: "CRUSH_GLOBAL_CONFIG", inEnv: "crush.json", xdg: "crush/crush.json"},
			Project: {project: "crush.json", instead: ".crush.json"},
		},
		traces: traces{commands: []string{"crush"}, home: []string{".local/share/crush", ".config/crush/crushrc"}},
	},
	{
		Name: "antigravity", Title: "Antigravity",
		Source: "https://antigravity.google/docs/mcp",
		Format: JSON, Key: "mcpServers", Scopes: []Scope{User, Project}, Remote: true,
		urlKey: "serverUrl", plain: true,
		Next: "restart Antigravity; /mcp lists the server",
		where: map[Scope]location{
			User:    {home: ".gemini/config/mcp_config.json"},
			Project: {project: ".agents/mcp_config.json"},
		},
		traces: traces{commands: []string{"agy", "antigravity"}, home: []string{".gemini/antigravity/installation_id", ".gemini/antigravity/user_settings.pb", ".gemini/antigravity-cli/settings.json", ".antigravity/extensions"}, appData: []string{"Antigravity"}},
	},
}
