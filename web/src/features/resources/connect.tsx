import { useState } from "preact/hooks";
import { ways } from "../../shared/api/me";
import { Code } from "../../shared/content";
import { msg } from "../../shared/i18n/messages";
import { Copy, Tabs } from "../../shared/ui";
import type { PartProps } from "./editorprops";

/** endpoint returns the address of an agent's MCP endpoint. */
function endpoint(namespace: string, name: string): string {
  const of = namespace === "default" ? [name] : [namespace, name];
  return `${location.origin}/mcp/p/${of.map(encodeURIComponent).join("/")}`;
}

const clients = ["claude-code", "json", "vscode", "codex"] as const;
type Client = (typeof clients)[number];

/** Connect shows configurations for MCP clients, ready to paste. */
export function Connect({ place }: PartProps) {
  const [client, setClient] = useState<Client>("claude-code");
  if (!place) return <p class="muted">{msg("agents.connectLater")}</p>;
  const url = endpoint(place.namespace, place.name);
  const token = ways.value?.mode !== "single";
  const { text, language } = configuration(client, url, called(place.name), token);
  return (
    <section class="stack">
      <p>{msg("agents.connectSays")}</p>
      <div class="agents-url">
        <code>{url}</code>
        <Copy text={url} label={msg("agents.copyURL")} />
      </div>
      {token && (
        <p class="note">
          {msg("agents.needsToken")} <a href="/settings/tokens">{msg("agents.makeToken")}</a>
        </p>
      )}
      <Tabs
        label={msg("agents.clients")}
        tabs={clients.map((c) => [c, msg(`agents.clientNames.${c}`)])}
        open={client}
        onOpen={setClient}
      >
        <div class="stack tight">
          <p class="small muted">{msg(`agents.clientSays.${client}`)}</p>
          <Code text={text} language={language} />
          <div>
            <Copy text={text} label={msg("agents.copyConfig")} />
          </div>
        </div>
      </Tabs>
    </section>
  );
}

/** called returns the server name for a client. Clients allow only a few characters. */
const called = (name: string) => name.replace(/[^A-Za-z0-9_-]+/g, "-").replace(/^-+|-+$/g, "") || "loadout";

function configuration(client: Client, url: string, name: string, token: boolean): { text: string; language: string } {
  const server = { type: "http", url, ...(token ? { headers: { Authorization: "Bearer TOKEN" } } : {}) };
  switch (client) {
    case "claude-code":
      return {
        text: `claude mcp add --transport http ${name} '${url}'${token ? ` --header "Authorization: Bearer TOKEN"` : ""}`,
        language: "shell",
      };
    case "json":
      return { text: JSON.stringify({ mcpServers: { [name]: server } }, null, 2), language: "json" };
    case "vscode":
      return { text: JSON.stringify({ servers: { [name]: server } }, null, 2), language: "json" };
    case "codex":
      return {
        text: `[mcp_servers.${name}]\nurl = ${JSON.stringify(url)}\n${token ? 'bearer_token_env_var = "LOADOUT_TOKEN"\n' : ""}`,
        language: "toml",
      };
  }
}
