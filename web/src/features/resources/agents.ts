import { api, got, type Schema } from "../../shared/api/client";
import { pathOf, type BotSpec, type Kind, type Member, type Ref, type ResourceRef, type TeamSpec } from "./document";
import { allOf } from "./resourcelist";

type Thing = Schema["Kind"];

/** An agent: the documents of one name that belong together. Users talk to the last of them. */
export interface Agent {
  namespace: string;
  name: string;
  ghost?: Thing;
  bot?: Thing;
  team?: Thing;
}

/** The kinds of the documents of agents, in the order in which they refer to each other. */
export const partKinds = ["Ghost", "Bot", "Team"] as const;

/** partsOf returns the documents of an agent. */
export const partsOf = (a: Agent): Thing[] => [a.ghost, a.bot, a.team].filter((t) => t !== undefined);

/** talkTo returns the document that users of an agent talk to. */
export const talkTo = (a: Agent): Thing => (a.team ?? a.bot ?? a.ghost)!;

/** refOf returns the place of a resource. */
export const refOf = (t: Thing): ResourceRef => ({
  kind: t.kind as Kind,
  namespace: t.metadata.namespace,
  name: t.metadata.name,
});

/** leads reports whether a member is the leader of its team. */
export const leads = (m: Member) => m.role?.toLowerCase() === "leader";

const membersOf = (team: Thing): Member[] => (team.spec as TeamSpec | undefined)?.members ?? [];

/** leaderOf returns the position of the leader of a team. */
export const leaderOf = (members: Member[]) => Math.max(0, members.findIndex(leads));

/** otherMembers returns the members of an agent. The agent itself leads them. */
export function otherMembers(a: Agent): Member[] {
  if (!a.team) return [];
  const members = membersOf(a.team);
  return members.filter((_, i) => i !== leaderOf(members));
}

/** isOwn reports whether a reference from a document means the document of the same name beside it. */
const isOwn = (from: Thing, to: Ref | undefined) =>
  to?.name === from.metadata.name &&
  (!to.namespace || to.namespace === "default" || to.namespace === from.metadata.namespace);

/** agentsOf groups documents by agent. A document that extends a document of another name is an agent of its own. */
export function agentsOf(ghosts: Thing[], bots: Thing[], teams: Thing[]): Agent[] {
  const keyOf = (t: Thing) => `${t.metadata.namespace}/${t.metadata.name}`;
  const out: Agent[] = [];
  const ghost = new Map(ghosts.map((t) => [keyOf(t), t]));
  const bot = new Map(bots.map((t) => [keyOf(t), t]));
  const take = (from: Map<string, Thing>, key: string) => {
    const t = from.get(key);
    from.delete(key);
    return t;
  };
  const base = (b: Thing | undefined) =>
    b && isOwn(b, (b.spec as BotSpec | undefined)?.ghostRef) ? take(ghost, keyOf(b)) : undefined;
  const add = (parts: Omit<Agent, "namespace" | "name">) => {
    const { namespace, name } = talkTo(parts as Agent).metadata;
    out.push({ namespace, name, ...parts });
  };
  for (const t of teams) {
    const leader = membersOf(t)[leaderOf(membersOf(t))];
    const b = leader && isOwn(t, leader.botRef) ? take(bot, keyOf(t)) : undefined;
    add({ team: t, bot: b, ghost: base(b) });
  }
  for (const b of [...bot.values()]) add({ bot: b, ghost: base(b) });
  for (const g of ghost.values()) add({ ghost: g });
  return out.sort((a, b) => a.name.localeCompare(b.name) || a.namespace.localeCompare(b.namespace));
}

/** allAgents loads the agents that the user can see, or those of a namespace. */
export async function allAgents(signal?: AbortSignal, namespace?: string): Promise<Agent[]> {
  const [ghosts, bots, teams] = await Promise.all(partKinds.map((kind) => allOf(kind, signal, namespace)));
  return agentsOf(ghosts!, bots!, teams!);
}

/** withRights returns an agent with the changes that the user may make to its documents. Lists do not have them. */
export async function withRights(a: Agent, signal?: AbortSignal): Promise<Agent> {
  const read = async (t: Thing | undefined) =>
    t && got(api.GET("/api/v1/kinds/{kind}/{namespace}/{name}", { params: pathOf(refOf(t)), signal }));
  const [ghost, bot, team] = await Promise.all([a.ghost, a.bot, a.team].map(read));
  return { ...a, ghost, bot, team };
}

/** may reports whether the user may make a change to all documents of an agent. */
export const may = (a: Agent, action: "kind.use" | "kind.apply" | "kind.delete") =>
  partsOf(a).every((t) => t.status.can?.includes(action));
