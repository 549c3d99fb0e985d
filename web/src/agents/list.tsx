import { useLocation } from "preact-iso";
import { useAsked, type Schema } from "../api/client";
import { Page } from "../shell/page";
import { readServers } from "../servers/config";
import { placeName } from "../servers/list";
import { Empty, Icon, Shown, Tabs, Tag } from "../ui";
import { agentKinds, agentOf, pageOf, type AgentKind, type BotSpec, type GhostSpec, type ModelSpec, type Place, type TeamSpec } from "./document";
import { allOf } from "./things";
import { w } from "./words";

type Thing = Schema["Kind"];

/** All agents that one sees, and what they are made of. */
export function List() {
  const t = w();
  const { query, route } = useLocation();
  const kind = agentKinds.find((k) => k === query.kind) ?? "Ghost";
  const asked = useAsked(async (signal) => Object.fromEntries(await Promise.all(agentKinds.map(async (k) => [k, await allOf(k, signal)] as const))) as Record<AgentKind, Thing[]>, []);
  const many = (k: AgentKind) => (asked.data ? <> <span class="muted">{asked.data[k].length}</span></> : null);
  return (
    <Page title={t.title} lead={t.lead} actions={asked.data?.[kind].length ? <Make kind={kind} /> : undefined}>
      <Tabs label={t.title} tabs={agentKinds.map((k) => [k, <>{t.many[k]}{many(k)}</>])} open={kind} onOpen={(k) => route(`/agents?kind=${k}`, true)}>
        <div class="stack">
          <p class="muted agents-about">{t.about[kind]}</p>
          <Shown asked={asked} waiting={t.getting}>
            {(all) => (all[kind].length ? <Things key={kind} things={all[kind]} /> : <Nothing kind={kind} all={all} />)}
          </Shown>
        </div>
      </Tabs>
    </Page>
  );
}

function Make({ kind }: { kind: AgentKind }) {
  const t = w();
  return <a class="button primary" href={`/agents/new?kind=${kind}`}><Icon name="plus" />{t.makeOne(t.kinds[kind])}</a>;
}

/** Says what a kind is for, and what has to be there before. */
function Nothing({ kind, all }: { kind: AgentKind; all: Record<AgentKind, Thing[]> }) {
  const t = w();
  const first: Partial<Record<AgentKind, AgentKind>> = { Bot: "Ghost", Team: "Bot" };
  const before = first[kind];
  const missing = before && !all[before].length ? before : undefined;
  return (
    <Empty title={t.none[kind]} actions={<Make kind={missing ?? kind} />}>
      <p>{t.noneSays[kind]}</p>
      {missing && <p>{t.needsFirst(t.kinds[kind], t.kinds[missing])}</p>}
    </Empty>
  );
}

function Things({ things }: { things: Thing[] }) {
  const t = w();
  const { query, route, path } = useLocation();
  const q = query.q ?? "";
  const search = (to: string) => {
    const next = new URLSearchParams(query);
    if (to) next.set("q", to);
    else next.delete("q");
    route(`${path}?${next}`, true);
  };
  const found = things.filter((k) => `${k.metadata.name} ${k.metadata.description ?? ""} ${k.metadata.namespace}`.toLowerCase().includes(q.toLowerCase()));
  return (
    <>
      {(things.length > 6 || q) && <input class="input agents-find" type="search" aria-label={t.search} placeholder={t.search} value={q} onInput={(e) => search(e.currentTarget.value)} />}
      {!found.length && <p class="muted">{t.noneFound}</p>}
      <ul class="cards">{found.map((k) => <li key={k.status.id}><Card thing={k} /></li>)}</ul>
    </>
  );
}

function Card({ thing }: { thing: Thing }) {
  const t = w();
  const place = { kind: thing.kind, namespace: thing.metadata.namespace, name: thing.metadata.name } as Place;
  const says = thing.metadata.description || (thing.spec as GhostSpec | undefined)?.systemPrompt?.split("\n").find((l) => l.trim());
  return (
    <article class="card agents-card">
      <h2><a href={pageOf(place)}>{place.name}</a></h2>
      <p class="small muted agents-clamp">{says || t.noDescription}</p>
      <p class="row small muted">
        <Tag>{placeName(place.namespace)}</Tag>
        {!!thing.status.findings?.length && <Tag look="bad" title={thing.status.findings[0]!.message}>{t.damaged}</Tag>}
        {thing.spec !== undefined && <span>{inShort(thing)}</span>}
        {place.kind !== "Model" && <a class="button small push agents-above" href={`/?agent=${encodeURIComponent(agentOf(place))}`} aria-label={t.talkTo(place.name)}><Icon name="chat" size={16} />{t.talkShort}</a>}
      </p>
    </article>
  );
}

/** What a thing consists of in a few words. */
function inShort(thing: Thing): string {
  const t = w();
  switch (thing.kind as AgentKind) {
    case "Ghost": {
      const s = thing.spec as GhostSpec;
      const servers = readServers(s.mcpServers)?.length ?? 0;
      return [s.skills ? t.skillCount(s.skills.length) : t.everySkill, ...(servers ? [t.serverCount(servers)] : [])].join(" · ");
    }
    case "Bot": {
      const s = thing.spec as BotSpec;
      return [s.ghostRef?.name, s.modelRef?.name ?? t.hubsModel].filter(Boolean).join(" · ");
    }
    case "Team":
      return t.memberCount((thing.spec as TeamSpec).members?.length ?? 0);
    case "Model": {
      const s = thing.spec as ModelSpec;
      return [s.vendor, s.model].filter(Boolean).join(" · ");
    }
  }
}
