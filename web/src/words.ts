import { signal } from "@preact/signals";

/** The languages that the page speaks. */
export type Language = "en" | "zh";

const key = "loadout.language";

function first(): Language {
  const chosen = stored(key);
  if (chosen === "en" || chosen === "zh") return chosen;
  return navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en";
}

/** What the page speaks now. Whoever reads it in a component is drawn again on a change. */
export const language = signal<Language>(first());

/** Speak another language from now on, also after a reload. */
export function speak(to: Language) {
  language.value = to;
  store(key, to);
  tellLanguage();
}

/** Have the document say which language it is in, for screen readers and fonts. */
export function tellLanguage() {
  document.documentElement.lang = language.value === "zh" ? "zh-Hans" : "en";
}

/**
 * The texts of a part of the page in both languages: `const w = words({...}, {...})`, and
 * `w().title` where it is drawn. The compiler sees to it that both have the same texts.
 * A text with something in it is a function: `loaded: (n: number) => plural(n, "skill")`.
 */
export function words<T extends object>(en: T, zh: T): () => T {
  return () => (language.value === "zh" ? zh : en);
}

/** "1 skill", "2 skills". Chinese has no plural. */
export function plural(n: number, one: string, many = one + "s"): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}

const locale = () => (language.value === "zh" ? "zh-CN" : "en");

/** 12345 as 12,345. */
export const count = (n: number) => n.toLocaleString(locale());

/** 12345 as 12K, where little room is. */
export const short = (n: number) => n.toLocaleString(locale(), { notation: "compact", maximumFractionDigits: 1 });

/** Bytes as 1.2 kB. */
export function size(bytes: number): string {
  const units = ["B", "kB", "MB", "GB"];
  let i = 0;
  for (; bytes >= 1000 && i < units.length - 1; i++) bytes /= 1000;
  return `${bytes.toLocaleString(locale(), { maximumFractionDigits: bytes < 10 && i ? 1 : 0 })} ${units[i]}`;
}

/** A moment in full, as titles say it. */
export const moment = (time: string | Date) => new Date(time).toLocaleString(locale(), { dateStyle: "medium", timeStyle: "short" });

/** How long ago a moment was, in words. */
export function ago(time: string | Date, now = Date.now()): string {
  const seconds = (new Date(time).getTime() - now) / 1000;
  const format = new Intl.RelativeTimeFormat(locale(), { numeric: "auto" });
  const steps: [number, Intl.RelativeTimeFormatUnit][] = [[60, "second"], [60, "minute"], [24, "hour"], [30, "day"], [12, "month"], [Infinity, "year"]];
  let n = seconds;
  for (const [many, unit] of steps) {
    if (Math.abs(n) < many || unit === "year") return format.format(unit === "second" ? Math.trunc(n / 10) * 10 : Math.trunc(n), unit);
    n /= many;
  }
  return "";
}

/** What was kept in this browser, or null; storage may be refused. */
export function stored(name: string): string | null {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

/** Keep something in this browser, where it lets us; null forgets it. */
export function store(name: string, value: string | null) {
  try {
    if (value === null) localStorage.removeItem(name);
    else localStorage.setItem(name, value);
  } catch {
    // then it is good until the page is closed
  }
}
