import type { ComponentChildren } from "preact";
import { useLocation } from "preact-iso";
import { agentsOf, otherMembers, partKinds, partsOf, refOf, talkTo, type Agent } from "../../features/resources/agents";
import { agentOf, pageOf, type BotSpec, type GhostSpec, type ModelSpec } from "../../features/resources/document";
import { newOfKind } from "../../features/resources/phrases";
import { allOf } from "../../features/resources/resourcelist";
import { readServers } from "../../features/servers/config";
import { namespaceName } from "../../features/servers/serverlist";
import { useLoad, type Schema } from "../../shared/api/client";
import { msg } from "../../shared/i18n/messages";
import { Empty, Icon, Shown, Tabs, Tag } from "../../shared/ui";
import { Page } from "../../shared/ui/page";
import { formOf } from "./form";

type Thing = Schema["Kind"];
type Tab = "Agent" | "Model";

interface Lists {
  Agent: Agent[];
  Model: Thing[];
}

async function loadLists(signal: AbortSignal): Promise<Lists> {
  const [ghosts, bots, teams, models] = await Promise.all(
    [...partKinds, "Model" as const].map((kind) => allOf(kind, signal)),
  );
  return { Agent: agentsOf(ghosts!, bots!, teams!), Model: models! };
}

/** List shows the visible agents and models. */
export function List() {
  const { query, route } = useLocation();
  const tab: Tab = query.kind === "Model" ? "Model" : "Agent";
  const load = useLoad(loadLists, []);
  const text = (t: Tab) => (
    <>
      {t === "Agent" ? msg("agents.title") : msg("agents.many.Model")}
      {load.data && (
        <>
          {" "}
          <span class="muted">{load.data[t].length}</span>
        </>
      )}
    </>
  );
  return (
    <Page
      title={msg("agents.title")}
      lead={msg("agents.lead")}
      actions={load.data?.[tab].length ? <Make tab={tab} /> : undefined}
    >
      <Tabs
        label={msg("agents.title")}
        tabs={[
          ["Agent", text("Agent")],
          ["Model", text("Model")],
        ]}
        open={tab}
        onOpen={(t) => route(t === "Model" ? "/agents?kind=Model" : "/agents", true)}
      >
        <div class="stack">
          <p class="muted agents-about">{tab === "Model" ? msg("agents.about.Model") : msg("agents.aboutAgents")}</p>
          <Shown asked={load} waiting={msg("agents.getting")}>
            {(all) => (all[tab].length ? <Found key={tab} tab={tab} all={all} /> : <Nothing tab={tab} />)}
          </Shown>
        </div>
      </Tabs>
    </Page>
  );
}

const Make = ({ tab }: { tab: Tab }) => (
  <a class="button primary" href={tab === "Model" ? "/agents/new?kind=Model" : "/agents/new"}>
    <Icon name="plus" />
    {tab === "Model" ? newOfKind(msg("agents.kinds.Model")) : msg("agents.newAgent")}
  </a>
);

const Nothing = ({ tab }: { tab: Tab }) => (
  <Empty title={tab === "Model" ? msg("agents.none.Model") : msg("agents.none.Agent")} actions={<Make tab={tab} />}>
    <p>{tab === "Model" ? msg("agents.noneSays.Model") : msg("agents.noneSays.Agent")}</p>
  </Empty>
);

