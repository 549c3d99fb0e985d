import { leaderOf, otherMembers, partsOf, type Agent, refOf, talkTo } from "../../features/resources/agents";
import {
  agentOf,
  docOf,
  newDoc,
  sent,
  type BotSpec,
  type Doc,
  type GhostSpec,
  type Member,
  type Ref,
  type TeamSpec,
} from "../../features/resources/document";
import { located, type Fault } from "../../features/resources/faults";
import { printJSON } from "../../features/resources/printdocument";
import type { Schema } from "../../shared/api/client";

/** What the user enters for an agent. */
export interface AgentInput {
  /** The document with the name, the instructions, the skills and the servers. */
  ghost: Doc<GhostSpec>;
  /** Undefined for the model of the hub. */
  model?: Ref;
  /** The members that the agent can delegate tasks to. */
  members: AgentMember[];
}

/** A member of an agent. One that is an agent without a document for teams gets one when the agent is saved. */
export interface AgentMember extends Member {
  /** The agent that the new document extends. The reference has its name and namespace. */
  ghost?: true;
}

/** newInput returns an empty agent. */
export const newInput = (): AgentInput => ({ ghost: newDoc("Ghost") as Doc<GhostSpec>, members: [] });

/** inputOf returns what was entered for a saved agent. */
export const inputOf = (a: Agent): AgentInput => ({
  ghost: docOf(a.ghost!) as Doc<GhostSpec>,
  model: (a.bot?.spec as BotSpec | undefined)?.modelRef,
  members: otherMembers(a),
});

/** isSame reports whether two inputs give the same documents. */
export const isSame = (a: AgentInput, b: AgentInput) =>
  JSON.stringify([sent(a.ghost), a.model, a.members]) === JSON.stringify([sent(b.ghost), b.model, b.members]);

/** A document to save, with the generation that it replaces. */
export interface SavedDoc extends Doc {
  metadata: Doc["metadata"] & { generation?: number };
}

/** documentsOf returns the documents that make up an agent; others has all agents that can be members. */
export function documentsOf(input: AgentInput, saved: Agent | undefined, others: Agent[]): SavedDoc[] {
  const { namespace, name, description } = input.ghost.metadata;
  const head = (kind: Doc["kind"], before?: Schema["Kind"]): SavedDoc => ({
    ...newDoc(kind, namespace),
    metadata: { name, namespace, description: ownDescription(saved, before) ?? description },
  });
  const docs: SavedDoc[] = [sent(input.ghost)];
  if (input.model || input.members.length || saved?.bot) {
    const before = saved?.bot?.spec as BotSpec | undefined;
    const modelRef = input.model;
    docs.push(
      sent({ ...head("Bot", saved?.bot), spec: { ...before, ghostRef: before?.ghostRef ?? { name }, modelRef } }),
    );
  }
  const members = input.members.map(({ ghost, ...m }): Member => {
    if (!ghost) return { ...m, botRef: localRef(m.botRef, namespace) };
    const taken = [...others.flatMap((a) => a.bot ?? []), ...docs.filter((d) => d.kind === "Bot")];
    const bot = memberDocument(m.botRef, others, namespace, new Set(taken.map((t) => t.metadata.name)));
    docs.push(sent(bot));
    return { ...m, botRef: { name: bot.metadata.name } };
  });
  if (input.members.length) {
    const before = saved?.team?.spec as TeamSpec | undefined;
    const leader = before?.members?.[leaderOf(before.members)] ?? { botRef: { name }, role: "leader" };
    docs.push(sent({ ...head("Team", saved?.team), spec: { ...before, members: [leader, ...members] } }));
  }
  const generations = new Map(
    [saved?.ghost, saved?.bot, saved?.team].map((t) => [t && `${t.kind}/${t.metadata.name}`, t?.status.generation]),
  );
  return docs.map((d) => {
    const generation = generations.get(`${d.kind}/${d.metadata.name}`);
    return generation ? { ...d, metadata: { ...d.metadata, generation } } : d;
  });
}

/** versionOf returns a text that is the same for inputs with the same documents, also after they were saved. */
export const versionOf = (input: AgentInput, saved: Agent | undefined, others: Agent[]): string =>
  JSON.stringify(
    documentsOf(input, saved, others).map((d) => ({ ...d, metadata: { ...d.metadata, generation: undefined } })),
    (_, value: unknown) =>
      value && typeof value === "object" && !Array.isArray(value)
        ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
        : value,
  );

/** ownDescription returns the description of a Bot or Team if the form does not show it: if it differs from the Ghost's. */
const ownDescription = (saved?: Agent, before?: Schema["Kind"]) =>
  before && (before.metadata.description ?? "") !== (saved?.ghost?.metadata.description ?? "")
    ? (before.metadata.description ?? "")
    : undefined;

