import { useState } from "preact/hooks";
import { ways } from "../api/me";
import { Code } from "../content";
import { Copy, Tabs } from "../ui";
import type { PartProps } from "./parts";
import { w } from "./words";

/** The address of the MCP endpoint of a Ghost. */
function endpoint(namespace: string, name: string): string {
  const of = namespace === "default" ? [name] : [namespace, name];
  return `${location.origin}/mcp/p/${of.map(encodeURIComponent).join("/")}`;
}

const clients = ["claude-code", "json", "vscode", "codex"] as const;
type Client = (typeof clients)[number];

/** How MCP clients reach a Ghost, ready to be pasted. */
export function Connect({ place }: PartProps) {
  const t = w();
  const [client, setClient] = useState<Client>("claude-code");
  if (!place) return <p class="muted">{t.connectLater}</p>;
  const url = endpoint(place.namespace, place.name);
  const token = ways.value?.mode !== "single";
  const { text, language } = configuration(client, url, called(place.name), token);
  return (
    <section class="stack">
      <p>{t.connectSays}</p>
      <div class="agents-url"><code>{url}</code><Copy text={url} label={t.copyURL} /></div>
      {token && <p class="note">{t.needsToken} <a href="/settings/tokens">{t.makeToken}</a></p>}
      <Tabs label={t.clients} tabs={clients.map((c) => [c, t.clientNames[c]])} open={client} onOpen={setClient}>
        <div class="stack tight">
          <p class="small muted">{t.clientSays[client]}</p>
          <Code text={text} language={language} />
          <div><Copy text={text} label={t.copyConfig} /></div>
        </div>
      </Tabs>
    </section>
  );
}

/** What a client knows the server by: clients allow few characters in it. */
const called = (name: string) => name.replace(/[^A-Za-z0-9_-]+/g, "-").replace(/^-+|-+$/g, "") || "loadout";

function configuration(client: Client, url: string, name: string, token: boolean): { text: string; language: string } {
  const server = { type: "http", url, ...(token ? { headers: { Authorization: "Bearer TOKEN" } } : {}) };
  switch (client) {
    case "claude-code":
      return { text: `claude mcp add --transport http ${name} '${url}'${token ? ` --header "Authorization: Bearer TOKEN"` : ""}`, language: "shell" };
    case "json":
      return { text: JSON.stringify({ mcpServers: { [name]: server } }, null, 2), language: "json" };
    case "vscode":
      return { text: JSON.stringify({ servers: { [name]: server } }, null, 2), language: "json" };
    case "codex":
      return { text: `[mcp_servers.${name}]\nurl = ${JSON.stringify(url)}\n${token ? 'bearer_token_env_var = "LOADOUT_TOKEN"\n' : ""}`, language: "toml" };
  }
}
