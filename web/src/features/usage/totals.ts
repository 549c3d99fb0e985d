import { api, got, type Schema } from "../../shared/api/client";
import { count, dollars, short } from "../../shared/i18n/format";
import { language } from "../../shared/i18n/language";

/** A measure that the page shows by day. */
export type Measure = "tokens" | "cost" | "turns" | "loads" | "calls" | "errors";

export type TokenUse = Schema["Totals"]["total"];
export type Total = Schema["Total"];

/** The query of the usage page, as in its address. */
export interface View {
  days: number;
  /** The owner: "" for everything visible, "me", or a group ID. */
  of: string;
  by: "model" | "agent" | "user";
  measure: Measure;
}

const measures: Measure[] = ["tokens", "cost", "turns", "loads", "calls", "errors"];

export const ranges = [7, 30, 90];

export function viewOf(query: Record<string, string>): View {
  return {
    days: ranges.find((n) => String(n) === query.days) ?? 30,
    of: query.of ?? "",
    by: query.by === "agent" || query.by === "user" ? query.by : "model",
    measure: measures.find((m) => m === query.measure) ?? "tokens",
  };
}

export function addressOf(view: View): string {
  const usual = viewOf({});
  const query = new URLSearchParams();
  for (const name of ["days", "of", "by", "measure"] as const)
    if (view[name] !== usual[name]) query.set(name, String(view[name]));
  return query.size ? `/usage?${query}` : "/usage";
}

/** totals loads the usage, grouped by day, model, agent or user. */
export function totals(view: View, by: "day" | View["by"], signal: AbortSignal) {
  const group = view.of !== "" && view.of !== "me" ? `group:${view.of}` : undefined;
  return got(
    api.GET("/api/v1/usage/totals", {
      params: { query: { by, days: view.days, user: view.of === "me" ? "me" : undefined, namespace: group } },
      signal,
    }),
  );
}

export const tokensOf = (s: TokenUse) => (s.input ?? 0) + (s.output ?? 0) + (s.cache_read ?? 0) + (s.cache_write ?? 0);

/** formatTokens formats the tokens in full, or a dash if the models reported none. */
export const formatTokens = (s: TokenUse) => (s.input === undefined ? "–" : count(tokensOf(s)));

/** amount returns the value of a measure. */
export const amount = (s: TokenUse, measure: Measure): number =>
  measure === "tokens" ? tokensOf(s) : measure === "cost" ? (s.cost ?? 0) : s[measure];

export const percent = (part: number) =>
  part.toLocaleString(language.value, { style: "percent", maximumFractionDigits: 1 });

/** formatAmount formats a number with the unit of its measure. */
export const formatAmount = (n: number, measure: Measure) => (measure === "cost" ? dollars(n) : count(n));
export const formatAmountShort = (n: number, measure: Measure) => (measure === "cost" ? dollars(n) : short(n));

/** fillDays returns all days of a period that ends today in UTC. Days without usage are zero. */
export function fillDays(items: Total[], days: number): { day: string; spent?: Total }[] {
  const at = new Map(items.map((i) => [i.day, i]));
  const today = Date.now();
  return Array.from({ length: days }, (_, i) => {
    const day = new Date(today - (days - 1 - i) * 86_400_000).toISOString().slice(0, 10);
    return { day, spent: at.get(day) };
  });
}

/** dayName formats a day. */
export const dayName = (day: string) =>
  new Date(day + "T00:00:00Z").toLocaleDateString(language.value, { month: "short", day: "numeric", timeZone: "UTC" });