/** localRef returns a reference from a document in a namespace. */
const localRef = ({ name, namespace }: Ref, home: string): Ref =>
  namespace && namespace !== home ? { name, namespace } : { name };

/** memberDocument returns the document with which an agent without one becomes a member of teams. Its name is free. */
function memberDocument(ghost: Ref, others: Agent[], home: string, taken: Set<string>): Doc {
  let name = ghost.name;
  for (let n = 1; taken.has(name); n++) name = n > 1 ? `${ghost.name}-member-${n}` : `${ghost.name}-member`;
  const description = others.find((a) => !a.bot && isAt(a.ghost, ghost))?.ghost?.metadata.description;
  return {
    ...newDoc("Bot", home),
    metadata: { name, namespace: home, description },
    spec: { ghostRef: localRef(ghost, home) },
  };
}

const isAt = (t: Schema["Kind"] | undefined, { name, namespace }: Ref) =>
  t?.metadata.name === name && t.metadata.namespace === namespace;

/** memberOf returns an agent as a member. Its reference has the namespace, because the user may choose another for the team. */
export function memberOf(a: Agent): AgentMember {
  const { name, namespace } = (a.bot ?? a.ghost)!.metadata;
  return a.bot ? { botRef: { name, namespace } } : { botRef: { name, namespace }, ghost: true };
}

/** isMember reports whether a member of a team in a namespace is an agent. */
export const isMember = (m: AgentMember, a: Agent, home: string): boolean =>
  isAt(m.ghost ? (a.bot ? undefined : a.ghost) : a.bot, { ...m.botRef, namespace: m.botRef.namespace ?? home });

/** The text of documents, with the kind and the path of each line. */
export interface PrintedDocuments {
  text: string;
  lines: { kind: Doc["kind"]; first: number; paths: string[] }[];
}

/** printDocuments prints documents for the hub. */
export function printDocuments(docs: SavedDoc[]): PrintedDocuments {
  const out: PrintedDocuments = { text: "", lines: [] };
  let line = 0;
  for (const d of docs) {
    const { text, paths } = printJSON(d);
    out.text += `---\n${text}`;
    out.lines.push({ kind: d.kind, first: line + 1, paths });
    line += 1 + paths.length;
  }
  return out;
}

/** faultsOf returns the faults that the hub found in documents, with their fields. A fault of several documents is one. */
export function faultsOf(changes: Schema["Change"][], printed: PrintedDocuments): Fault[] {
  const out: Fault[] = [];
  changes.forEach((c, i) => {
    const line = printed.lines[i];
    if (!line) return; // a deletion
    const { kind, first, paths } = line;
    const found = c.findings.filter((f) => f.code !== "stale").map((f) => ({ ...f, line: f.line - first }));
    for (const f of located(found, paths, kind)) {
      const again = f.path.startsWith("metadata.") && out.some((o) => o.path === f.path && o.code === f.code);
      if (!again) out.push(f);
    }
  });
  return out;
}

/** deletionOf names a document to delete, with the generation that may be deleted; 0 for any. */
export const deletionOf = (t: Schema["Kind"], generation = t.status.generation): string =>
  agentOf(refOf(t)) + (generation ? `/${generation}` : "");

/**
 * deletionsOf returns the documents of an agent that its input does without, as the hub names them.
 * `over` has the generations to delete of documents that others changed.
 */
export const deletionsOf = (input: AgentInput, saved?: Agent, over?: Map<string, number>): string[] =>
  saved?.team && !input.members.length ? [deletionOf(saved.team, over?.get(`Team/${saved.team.metadata.name}`))] : [];

/** isAtAddress reports whether an agent is at a place: with a kind, the agent of that document. */
export const isAtAddress = (a: Agent, { namespace, name, kind }: { namespace: string; name: string; kind?: string }) =>
  kind
    ? partsOf(a).some((t) => t.kind === kind && t.metadata.name === name && t.metadata.namespace === namespace)
    : a.name === name && a.namespace === namespace;

/** agentAt returns the agent at a place. Of several without a kind, it is the one that has a form. */
export function agentAt(all: Agent[], place: Parameters<typeof isAtAddress>[1]): Agent | undefined {
  const found = all.filter((a) => isAtAddress(a, place));
  return found.find(formOf) ?? found[0];
}

/** formOf returns the address of the form of an agent, or undefined if only its documents can be edited. */
export const formOf = (a: Agent): string | undefined =>
  a.ghost?.spec && partsRead(a)
    ? `/agents/edit/${encodeURIComponent(a.namespace)}/${encodeURIComponent(a.name)}`
    : undefined;

const partsRead = (a: Agent) =>
  [a.bot, a.team].every((t) => !t || t.spec !== undefined) && refOf(talkTo(a)).name === a.name;
