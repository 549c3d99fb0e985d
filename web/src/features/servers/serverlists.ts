import { api, got } from "../../shared/api/client";
import type { Server } from "./state";

/** The page limit, as protection against an endless list. */
const most = 50;

/** allServers loads all visible servers, those of the operator first. */
export async function allServers(signal: AbortSignal): Promise<Server[]> {
  const out: Server[] = [];
  let after: string | undefined;
  for (let i = 0; i < most; i++) {
    const page = await got(api.GET("/api/v1/servers", { params: { query: { after, limit: 100 } }, signal }));
    out.push(...page.items);
    if (!page.next) break;
    after = page.next;
  }
  return out;
}

/** missingOf loads the missing values of servers, by digest. Only agent profiles have them. */
export async function missingOf(servers: Server[], signal: AbortSignal): Promise<Map<string, string[]>> {
  const agents = new Map(
    servers
      .filter((s) => (s.kind === "Ghost" || s.kind === "Bot") && s.uses?.length)
      .map((s) => [`${s.kind}/${s.namespace}/${s.thing}`, s]),
  );
  const out = new Map<string, string[]>();
  for (const s of agents.values()) {
    const { data } = await api.GET("/api/v1/kinds/{kind}/{namespace}/{name}/profile", {
      params: { path: { kind: s.kind as "Ghost", namespace: s.namespace!, name: s.thing! } },
      signal,
    });
    for (const here of data?.servers ?? []) if (here.missing?.length) out.set(here.digest, here.missing);
  }
  return out;
}

/** serversOf loads the servers of one resource, with their changed tool definitions. */
export async function serversOf(kind: string, namespace: string, name: string, signal: AbortSignal): Promise<Server[]> {
  const { items } = await got(
    api.GET("/api/v1/servers/{kind}/{namespace}/{name}", {
      params: { path: { kind: kind as "Ghost", namespace, name } },
      signal,
    }),
  );
  return items;
}
