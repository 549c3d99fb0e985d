import { useEffect, useMemo, useState } from "preact/hooks";
import { api, got, useLoad, type Load, type Schema } from "../../shared/api/client";

type Skill = Schema["Skill"];

/** All skills of a namespace, so that filters and sorting are complete. */
export interface SkillList {
  skills: Skill[];
  /** Whether the list was cut at the limit. */
  more: boolean;
}

const page = 500;
const mostPages = 20;

type Page<T> = { items: T[]; next?: string };

/** allPages loads all pages of a list, up to a limit. */
async function allPages<T>(ask: (after?: string) => Promise<Page<T>>): Promise<{ items: T[]; more: boolean }> {
  const items: T[] = [];
  let after: string | undefined;
  for (let n = 0; n < mostPages; n++) {
    const got = await ask(after);
    items.push(...got.items);
    if (!(after = got.next)) return { items, more: false };
  }
  return { items, more: true };
}

const asked = (scope: string) => (scope ? [scope] : undefined);

/** useSkillList loads the skills of a namespace, or all visible skills. */
export function useSkillList(scope: string, hidden: boolean): Load<SkillList> {
  return useLoad(
    async (signal) => {
      const all = await allPages((after) =>
        got(
          api.GET("/api/v1/skills", {
            signal,
            params: { query: { limit: page, after, namespace: asked(scope), hidden } },
          }),
        ),
      );
      return { skills: all.items, more: all.more };
    },
    [scope, hidden],
  );
}

/** useHits searches shortly after the user stops typing. The result is undefined until then. */
export function useHits(q: string): { hits?: Skill[]; error?: Error } {
  const [found, put] = useState<{ q: string; hits?: Skill[]; error?: Error }>({ q: "" });
  useEffect(() => {
    if (!q) return;
    const stop = new AbortController();
    const wait = setTimeout(() => {
      got(api.GET("/api/v1/search", { signal: stop.signal, params: { query: { q, limit: 100 } } })).then(
        (answer) => put({ q, hits: answer.items }),
        (error: Error) => !stop.signal.aborted && put({ q, error }),
      );
    }, 150);
    return () => {
      clearTimeout(wait);
      stop.abort();
    };
  }, [q]);
  return q && found.q ? { hits: found.hits, error: found.q === q ? found.error : undefined } : {};
}

/** useUses loads the usage of skills, as far as the user may see it. */
export function useUses(): Map<string, number> {
  const uses = useLoad(
    (signal) =>
      allPages((after) => got(api.GET("/api/v1/usage", { signal, params: { query: { limit: page, after } } }))),
    [],
  );
  return useMemo(() => new Map(uses.data?.items.map((u) => [u.skill_id, u.loads + u.calls])), [uses.data]);
}

/** useUnused loads the unused skills when wanted. */
export function useUnused(wanted: boolean): Load<Set<string> | undefined> {
  return useLoad(
    async (signal) => {
      if (!wanted) return undefined;
      const all = await allPages((after) =>
        got(api.GET("/api/v1/usage/unused", { signal, params: { query: { limit: page, after } } })),
      );
      return new Set(all.items.map((s) => s.id));
    },
    [wanted],
  );
}

/** useDefaults loads the default skills of the user's conversations. */
export function useDefaults(): Set<string> {
  const chosen = useLoad((signal) => got(api.GET("/api/v1/defaults/choose", { signal })), []);
  return useMemo(() => new Set(chosen.data?.items.map((c) => c.skill_id)), [chosen.data]);
}
