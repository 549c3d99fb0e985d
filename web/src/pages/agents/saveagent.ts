import { partsOf, type Agent } from "../../features/resources/agents";
import type { Change } from "../../features/resources/changes";
import { pathOf, type Kind } from "../../features/resources/document";
import type { Fault } from "../../features/resources/faults";
import { changedBy } from "../../features/resources/phrases";
import { api, got, Refusal, type Schema } from "../../shared/api/client";
import { moment } from "../../shared/i18n/format";
import { msg } from "../../shared/i18n/messages";
import { documentsOf, faultsOf, printDocuments, type AgentInput, type SavedDoc } from "./form";

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
        params: { query: { new: true } },
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
  if (saved?.team && !input.members.length) await remove(saved, ["Team"]);
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
      ? changedBy(first.name || msg("agents.somebody"), first.updated ? moment(first.updated) : "")
      : msg("agents.goneMeanwhile"),
    generations: new Map(stale.map((c) => [`${c.kind}/${c.name}`, c.stale!.generation])),
  };
}

/** remove deletes documents of an agent, those that refer to others first. */
export async function remove(agent: Agent, kinds: Kind[] = ["Team", "Bot", "Ghost"]) {
  for (const part of partsOf(agent).reverse()) {
    if (!kinds.includes(part.kind as Kind)) continue;
    const params = pathOf({ kind: part.kind as Kind, ...part.metadata });
    await got(api.DELETE("/api/v1/kinds/{kind}/{namespace}/{name}", { params }));
  }
}
