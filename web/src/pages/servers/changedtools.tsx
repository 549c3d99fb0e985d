import { useMemo } from "preact/hooks";
import { acceptTools } from "../../features/servers/phrases";
import type { Server } from "../../features/servers/state";
import { api, got, type Schema } from "../../shared/api/client";
import { Diff } from "../../shared/content";
import { unified } from "../../shared/content/makediff";
import { msg } from "../../shared/i18n/messages";
import { ActionButton, done, Tag, When } from "../../shared/ui";

/** ChangedTools shows changed tool definitions and accepts them. */
export function ChangedTools({ server, onChange }: { server: Server; onChange: () => void }) {
  const held = server.held ?? [];
  if (!held.length) return null;
  const accept = async () => {
    const digests = held.map((h) => h.digest);
    const answer = server.kind
      ? api.POST("/api/v1/servers/{kind}/{namespace}/{name}/accept-tools", {
          params: { path: { kind: server.kind as "Ghost", namespace: server.namespace!, name: server.thing! } },
          body: { server: server.name, digests },
        })
      : api.POST("/api/v1/servers/operator/{name}/accept-tools", {
          params: { path: { name: server.name } },
          body: { digests },
        });
    const { tools } = await got(answer);
    done(msg("servers.accepted", { count: tools.length }));
    onChange();
  };
  return (
    <section class="stack">
      <h2>{msg("servers.changed")}</h2>
      <p class="note warn">{msg("servers.changedSays")}</p>
      {held.map((h) => (
        <Change key={h.digest} held={h} />
      ))}
      <div>
        <ActionButton look="primary" icon="check" act={accept}>
          {acceptTools(held.length)}
        </ActionButton>
      </div>
    </section>
  );
}

const printed = (definition: unknown) => (definition === undefined ? "" : JSON.stringify(definition, null, 2));

function Change({ held }: { held: Schema["HeldTool"] }) {
  const diff = useMemo(() => unified(printed(held.old), printed(held.new)), [held.digest]);
  return (
    <div class="stack tight">
      <h3 class="row">
        <code>{held.name}</code>
        <Tag look="warn">
          {held.old === undefined && held.new !== undefined ? msg("servers.newTool") : msg("servers.changedTool")}
        </Tag>
        <span class="small muted">
          {msg("servers.seen")}
          <When time={held.seen} />
        </span>
      </h3>
      {held.new === undefined ? (
        <p class="small muted">{msg("servers.noDefinition")}</p>
      ) : (
        <Diff diff={diff} path={`${held.name}.json`} />
      )}
    </div>
  );
}
