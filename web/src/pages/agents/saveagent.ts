import { partsOf, refOf, type Agent } from "../../features/resources/agents";
import type { Change } from "../../features/resources/changes";
import { pathOf } from "../../features/resources/document";
import type { Fault } from "../../features/resources/faults";
import { changedBy } from "../../features/resources/phrases";
import { api, got, Refusal, type Schema } from "../../shared/api/client";
import { formatTime } from "../../shared/i18n/format";
import { msg } from "../../shared/i18n/messages";
import { deletionOf, deletionsOf, documentsOf, faultsOf, printDocuments, type AgentInput, type SavedDoc } from "./form";

/** The documents that others changed while the user edited them. */
export interface Stale {
  message: string;
  /** The generations to replace, by kind; 0 for a deleted document. */
  generations: Map<string, number>;
}

/** The result of saving an agent. */
export interface SaveResult {
  /** The address of the saved agent. */
  saved?: string;
  faults?: Fault[];
  stale?: Stale;
}

/** saveAgent saves all documents of an agent, or none. With `over` it replaces the changes of others. */
export async function saveAgent(
  input: AgentInput,
  saved: Agent | undefined,
  all: Agent[],
  over?: Stale,
): Promise<SaveResult> {
  const printed = printDocuments(documentsOf(input, saved, all).map((d) => replacing(d, over)));
  try {
    await got(
      api.POST("/api/v1/apply", {
        params: { query: { new: true, delete: deletionsOf(input, saved, over?.generations) } },
        headers: { "Content-Type": "application/yaml" },
        body: printed.text as never,
        bodySerializer: () => printed.text,
      }),
    );
  } catch (error) {
    const changes = error instanceof Refusal ? error.problem.changes : undefined;
    if (!changes?.length) throw error;
    return { faults: faultsOf(changes, printed), stale: staleOf(changes) };
  }
  const { namespace, name } = input.ghost.metadata;
  return { saved: `/agents/edit/${encodeURIComponent(namespace)}/${encodeURIComponent(name.trim())}` };
}

/** The result of trying an agent: a conversation, or the faults of the input. */
export type Trial = { session: Schema["Session"] } | { session?: undefined; faults: Fault[] };

/** tryAgent begins a conversation with an agent as it was entered. Nothing is saved. */
export async function tryAgent(input: AgentInput, saved: Agent | undefined, all: Agent[]): Promise<Trial> {
  const { metadata } = input.ghost;
  const name = metadata.name.trim() || "new-agent";
  const named = { ...input, ghost: { ...input.ghost, metadata: { ...metadata, name } } };
  const docs = documentsOf(named, saved, all);
  const printed = printDocuments(docs.map((d) => ({ ...d, metadata: { ...d.metadata, generation: undefined } })));
  const { changes } = await got(
    api.POST("/api/v1/apply", {
      params: { query: { dry: true } },
      headers: { "Content-Type": "application/yaml" },
      body: printed.text as never,
      bodySerializer: () => printed.text,
    }),
  );
  if (changes.some((c) => c.outcome === "refused")) return { faults: faultsOf(changes, printed) };
  const kind = input.members.length
    ? "Team"
    : docs.some((d) => d.kind === "Bot" && d.metadata.name === name)
      ? "Bot"
      : "Ghost";
  const body: Schema["NewSession"] = {
    title: msg("agents.tryTitle", { name }),
    agent: `${kind}/${metadata.namespace}/${name}`,
    documents: printed.text,
  };
  return { session: await got(api.POST("/api/v1/sessions", { body })) };
}

/** replacing returns a document that replaces the current one. */
function replacing(doc: SavedDoc, over?: Stale): SavedDoc {
  const generation = over?.generations.get(`${doc.kind}/${doc.metadata.name}`);
  if (generation === undefined) return doc;
  return { ...doc, metadata: { ...doc.metadata, generation: generation || undefined } };
}

function staleOf(changes: Change[]): Stale | undefined {
  const stale = changes.filter((c) => c.stale);
  const first = stale[0]?.stale;
  if (!first) return undefined;
  return {
    message: first.generation
      ? changedBy(first.name || msg("agents.somebody"), first.updated ? formatTime(first.updated) : "")
      : msg("agents.goneMeanwhile"),
    generations: new Map(stale.map((c) => [`${c.kind}/${c.name}`, c.stale!.generation])),
  };
}

/** remove deletes all documents of an agent, or none. */
export const remove = (agent: Agent) =>
  got(
    api.POST("/api/v1/apply", {
      params: { query: { delete: partsOf(agent).map((t) => deletionOf(t)) } },
      headers: { "Content-Type": "application/yaml" },
    }),
  );

/** referrersOf returns the documents that refer to an agent and prevent its deletion. */
export async function referrersOf(agent: Agent, signal: AbortSignal): Promise<Schema["References"]> {
  const parts = partsOf(agent);
  const found = await Promise.all(
    parts.map((t) =>
      got(api.GET("/api/v1/kinds/{kind}/{namespace}/{name}/referrers", { params: pathOf(refOf(t)), signal })),
    ),
  );
  const own = new Set(parts.map((t) => t.status.id));
  return {
    seen: found.flatMap((r) => r.seen).filter((r) => !own.has(r.id)),
    others: found.reduce((n, r) => n + r.others, 0),
  } as Schema["References"];
}
