/**
 * A program that accepts an MCP server address, and its configuration. The formats match those of
 * the connect command.
 */
interface Client {
  id: string;
  name: string;
  /** The configuration file, if there is one. */
  file?: string;
  language: "json" | "toml" | "shell" | "text";
  text: (server: Server) => string;
}

/** The server to connect. */
interface Server {
  url: string;
  /** Whether the hub requires a token. */
  token: boolean;
}

const bearer = { Authorization: "Bearer TOKEN" };
const json = (v: unknown) => JSON.stringify(v, null, 2);
const headers = (s: Server) => (s.token ? { headers: bearer } : {});

export const clients: Client[] = [
  {
    id: "claude-code",
    name: "Claude Code",
    language: "shell",
    text: (s) =>
      `claude mcp add --transport http loadout ${s.url}${s.token ? ' --header "Authorization: Bearer TOKEN"' : ""}`,
  },
  // Its file accepts commands only. Addresses are entered in its settings.
  { id: "claude-desktop", name: "Claude Desktop", language: "text", text: (s) => s.url },
  {
    id: "cursor",
    name: "Cursor",
    file: "~/.cursor/mcp.json",
    language: "json",
    text: (s) => json({ mcpServers: { loadout: { url: s.url, ...headers(s) } } }),
  },
  {
    id: "vscode",
    name: "VS Code",
    file: ".vscode/mcp.json",
    language: "json",
    text: (s) => json({ servers: { loadout: { type: "http", url: s.url, ...headers(s) } } }),
  },
  {
    id: "codex",
    name: "Codex",
    file: "~/.codex/config.toml",
    language: "toml",
    text: (s) =>
      `[mcp_servers.loadout]\nurl = ${JSON.stringify(s.url)}\n${s.token ? 'bearer_token_env_var = "LOADOUT_TOKEN"\n' : ""}`,
  },
  {
    id: "gemini",
    name: "Gemini CLI",
    file: "~/.gemini/settings.json",
    language: "json",
    text: (s) => json({ mcpServers: { loadout: { httpUrl: s.url, ...headers(s) } } }),
  },
  {
    id: "json",
    name: "JSON",
    language: "json",
    text: (s) => json({ mcpServers: { loadout: { type: "http", url: s.url, ...headers(s) } } }),
  },
];

/** addLine returns the command that downloads a single skill. */
export const addLine = (origin: string, name: string) =>
  `loadout add ${origin} --skill ${/^[\w.-]+$/.test(name) ? name : `'${name.replaceAll("'", "'\\''")}'`}`;
