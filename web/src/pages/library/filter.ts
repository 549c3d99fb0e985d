import type { Address } from "../../features/skills/skilladdress";

/** The filters that are shown as chips, with their names in the address. */
export const chips = ["code", "review", "origin", "hidden", "unused"] as const;

export const reviews = ["pending", "approved", "rejected"] as const;
export const sorts = ["name", "updated", "used", "rating", "tokens"] as const;
export type Sort = (typeof sorts)[number];

/**
 * sorting returns the sort order: the chosen one, else by name. During a search it is undefined,
 * which means by relevance.
 */
export function sorting(at: Address): Sort | undefined {
  const said = sorts.find((s) => s === at.get("sort"));
  return said ?? (at.get("q") ? undefined : "name");
}

/** narrowed reports whether any filter is active. */
export const narrowed = (at: Address) => chips.some((c) => at.get(c)) || !!at.get("tag") || !!at.get("q");

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
    tag: at.get("tag") || undefined,
    unused: at.get("unused") ? true : undefined,
    only_hidden: at.get("hidden") ? true : undefined,
  };
}

/** titleOf returns the display name of a skill. */
export const titleOf = (s: { name: string; displayName?: string }) => s.displayName || s.name;
