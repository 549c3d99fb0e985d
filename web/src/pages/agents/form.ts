import { leaderOf, otherMembers, type Agent, refOf, talkTo } from "../../features/resources/agents";
import {
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
  members: Member[];
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

/**
 * documentsOf returns the documents that make up an agent. Members that are agents without a
 * document for teams get one; others has all agents that can be members.
 */
export function documentsOf(input: AgentInput, saved: Agent | undefined, others: Agent[]): SavedDoc[] {
  const { namespace, name, description } = input.ghost.metadata;
  const head = (kind: Doc["kind"]): SavedDoc => ({
    ...newDoc(kind, namespace),
    metadata: { name, namespace, description },
  });
  const docs: SavedDoc[] = [sent(input.ghost)];
  if (input.model || input.members.length || saved?.bot) {
    const before = saved?.bot?.spec as BotSpec | undefined;
    const modelRef = input.model;
    docs.push(sent({ ...head("Bot"), spec: { ...before, ghostRef: before?.ghostRef ?? { name }, modelRef } }));
  }
  for (const a of others.filter((a) => !a.bot && input.members.some((m) => isMember(m, a, namespace))))
    docs.push(sent(teamDocument(a, namespace)));
  if (input.members.length) {
    const before = saved?.team?.spec as TeamSpec | undefined;
    const leader = before?.members?.[leaderOf(before.members)] ?? { botRef: { name }, role: "leader" };
    docs.push(sent({ ...head("Team"), spec: { ...before, members: [leader, ...input.members] } }));
  }
  const generations = new Map(
    [saved?.ghost, saved?.bot, saved?.team].map((t) => [t && `${t.kind}/${t.metadata.name}`, t?.status.generation]),
  );
  return docs.map((d) => {
    const generation = generations.get(`${d.kind}/${d.metadata.name}`);
    return generation ? { ...d, metadata: { ...d.metadata, generation } } : d;
  });
}

/** teamDocument returns the document with which an agent without one becomes a member of teams. */
function teamDocument(a: Agent, home: string): Doc {
  const { namespace, name, description } = a.ghost!.metadata;
  const ghostRef = namespace === home ? { name } : { name, namespace };
  return { ...newDoc("Bot", home), metadata: { name, namespace: home, description }, spec: { ghostRef } };
}

/** memberOf returns an agent as a member of a team in a namespace. */
export function memberOf(a: Agent, home: string): Member {
  if (!a.bot || a.bot.metadata.namespace === home) return { botRef: { name: a.name } };
  return { botRef: { name: a.name, namespace: a.bot.metadata.namespace } };
}

/** isMember reports whether a member of a team in a namespace is an agent. */
export function isMember(m: Member, a: Agent, home: string): boolean {
  const ref = memberOf(a, home).botRef;
  return m.botRef.name === ref.name && (m.botRef.namespace ?? home) === (ref.namespace ?? home);
}

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
    const { kind, first, paths } = printed.lines[i]!;
    const found = c.findings.filter((f) => f.code !== "stale").map((f) => ({ ...f, line: f.line - first }));
    for (const f of located(found, paths, kind)) {
      const again = f.path.startsWith("metadata.") && out.some((o) => o.path === f.path && o.code === f.code);
      if (!again) out.push(f);
    }
  });
  return out;
}

/** formOf returns the address of the form of an agent, or undefined if only its documents can be edited. */
export const formOf = (a: Agent): string | undefined =>
  a.ghost?.spec && partsRead(a)
    ? `/agents/edit/${encodeURIComponent(a.namespace)}/${encodeURIComponent(a.name)}`
    : undefined;

const partsRead = (a: Agent) =>
  [a.bot, a.team].every((t) => !t || t.spec !== undefined) && refOf(talkTo(a)).name === a.name;
