import type { Address } from "../../features/skills/skilladdress";
import type { Schema } from "../../shared/api/client";
import { language } from "../../shared/i18n/language";

type Skill = Schema["Skill"];

/** The filters that are shown as chips, with their names in the address. */
export const chips = ["code", "review", "origin", "hidden", "unused"] as const;

export const reviews = ["pending", "approved", "rejected"] as const;
export const sorts = ["name", "updated", "used", "rating", "tokens"] as const;
export type Sort = (typeof sorts)[number];

/** The additional data about skills. */
export interface Known {
  /** The number of loads and calls of each skill, by ID. */
  uses: Map<string, number>;
  /** The unused skills, if requested. */
  unused?: Set<string>;
  /** The search results, best first. */
  hits?: Skill[];
}

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

/** filtered applies the filters of the address. */
export function filtered(skills: Skill[], at: Address, known: Known): Skill[] {
  const tests: ((s: Skill) => boolean)[] = [];
  const { code, review, origin, tag } = {
    code: at.get("code"),
    review: at.get("review"),
    origin: at.get("origin"),
    tag: at.get("tag"),
  };
  if (code) tests.push((s) => s.code === (code === "yes"));
  if (review) tests.push((s) => s.code && s.review === review);
  if (origin) tests.push((s) => !!s.source === (origin === "imported"));
  if (tag) tests.push((s) => s.tags.includes(tag));
  if (at.get("hidden")) tests.push((s) => s.hidden);
  if (at.get("unused")) tests.push((s) => !!known.unused?.has(s.id));
  return skills.filter((s) => tests.every((t) => t(s)));
}

/** searched returns the skills that match a query: search results first, then text matches. */
export function searched(skills: Skill[], q: string, hits: Skill[] | undefined, everywhere: boolean): Skill[] {
  if (!q) return skills;
  const here = new Map(skills.map((s) => [s.id, s]));
  const best = (hits ?? []).flatMap((h) => here.get(h.id) ?? (everywhere ? [h] : []));
  const taken = new Set(best.map((s) => s.id));
  const part = q.toLowerCase();
  return [...best, ...skills.filter((s) => !taken.has(s.id) && text(s).includes(part))];
}

const text = (s: Skill) => [s.name, s.displayName, ...s.tags, s.description].join("\n").toLowerCase();

/** sorted sorts the skills. */
export function sorted(skills: Skill[], by: Sort | undefined, known: Known): Skill[] {
  if (!by) return skills;
  const names = new Intl.Collator(language.value, { numeric: true });
  const value: Record<Exclude<Sort, "name">, (s: Skill) => number> = {
    updated: (s) => Date.parse(s.updated),
    used: (s) => known.uses.get(s.id) ?? 0,
    rating: (s) => s.rating?.stars ?? 0,
    tokens: (s) => s.tokens,
  };
  const byName = (a: Skill, b: Skill) => names.compare(titleOf(a), titleOf(b));
  return [...skills].sort(by === "name" ? byName : (a, b) => value[by](b) - value[by](a) || byName(a, b));
}

/** titleOf returns the display name of a skill. */
export const titleOf = (s: { name: string; displayName?: string }) => s.displayName || s.name;

/** tagsOf counts the tags of skills, the most frequent first. */
export function tagsOf(skills: Skill[]): [tag: string, many: number][] {
  const many = new Map<string, number>();
  for (const s of skills) for (const t of s.tags) many.set(t, (many.get(t) ?? 0) + 1);
  return [...many].sort(([a, n], [b, m]) => m - n || a.localeCompare(b));
}
