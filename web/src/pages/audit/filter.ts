import { userID } from "../../features/users/users";
import { api, got, type Schema } from "../../shared/api/client";

export type Decision = Schema["Record"]["decision"];

/** The filter of the records, as in the address. The actor is a name. */
export interface Filter {
  actor?: string;
  action?: string;
  namespace?: string;
  subject?: string;
  decision?: Decision;
}

const decisions: Decision[] = ["allowed", "denied", "asked"];

/** filterOf reads the filter from an address. */
export function filterOf(query: Record<string, string>): Filter {
  const decision = decisions.find((d) => d === query.decision);
  return {
    actor: query.actor || undefined,
    action: query.action || undefined,
    namespace: query.namespace || undefined,
    subject: query.subject || undefined,
    decision,
  };
}

/** addressOf returns the address of a filter. */
export function addressOf(filter: Filter): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(filter)) if (value) query.set(name, value);
  return query.size ? `/audit?${query}` : "/audit";
}

/** records loads a page of records. It converts the actor's name to an ID. */
export async function records(filter: Filter, after: string | undefined, signal: AbortSignal) {
  const actor = filter.actor && (await userID(filter.actor));
  return got(api.GET("/api/v1/audit", { params: { query: { ...filter, actor, after, limit: 50 } }, signal }));
}
