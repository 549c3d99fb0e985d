import { useMemo } from "preact/hooks";
import { api, got, type Schema } from "../api/client";
import { Diff } from "../content";
import { ActionButton, done, Tag, When } from "../ui";
import type { Server } from "./state";
import { unified } from "../content/compare";
import { w } from "./words";

/** Tools that a server defines differently by now: how, and the way to accept them. */
export function Held({ server, onChange }: { server: Server; onChange: () => void }) {
  const t = w();
  const held = server.held ?? [];
  if (!held.length) return null;
  const accept = async () => {
    const digests = held.map((h) => h.digest);
    const answer = server.kind
      ? api.POST("/api/v1/servers/{kind}/{namespace}/{name}/accept-tools", { params: { path: { kind: server.kind as "Ghost", namespace: server.namespace!, name: server.thing! } }, body: { server: server.name, digests } })
      : api.POST("/api/v1/servers/operator/{name}/accept-tools", { params: { path: { name: server.name } }, body: { digests } });
    const { tools } = await got(answer);
    done(t.accepted(tools.length));
    onChange();
  };
  return (
    <section class="stack">
      <h2>{t.changed}</h2>
      <p class="note warn">{t.changedSays}</p>
      {held.map((h) => <Change key={h.digest} held={h} />)}
      <div><ActionButton look="primary" icon="check" act={accept}>{t.accept(held.length)}</ActionButton></div>
    </section>
  );
}

const printed = (definition: unknown) => (definition === undefined ? "" : JSON.stringify(definition, null, 2));

function Change({ held }: { held: Schema["HeldTool"] }) {
  const t = w();
  const diff = useMemo(() => unified(printed(held.old), printed(held.new)), [held.digest]);
  return (
    <div class="stack tight">
      <h3 class="row"><code>{held.name}</code><Tag look="warn">{held.old === undefined && held.new !== undefined ? t.newTool : t.changedTool}</Tag><span class="small muted">{t.seen}<When time={held.seen} /></span></h3>
      {held.new === undefined ? <p class="small muted">{t.noDefinition}</p> : <Diff diff={diff} path={`${held.name}.json`} />}
    </div>
  );
}
