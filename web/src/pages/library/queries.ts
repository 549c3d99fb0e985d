import { useEffect, useMemo, useRef } from "preact/hooks";
import type { Address } from "../../features/skills/skilladdress";
import { api, got, useLoad, type Load, type Schema } from "../../shared/api/client";
import { isStart, listQuery } from "./filter";

type Skill = Schema["Skill"];

/** The loaded pages of the library. */
export interface SkillList {
  skills: Skill[];
  /** The number of skills on all pages. */
  total: number;
  /** The numbers of skills without filters. */
  facets: Schema["SkillFacets"];
  /** The cursor of the next page. */
  next?: string;
  /** The sections of the start page, which has no list. */
  sections?: Schema["SkillSection"][];
}

/** The number of skills on a page. */
export const pageSize = 60;

/** The number of skills from which the library has a start page. Fewer are one short list. */
const leastForStart = 9;

const typingPause = 150;

/** useSkillList loads the skills that an address selects, or the start page. While the user types, it waits. */
export function useSkillList(at: Address): Load<SkillList> & { more: () => Promise<void> } {
  const query = listQuery(at);
  const start = isStart(at);
  const key = JSON.stringify([query, start]);
  const q = useRef(query.q);
  const list = useLoad(
    async (signal): Promise<SkillList> => {
      if (q.current !== query.q) await pause(typingPause);
      signal.throwIfAborted();
      q.current = query.q;
      if (start) {
        const { sections, total, facets } = await got(api.GET("/api/v1/skills/sections", { signal }));
        if (total >= leastForStart) return { sections, total, facets, skills: [] };
      }
      const page = await got(
        api.GET("/api/v1/skills", {
          signal,
          params: { query: { ...query, limit: pageSize, facets: true, uses: true } },
        }),
      );
      return { skills: page.items, total: page.total, facets: page.facets!, next: page.next };
    },
    [key],
  );
  const current = useRef(key);
  useEffect(() => void (current.current = key), [key]);
  const more = async () => {
    const before = list.data!;
    const page = await got(
      api.GET("/api/v1/skills", {
        params: { query: { ...query, limit: 2 * pageSize, after: before.next, uses: true } },
      }),
    );
    if (current.current !== key) return; // the user asked for something else meanwhile
    const known = new Set(before.skills.map((s) => s.id));
    const skills = [...before.skills, ...page.items.filter((s) => !known.has(s.id))];
    list.set({ ...before, skills, total: page.total, next: page.next });
  };
  return { ...list, more };
}

const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));

/** useDefaults loads the default skills of the user's conversations. */
export function useDefaults(): Set<string> {
  const chosen = useLoad((signal) => got(api.GET("/api/v1/defaults/choose", { signal })), []);
  return useMemo(() => new Set(chosen.data?.items.map((c) => c.skill_id)), [chosen.data]);
}
