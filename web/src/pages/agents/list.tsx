import { useLocation } from "preact-iso";
import {
  agentKinds,
  agentOf,
  pageOf,
  type AgentKind,
  type BotSpec,
  type GhostSpec,
  type ModelSpec,
  type ResourceRef,
  type TeamSpec,
} from "../../features/resources/document";
import { newOfKind } from "../../features/resources/phrases";
import { allOf } from "../../features/resources/resourcelist";
import { readServers } from "../../features/servers/config";
import { namespaceName } from "../../features/servers/serverlist";
import { useLoad, type Schema } from "../../shared/api/client";
import { msg } from "../../shared/i18n/messages";
import { Empty, Icon, Shown, Tabs, Tag } from "../../shared/ui";
import { Page } from "../../shared/ui/page";

type Thing = Schema["Kind"];

/** List shows all visible agents and what they consist of. */
export function List() {
  const { query, route } = useLocation();
  const kind = agentKinds.find((k) => k === query.kind) ?? "Ghost";
  const load = useLoad(
    async (signal) =>
      Object.fromEntries(
        await Promise.all(agentKinds.map(async (k) => [k, await allOf(k, signal)] as const)),
      ) as Record<AgentKind, Thing[]>,
    [],
  );
  const many = (k: AgentKind) =>
    load.data ? (
      <>
        {" "}
        <span class="muted">{load.data[k].length}</span>
      </>
    ) : null;
  return (
    <Page
      title={msg("agents.title")}
      lead={msg("agents.lead")}
      actions={load.data?.[kind].length ? <Make kind={kind} /> : undefined}
    >
      <Tabs
        label={msg("agents.title")}
        tabs={agentKinds.map((k) => [
          k,
          <>
            {msg(`agents.many.${k}`)}
            {many(k)}
          </>,
        ])}
        open={kind}
        onOpen={(k) => route(`/agents?kind=${k}`, true)}
      >
        <div class="stack">
          <p class="muted agents-about">{msg(`agents.about.${kind}`)}</p>
          <Shown asked={load} waiting={msg("agents.getting")}>
            {(all) => (all[kind].length ? <Things key={kind} things={all[kind]} /> : <Nothing kind={kind} all={all} />)}
          </Shown>
        </div>
      </Tabs>
    </Page>
  );
}

function Make({ kind }: { kind: AgentKind }) {
  return (
    <a class="button primary" href={`/agents/new?kind=${kind}`}>
      <Icon name="plus" />
      {newOfKind(msg(`agents.kinds.${kind}`))}
    </a>
  );
}

/** Nothing explains a kind and what it needs first. */
function Nothing({ kind, all }: { kind: AgentKind; all: Record<AgentKind, Thing[]> }) {
  const first: Partial<Record<AgentKind, AgentKind>> = { Bot: "Ghost", Team: "Bot" };
  const before = first[kind];
  const missing = before && !all[before].length ? before : undefined;
  return (
    <Empty title={msg(`agents.none.${kind}`)} actions={<Make kind={missing ?? kind} />}>
      <p>{msg(`agents.noneSays.${kind}`)}</p>
      {missing && <p>{msg("agents.needsFirst", { first: msg(`agents.kinds.${missing}`) })}</p>}
    </Empty>
  );
}

function Things({ things }: { things: Thing[] }) {
  const { query, route, path } = useLocation();
  const q = query.q ?? "";
  const search = (to: string) => {
    const next = new URLSearchParams(query);
    if (to) next.set("q", to);
    else next.delete("q");
    route(`${path}?${next}`, true);
  };
  const found = things.filter((k) =>
    `${k.metadata.name} ${k.metadata.description ?? ""} ${k.metadata.namespace}`
      .toLowerCase()
      .includes(q.toLowerCase()),
  );
  return (
    <>
      {(things.length > 6 || q) && (
        <input
          class="input agents-find"
          type="search"
          aria-label={msg("agents.search")}
          placeholder={msg("agents.search")}
          value={q}
          onInput={(e) => search(e.currentTarget.value)}
        />
      )}
      {!found.length && <p class="muted">{msg("agents.noneFound")}</p>}
      <ul class="cards">
        {found.map((k) => (
          <li key={k.status.id}>
            <Card thing={k} />
          </li>
        ))}
      </ul>
    </>
  );
}

function Card({ thing }: { thing: Thing }) {
  const place = { kind: thing.kind, namespace: thing.metadata.namespace, name: thing.metadata.name } as ResourceRef;
  const says =
    thing.metadata.description ||
    (thing.spec as GhostSpec | undefined)?.systemPrompt?.split("\n").find((l) => l.trim());
  return (
    <article class="card agents-card">
      <h2>
        <a href={pageOf(place)}>{place.name}</a>
      </h2>
      <p class="small muted agents-clamp">{says || msg("agents.noDescription")}</p>
      <p class="row small muted">
        <Tag>{namespaceName(place.namespace)}</Tag>
        {!!thing.status.findings?.length && (
          <Tag look="bad" title={thing.status.findings[0]!.message}>
            {msg("agents.damaged")}
          </Tag>
        )}
        {thing.spec !== undefined && <span>{inShort(thing)}</span>}
        {place.kind !== "Model" && (
          <a
            class="button small push agents-above"
            href={`/?agent=${encodeURIComponent(agentOf(place))}`}
            aria-label={msg("agents.talkTo", { name: place.name })}
          >
            <Icon name="chat" size={16} />
            {msg("agents.talkShort")}
          </a>
        )}
      </p>
    </article>
  );
}

/** inShort summarizes a resource. */
function inShort(thing: Thing): string {
  switch (thing.kind as AgentKind) {
    case "Ghost": {
      const s = thing.spec as GhostSpec;
      const servers = readServers(s.mcpServers)?.length ?? 0;
      return [
        s.skills ? msg("agents.skillCount", { count: s.skills.length }) : msg("agents.everySkill"),
        ...(servers ? [msg("agents.serverCount", { count: servers })] : []),
      ].join(" · ");
    }
    case "Bot": {
      const s = thing.spec as BotSpec;
      return [s.ghostRef?.name, s.modelRef?.name ?? msg("agents.hubsModel")].filter(Boolean).join(" · ");
    }
    case "Team":
      return msg("agents.memberCount", { count: (thing.spec as TeamSpec).members?.length ?? 0 });
    case "Model": {
      const s = thing.spec as ModelSpec;
      return [s.vendor, s.model].filter(Boolean).join(" · ");
    }
  }
}
