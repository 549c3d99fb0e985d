import { createContext } from "preact";
import { useContext, useMemo } from "preact/hooks";
import { api, got, type Load, type Schema, useLoad } from "../../shared/api/client";
import { failed } from "../../shared/ui";
import type { Loaded } from "./loaded";

/** What the user has viewed of a version. */
export interface Viewed {
  viewed: Set<string>;
  setViewed: (path: string, viewed: boolean) => void;
  /** Whether the version has a file, and the user may mark it. */
  has: (path: string) => boolean;
  /** Why the viewed files could not be loaded. */
  error?: Error;
  again: () => void;
}

const Current = createContext<Viewed | undefined>(undefined);

export const ReviewProvider = Current.Provider;

export const useReview = () => useContext(Current)!;

/** mayComment reports whether the user takes part in the review of a skill. */
export const mayComment = (skill: Schema["SkillDetail"]) => skill.can.includes("skill.comment");

const pathOf = ({ skill, version }: Loaded) => ({ path: { skill: skill.id, version: String(version.number) } });

/** useStatus loads what a version needs and its history, again after each change of the version. */
export function useStatus(all: Loaded): Load<Schema["ReviewStatus"] | undefined> {
  return useLoad(
    async (signal) =>
      mayComment(all.skill)
        ? got(api.GET("/api/v1/skills/{skill}/versions/{version}/review", { params: pathOf(all), signal }))
        : undefined,
    [all],
  );
}

/** useViewed loads which files the user has viewed. */
export function useViewed(all: Loaded): Viewed {
  const may = mayComment(all.skill);
  const params = pathOf(all);
  const loaded = useLoad(
    async (signal) =>
      may ? (await got(api.GET("/api/v1/skills/{skill}/versions/{version}/viewed", { params, signal }))).paths : [],
    [all.skill.id, all.version.number, may],
  );
  return useMemo(() => {
    const viewed = new Set(loaded.data);
    const paths = new Set(all.manifest.files.map((f) => f.path));
    return {
      viewed,
      has: (path) => may && !loaded.error && paths.has(path),
      error: loaded.error,
      again: () => void loaded.again(),
      setViewed: (path, now) => {
        const next = new Set(viewed);
        if (now) next.add(path);
        else next.delete(path);
        loaded.set([...next]);
        void got(
          api.PUT("/api/v1/skills/{skill}/versions/{version}/viewed", { params, body: { path, viewed: now } }),
        ).catch((error: unknown) => {
          failed(error);
          void loaded.again();
        });
      },
    };
  }, [loaded.data, loaded.error, all, may]);
}
