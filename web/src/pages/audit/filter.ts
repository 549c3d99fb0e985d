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
  /** The first and the last day, such as 2026-11-30. */
  since?: string;
  until?: string;
}

const decisions: Decision[] = ["allowed", "denied", "asked"];

const day = (text = "") => (/^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text)) ? text : undefined);

/** filterOf reads the filter from an address. */
export function filterOf(query: Record<string, string>): Filter {
  const decision = decisions.find((d) => d === query.decision);
  return {
    actor: query.actor || undefined,
    action: query.action || undefined,
    namespace: query.namespace || undefined,
    subject: query.subject || undefined,
    decision,
    since: day(query.since),
    until: day(query.until),
  };
}

/** timesOf returns the times of a filter: the start of the first day, and the end of the last one, for the user. */
export function timesOf({ since, until }: Filter): { since?: string; until?: string } {
  const start = (day: string, later: number) => {
    const time = new Date(`${day}T00:00`);
    time.setDate(time.getDate() + later);
    return time.toISOString();
  };
  return { since: since && start(since, 0), until: until && start(until, 1) };
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
  return got(
    api.GET("/api/v1/audit", { params: { query: { ...filter, ...timesOf(filter), actor, after, limit: 50 } }, signal }),
  );
}