/** Found shows a list, and finds items in it. */
function Found({ tab, all }: { tab: Tab; all: Lists }) {
  const { query, route, path } = useLocation();
  const q = query.q ?? "";
  const search = (to: string) => {
    const next = new URLSearchParams(query);
    if (to) next.set("q", to);
    else next.delete("q");
    route(`${path}?${next}`, true);
  };
  const matches = (name: string, namespace: string, description = "") =>
    `${name} ${description} ${namespace}`.toLowerCase().includes(q.toLowerCase());
  const agents = all.Agent.filter((a) => matches(a.name, a.namespace, descriptionOf(a)));
  const models = all.Model.filter((k) => matches(k.metadata.name, k.metadata.namespace, k.metadata.description));
  const cards =
    tab === "Model"
      ? models.map((k) => <ModelCard key={k.status.id} model={k} />)
      : agents.map((a) => <AgentCard key={`${a.namespace}/${a.name}/${talkTo(a).kind}`} agent={a} />);
  return (
    <>
      {(all[tab].length > 6 || q) && (
        <input
          class="input agents-find"
          type="search"
          aria-label={msg("agents.search")}
          placeholder={msg("agents.search")}
          value={q}
          onInput={(e) => search(e.currentTarget.value)}
        />
      )}
      {!cards.length && <p class="muted">{msg("agents.noneFound")}</p>}
      <ul class="cards">
        {cards.map((card) => (
          <li key={card.key}>{card}</li>
        ))}
      </ul>
    </>
  );
}

/** descriptionOf returns the description of an agent, or the first line of its instructions. */
const descriptionOf = (a: Agent): string | undefined =>
  talkTo(a).metadata.description ||
  a.ghost?.metadata.description ||
  (a.ghost?.spec as GhostSpec | undefined)?.systemPrompt?.split("\n").find((l) => l.trim());

interface CardProps {
  name: string;
  href: string;
  description?: string;
  namespace: string;
  findings?: Schema["Diagnostic"][];
  children: ComponentChildren;
}

function Card({ name, href, description, namespace, findings, children }: CardProps) {
  return (
    <article class="card agents-card">
      <h2>
        <a href={href}>{name}</a>
      </h2>
      <p class="small muted agents-clamp">{description || msg("agents.noDescription")}</p>
      <p class="row small muted">
        <Tag>{namespaceName(namespace)}</Tag>
        {!!findings?.length && (
          <Tag look="bad" title={findings[0]!.message}>
            {msg("agents.damaged")}
          </Tag>
        )}
        {children}
      </p>
    </article>
  );
}

function AgentCard({ agent }: { agent: Agent }) {
  const place = refOf(talkTo(agent));
  return (
    <Card
      name={agent.name}
      href={formOf(agent) ?? pageOf(place)}
      description={descriptionOf(agent)}
      namespace={agent.namespace}
      findings={partsOf(agent).flatMap((t) => t.status.findings ?? [])}
    >
      <span>{summaryOf(agent)}</span>
      <a
        class="button small push agents-above"
        href={`/?agent=${encodeURIComponent(agentOf(place))}`}
        aria-label={msg("agents.talkTo", { name: agent.name })}
      >
        <Icon name="chat" size={16} />
        {msg("agents.talkShort")}
      </a>
    </Card>
  );
}

function ModelCard({ model }: { model: Thing }) {
  const spec = model.spec as ModelSpec | undefined;
  return (
    <Card
      name={model.metadata.name}
      href={pageOf(refOf(model))}
      description={model.metadata.description}
      namespace={model.metadata.namespace}
      findings={model.status.findings ?? []}
    >
      <span>{[spec?.vendor, spec?.model].filter(Boolean).join(" · ")}</span>
    </Card>
  );
}

/** summaryOf says what an agent consists of. */
function summaryOf(a: Agent): string {
  const ghost = a.ghost?.spec as GhostSpec | undefined;
  const bot = a.bot?.spec as BotSpec | undefined;
  const servers = ghost ? (readServers(ghost.mcpServers)?.length ?? 0) : 0;
  const members = a.team ? otherMembers(a).length + (a.bot ? 0 : 1) : 0;
  return [
    ghost && (ghost.skills ? msg("agents.skillCount", { count: ghost.skills.length }) : msg("agents.everySkill")),
    !ghost && bot?.ghostRef && msg("agents.basedOn", { name: bot.ghostRef.name }),
    servers && msg("agents.serverCount", { count: servers }),
    bot?.modelRef?.name,
    members && msg("agents.memberCount", { count: members }),
  ]
    .filter(Boolean)
    .join(" · ");
}
