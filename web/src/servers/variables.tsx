import { api, got, useAsked, type Schema } from "../api/client";
import { ActionButton, Button, done, Shown, Tag, useConfirm } from "../ui";
import { owners } from "./owners";
import type { Server } from "./state";
import { w } from "./words";

interface Kept {
  owner: string;
  name: string;
  given: boolean;
}

/** The secrets of the names that a server uses, and whether the server as it is now has them. */
async function keptFor(s: Server, signal: AbortSignal): Promise<Kept[]> {
  const names = new Set((s.uses ?? []).map((u) => u.name));
  const out: Kept[] = [];
  for (const owner of owners(s.namespace)) {
    const { data } = await api.GET("/api/v1/secrets", { params: { query: { owner } }, signal });
    for (const secret of data?.items ?? []) {
      if (!names.has(secret.name)) continue;
      const { items } = await got(api.GET("/api/v1/secrets/{secret}/grants", { params: { path: { secret: secret.name }, query: { owner } }, signal }));
      out.push({ owner, name: secret.name, given: items.some((g) => g.digest === s.digest) });
    }
  }
  return out;
}

/** The values that a server gets: which, where they go, and what is to be done for one that is missing. */
export function Variables({ server, onChange }: { server: Server; onChange: () => void }) {
  const t = w();
  const kept = useAsked((signal) => keptFor(server, signal), [server.digest]);
  const uses = server.uses ?? [];
  if (!uses.length) return null;
  const changed = () => {
    void kept.again();
    onChange();
  };
  return (
    <section class="stack tight" id="variables">
      <h2>{t.variables}</h2>
      <p class="small muted">{t.variablesSays}</p>
      <Shown asked={kept}>
        {(have) => <ul class="servers-variables" aria-label={t.usesCaption}>{uses.map((u) => <Row key={`${u.kind} ${u.name} ${u.where}`} use={u} server={server} kept={have.find((k) => k.name === u.name)} onChange={changed} />)}</ul>}
      </Shown>
    </section>
  );
}

function Row({ use, server, kept, onChange }: { use: Schema["ServerUse"]; server: Server; kept?: Kept; onChange: () => void }) {
  const t = w();
  return (
    <li>
      <span><span class="muted">{t.kinds[use.kind] ?? use.kind}</span> <code>{use.name}</code></span>
      <span><span class="muted">{t.goesTo}</span> <code>{use.where}</code><br /><span class="muted">{use.target}</span></span>
      <span>{use.kind === "secret" || use.kind === "user" ? <Leave use={use} server={server} kept={kept} onChange={onChange} /> : t.fallback}</span>
    </li>
  );
}

/** Whether a server has a value, and the way to give it or to take it back. */
function Leave({ use, server, kept, onChange }: { use: Schema["ServerUse"]; server: Server; kept?: Kept; onChange: () => void }) {
  const t = w();
  const confirm = useConfirm();
  const himself = use.kind === "user" && (use.name === "name" || use.name === "id"); // which need no value
  if (!kept && !himself) return <span class="small">{t.notKept} <a href={`/settings/secrets?name=${encodeURIComponent(use.name)}`}>{t.keepIt}</a></span>;
  const params = { path: { secret: use.name }, query: { owner: kept?.owner ?? "default" } };
  const give = async () => {
    const body: Schema["SecretFor"] = { kind: server.kind as "Ghost", namespace: server.namespace, name: server.thing!, digest: server.digest, ...(server.kind === "MCPServer" ? {} : { server: server.name }) };
    await got(api.POST("/api/v1/secrets/{secret}/grants", { params, body }));
    done(t.gave(use.name));
    onChange();
  };
  const take = async () => {
    await got(api.DELETE("/api/v1/secrets/{secret}/grants", { params: { path: params.path, query: { ...params.query, digest: server.digest } } }));
    done(t.tookBack(use.name));
    onChange();
  };
  if (kept?.given) return <span class="row"><Tag look="good">{t.given}</Tag><ActionButton small look="quiet" act={take}>{t.takeBack}</ActionButton></span>;
  const ask = () => confirm.ask({ title: t.giveTitle(use.name), children: <p>{t.giveSays(use.name, use.target)}</p>, yes: t.give, act: give });
  return <>{confirm.open}<Button small icon="key" onClick={ask}>{t.give}</Button></>;
}
