import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { api, got, type Schema } from "../../shared/api/client";

export type Skill = Schema["Skill"];

/** A skill that a message can select. */
export interface Named {
  name: string;
  title: string;
  description: string;
  /** The namespace, "" for built-in skills. */
  namespace: string;
}

const many = 200;

/** The first 200 usable skills, and whether there are more. */
const skills = signal<{ items: Skill[]; more: boolean; at: number }>();

let loading: Promise<void> | undefined;

/** load loads the skills, once at a time. */
const load = () => (loading ??= get().finally(() => (loading = undefined)));

async function get() {
  const { items, next } = await got(api.GET("/api/v1/skills", { params: { query: { limit: many } } }));
  skills.value = { items, more: next !== undefined, at: Date.now() };
}

/** The newest usable skills of users. */
const newest = signal<Skill[]>();

/** useNewestSkills returns the newest usable skills of users once they are loaded. It works in large libraries too. */
export function useNewestSkills(): Skill[] | undefined {
  const known = skills.value;
  useEffect(() => {
    if (!known?.more) return;
    const query = { sort: "created" as const, limit: 10 };
    void got(api.GET("/api/v1/skills", { params: { query } })).then(
      ({ items }) => (newest.value = items),
      () => (newest.value = []),
    );
  }, [known]);
  return known && (known.more ? newest.value : known.items);
}

/** isSkill reports whether the user can use a skill of this name. In a large library it may ask the hub. */
export async function isSkill(name: string): Promise<boolean> {
  if (!skills.value) await load();
  const isIt = (s: Skill) => s.name === name;
  if (!skills.value?.more || skills.value.items.some(isIt)) return !!skills.value?.items.some(isIt);
  const query = { q: name, sort: "relevance" as const, limit: 100 };
  return (await got(api.GET("/api/v1/skills", { params: { query } }))).items.some(isIt);
}

/** useSkills returns the usable skills. They are reloaded after a minute. */
export function useSkills(): Skill[] | undefined {
  useEffect(() => {
    if (!skills.value || Date.now() - skills.value.at > 60_000) void load().catch(() => {});
  }, []);
  return skills.value?.items;
}

export const named = (s: Skill): Named => ({
  name: s.name,
  title: s.displayName || s.name,
  description: s.description,
  namespace: s.namespace,
});

/** matching returns the skills whose name starts with the word, then those that contain it. */
function matching(all: Named[], word: string): Named[] {
  const want = word.toLowerCase();
  const rank = (n: Named) => {
    const name = n.name.toLowerCase();
    const title = n.title.toLowerCase();
    if (name.startsWith(want) || title.startsWith(want)) return 0;
    if (name.includes(want) || title.includes(want)) return 1;
    return want.length > 1 && n.description.toLowerCase().includes(want) ? 2 : 3;
  };
  return all
    .map((n): [number, Named] => [rank(n), n])
    .filter(([r]) => r < 3)
    .sort(([a], [b]) => a - b)
    .map(([, n]) => n);
}

/** useMatching returns the skills that match a word. In a large library it also asks the hub. */
export function useMatching(word: string | undefined, builtIn: readonly string[]): Named[] {
  const [more, setMore] = useState<Skill[]>([]);
  const known = useSkills() ?? [];
  useEffect(() => {
    if (!word || !skills.value?.more) return;
    return later(250, async (signal) => {
      const { items } = await got(api.GET("/api/v1/skills", { params: { query: { q: word, limit: 20 } }, signal }));
      setMore(items);
    });
  }, [word]);
  if (word === undefined) return [];
  const all = new Map<string, Named>();
  for (const s of [...known, ...more]) if (!s.hidden && !all.has(s.name)) all.set(s.name, named(s));
  for (const name of builtIn) if (!all.has(name)) all.set(name, { name, title: name, description: "", namespace: "" });
  return matching([...all.values()], word);
}

/** useSuggestedSkills returns the skills that fit a text, best first. It omits weak matches. */
export function useSuggestedSkills(text: string, most = 3): Named[] {
  const [found, setFound] = useState<Named[]>([]);
  const query = text.trim().slice(0, 500);
  useEffect(() => {
    if (query.length < 4) return setFound([]);
    return later(350, async (signal) => {
      const { items } = await got(api.GET("/api/v1/search", { params: { query: { q: query, limit: most } }, signal }));
      setFound(items.filter((s) => !s.weak).map(named));
    });
  }, [query, most]);
  return found;
}

/** later runs a function after a pause, unless cancelled. Late results are dropped. */
function later(pause: number, act: (signal: AbortSignal) => Promise<void>): () => void {
  const stop = new AbortController();
  const timer = setTimeout(() => void act(stop.signal).catch(() => {}), pause);
  return () => {
    clearTimeout(timer);
    stop.abort();
  };
}
