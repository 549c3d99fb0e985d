import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { api, got, type Schema } from "../api/client";

type Skill = Schema["Skill"];

/** A skill that can be named. */
export interface Named {
  name: string;
  title: string;
  description: string;
  /** Where it is at home; "" is built in. */
  namespace: string;
}

const many = 200;

/** The skills that can be used, the first 200 of them, and whether there are more. */
const skills = signal<{ items: Skill[]; more: boolean; at: number }>();

async function get() {
  const { items, next } = await got(api.GET("/api/v1/skills", { params: { query: { limit: many } } }));
  skills.value = { items, more: next !== undefined, at: Date.now() };
}

/** The skills that can be used, as far as they are known. They are got again after a minute. */
export function useSkills(): Skill[] | undefined {
  useEffect(() => {
    if (!skills.value || Date.now() - skills.value.at > 60_000) void get().catch(() => {});
  }, []);
  return skills.value?.items;
}

export const named = (s: Skill): Named => ({ name: s.name, title: s.displayName || s.name, description: s.description, namespace: s.namespace });

/** Those whose name begins with what is written first, then those that have it anywhere. */
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

/** The skills that begin with a word or have it; of a large library also those that only the hub knows. */
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

/** The skills that fit what is being written, the best first. */
export function useFitting(text: string, most = 3): Named[] {
  const [found, setFound] = useState<Named[]>([]);
  const query = text.trim().slice(0, 500);
  useEffect(() => {
    if (query.length < 4) return setFound([]);
    return later(350, async (signal) => {
      const { items } = await got(api.GET("/api/v1/search", { params: { query: { q: query, limit: most } }, signal }));
      setFound(items.map(named));
    });
  }, [query, most]);
  return found;
}

/** Does something after a pause, unless it is taken back before; what comes too late counts no more. */
function later(pause: number, act: (signal: AbortSignal) => Promise<void>): () => void {
  const stop = new AbortController();
  const timer = setTimeout(() => void act(stop.signal).catch(() => {}), pause);
  return () => {
    clearTimeout(timer);
    stop.abort();
  };
}
