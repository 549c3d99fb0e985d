import type { Address } from "../../features/skills/skilladdress";

/** The filters, with their names in the address. */
const filters = ["code", "review", "origin", "category", "tag", "attention", "hidden", "unused"] as const;

export const reviews = ["pending", "approved", "rejected"] as const;
export const sorts = ["name", "updated", "created", "approved", "used", "team", "rating", "tokens"] as const;
export type Sort = (typeof sorts)[number];

/**
 * sorting returns the sort order: the chosen one, else by name. During a search it is undefined,
 * which means by relevance.
 */
export function sorting(at: Address): Sort | undefined {
  const said = sorts.find((s) => s === at.get("sort"));
  return said ?? (at.get("q") ? undefined : "name");
}

/** filtered reports whether any filter is active. */
export const filtered = (at: Address) => filters.some((f) => at.get(f));

/** hasFilterOrQuery reports whether any filter or a search is active. */
export const hasFilterOrQuery = (at: Address) => filtered(at) || !!at.get("q");

/** isStart reports whether the address selects nothing, so that the start page is shown. */
export const isStart = (at: Address) => !hasFilterOrQuery(at) && !at.get("in") && !at.get("sort");

/** The changes of the address that remove all filters. */
export const noFilters: Record<string, string> = Object.fromEntries(filters.map((f) => [f, ""]));

const oneOf = <T extends string>(value: string, values: readonly T[]): T | undefined => values.find((v) => v === value);

/** listQuery returns the parameters of a list request for the address. */
export function listQuery(at: Address) {
  const origin = oneOf(at.get("origin"), ["imported", "uploaded"]);
  const sort = sorting(at);
  return {
    namespace: at.get("in") ? [at.get("in")] : undefined,
    q: at.get("q").trim() || undefined,
    sort: sort === "name" ? ("title" as const) : (sort ?? ("relevance" as const)),
    code: oneOf(at.get("code"), ["yes", "no"]),
    review: oneOf(at.get("review"), reviews),
    imported: origin && (origin === "imported" ? ("yes" as const) : ("no" as const)),
    category: at.get("category") || undefined,
    tag: at.get("tag") || undefined,
    attention: at.get("attention") ? true : undefined,
    unused: at.get("unused") ? true : undefined,
    only_hidden: at.get("hidden") ? true : undefined,
  };
}

/** titleOf returns the display name of a skill. */
export const titleOf = (s: { name: string; displayName?: string }) => s.displayName || s.name;
