import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { api, got, isUnreachable, type Schema } from "../../shared/api/client";
import { msg } from "../../shared/i18n/messages";

export type Model = Schema["Model"];

/** The models that the user may choose, by agent. The first one is used if none is chosen. */
const known = signal<Record<string, Model[]>>({});

const most = 500;

/** Why a list could not be loaded, by agent. */
const failures = signal<Record<string, unknown>>({});

/** The lists that are being loaded, by agent. */
const loading = new Map<string, Promise<void>>();

/** loadModels loads the models for conversations with an agent, or "" without one. */
export function loadModels(agent: string): Promise<void> {
  const fail = (error?: unknown) => (failures.value = { ...failures.value, [agent]: error });
  const now =
    loading.get(agent) ??
    load(agent)
      .then(() => fail(), fail)
      .then(() => void loading.delete(agent));
  loading.set(agent, now);
  return now;
}

/** modelsFailure returns why the models for an agent are unknown, unless the hub is unreachable, which the shell says. */
export function modelsFailure(agent: string): unknown {
  const error = failures.value[agent];
  return isUnreachable(error) ? undefined : error;
}

async function load(agent: string) {
  const all: Model[] = [];
  let after: string | undefined;
  do {
    const query = { limit: 100, after, ...(agent && { agent }) };
    const { items, next } = await got(api.GET("/api/v1/models", { params: { query } }));
    all.push(...items);
    after = next;
  } while (after && all.length < most);
  const chosen = all[0]!.id; // the list has the default again, under its name
  const models = chosen ? all.filter((m, i) => i === 0 || m.id !== chosen) : all;
  known.value = { ...known.value, [agent]: models };
}

/** setDefaultModel replaces the model of conversations without an agent. */
export function setDefaultModel(model: Model) {
  known.value = { ...known.value, "": [model, ...(known.value[""] ?? []).slice(1).filter((m) => m.id !== model.id)] };
}

/** useModels returns the models for conversations with an agent once they are loaded, the default first. */
export function useModels(agent: string | undefined): Model[] | undefined {
  useEffect(() => {
    if (agent !== undefined) void loadModels(agent);
  }, [agent]);
  return agent === undefined ? undefined : known.value[agent];
}

/** modelFor returns the model with an ID, or the default for "". */
export const modelFor = (models: Model[] | undefined, id: string): Model | undefined =>
  id ? models?.find((m) => m.id === id) : models?.[0];

export const titleOf = (m: Model): string =>
  m.vendor === "demo" ? msg("chat.builtInDemo") : m.model || m.name || m.vendor;

/** serverOrVendorOf returns the server of a model, or else its vendor. */
export function serverOrVendorOf(model: Model): string {
  try {
    return new URL(model.base_url!).host;
  } catch {
    return model.vendor;
  }
}
