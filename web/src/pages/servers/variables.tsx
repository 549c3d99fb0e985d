import { owners } from "../../features/servers/owners";
import type { Server } from "../../features/servers/state";
import { addSecretPage } from "../../features/settings/secretpage";
import { api, got, useLoad, type Schema } from "../../shared/api/client";
import { findMsg, msg } from "../../shared/i18n/messages";
import { ActionButton, Button, done, Shown, Tag, useConfirm } from "../../shared/ui";

interface StoredValues {
  owner: string;
  name: string;
  given: boolean;
}

/** loadStoredValues loads the secrets that a server refers to, and whether they are granted to it. */
async function loadStoredValues(s: Server, signal: AbortSignal): Promise<StoredValues[]> {
  const names = new Set((s.uses ?? []).map((u) => u.name));
  const out: StoredValues[] = [];
  for (const owner of await owners(s.namespace)) {
    const { data } = await api.GET("/api/v1/secrets", { params: { query: { owner } }, signal });
    for (const secret of data?.items ?? []) {
      if (!names.has(secret.name)) continue;
      const { items } = await got(
        api.GET("/api/v1/secrets/{secret}/grants", {
          params: { path: { secret: secret.name }, query: { owner } },
          signal,
        }),
      );
      out.push({ owner, name: secret.name, given: items.some((g) => g.digest === s.digest) });
    }
  }
  return out;
}

/** Variables lists the values of a server, their destinations, and how to set missing ones. */
export function Variables({ server, onChange }: { server: Server; onChange: () => void }) {
  const kept = useLoad((signal) => loadStoredValues(server, signal), [server.digest]);
  const uses = server.uses ?? [];
  if (!uses.length) return null;
  const changed = () => {
    void kept.again();
    onChange();
  };
  return (
    <section class="stack tight" id="variables">
      <h2>{msg("servers.variables")}</h2>
      <p class="small muted">{msg("servers.variablesSays")}</p>
      <Shown asked={kept}>
        {(have) => (
          <ul class="servers-variables" aria-label={msg("servers.usesCaption")}>
            {uses.map((u) => (
              <Row
                key={`${u.kind} ${u.name} ${u.where}`}
                use={u}
                server={server}
                kept={have.find((k) => k.name === u.name)}
                onChange={changed}
              />
            ))}
          </ul>
        )}
      </Shown>
    </section>
  );
}

function Row({
  use,
  server,
  kept,
  onChange,
}: {
  use: Schema["ServerUse"];
  server: Server;
  kept?: StoredValues;
  onChange: () => void;
}) {
  return (
    <li>
      <span>
        <span class="muted">{findMsg("servers.kinds", use.kind) ?? use.kind}</span> <code>{use.name}</code>
      </span>
      <span>
        <span class="muted">{msg("servers.goesTo")}</span> <code>{use.where}</code>
        <br />
        <span class="muted">{use.target}</span>
      </span>
      <span>
        {use.kind === "secret" || use.kind === "user" ? (
          <GrantControl use={use} server={server} kept={kept} onChange={onChange} />
        ) : use.kind === "platform" ? (
          <a href={addSecretPage(`variable.${use.name}`, server.namespace)}>{msg("servers.keepIt")}</a>
        ) : (
          msg("servers.fallback")
        )}
      </span>
    </li>
  );
}

/** GrantControl shows whether a value is granted to the server, and grants or revokes it. */
function GrantControl({
  use,
  server,
  kept,
  onChange,
}: {
  use: Schema["ServerUse"];
  server: Server;
  kept?: StoredValues;
  onChange: () => void;
}) {
  const confirm = useConfirm();
  const isIdentity = use.kind === "user" && (use.name === "name" || use.name === "id"); // they need no value
  if (!kept && !isIdentity)
    return (
      <span class="small">
        {msg("servers.notKept")} <a href={addSecretPage(use.name, server.namespace)}>{msg("servers.keepIt")}</a>
      </span>
    );
  const params = { path: { secret: use.name }, query: { owner: kept?.owner ?? "default" } };
  const give = async () => {
    const body: Schema["SecretFor"] = {
      kind: server.kind as "Ghost",
      namespace: server.namespace,
      name: server.thing!,
      digest: server.digest,
      ...(server.kind === "MCPServer" ? {} : { server: server.name }),
    };
    await got(api.POST("/api/v1/secrets/{secret}/grants", { params, body }));
    done(msg("servers.gave", { name: use.name }));
    onChange();
  };
  const take = async () => {
    await got(
      api.DELETE("/api/v1/secrets/{secret}/grants", {
        params: { path: params.path, query: { ...params.query, digest: server.digest } },
      }),
    );
    done(msg("servers.tookBack", { name: use.name }));
    onChange();
  };
  if (kept?.given)
    return (
      <span class="row">
        <Tag look="good">{msg("servers.given")}</Tag>
        <ActionButton small look="quiet" act={take}>
          {msg("servers.takeBack")}
        </ActionButton>
      </span>
    );
  const ask = () =>
    confirm.ask({
      title: msg("servers.giveTitle", { name: use.name }),
      children: <p>{msg("servers.giveSays", { name: use.name, to: use.target })}</p>,
      yes: msg("servers.give"),
      act: give,
    });
  return (
    <>
      {confirm.open}
      <Button small icon="key" onClick={ask}>
        {msg("servers.give")}
      </Button>
    </>
  );
}
