import { createContext } from "preact";
import { useContext, useEffect, useMemo, useState } from "preact/hooks";
import { api, got, type Schema, useLoad } from "../../shared/api/client";
import type { Loaded } from "./loaded";

export type Thread = Schema["CommentThread"];

/** A location for a comment. Without a path it is the whole version, without a line the whole file. */
export interface Place {
  path?: string;
  /** The version that has the line, if another one than the reviewed one. */
  base?: number;
  line?: number;
}

/** The comments on a version, and how to change them. */
export interface Discussion {
  threads: Thread[];
  /** Whether the user may comment. */
  may: boolean;
  /** Where the user writes a new comment, if not below the version. */
  target?: Place;
  setTarget: (place?: Place) => void;
  add: (place: Place, text: string) => Promise<void>;
  reply: (thread: Thread, text: string) => Promise<void>;
  edit: (comment: string, text: string) => Promise<void>;
  remove: (comment: string) => Promise<void>;
  resolve: (thread: Thread, resolved: boolean) => Promise<void>;
}

const Current = createContext<Discussion | undefined>(undefined);

export const DiscussionProvider = Current.Provider;

export const useDiscussion = () => useContext(Current)!;

/** samePlace reports whether two locations are the same. */
export const samePlace = (a: Place | undefined, b: Place) =>
  !!a && a.path === b.path && (a.base ?? 0) === (b.base ?? 0) && (a.line ?? 0) === (b.line ?? 0);

/** useNewDiscussion loads the comments on a version. changed is called after each change. */
export function useNewDiscussion({ skill, version }: Loaded, changed: () => void): Discussion {
  const may = skill.can.includes("skill.comment");
  const path = { skill: skill.id, version: String(version.number) };
  const loaded = useLoad(
    async (signal) =>
      may
        ? (await got(api.GET("/api/v1/skills/{skill}/versions/{version}/comments", { params: { path }, signal }))).items
        : [],
    [skill.id, version.number, may],
  );
  const [target, setTarget] = useState<Place>();
  useEffect(() => setTarget(undefined), [skill.id, version.number]);
  const threads = loaded.data ?? none;
  const put = async (changing: Promise<Thread>) => {
    const thread = await changing;
    const old = threads.find((t) => t.id === thread.id);
    // A thread of an earlier version keeps the line that it has in this one.
    const next = old ? { ...old, comments: thread.comments, resolvedBy: thread.resolvedBy } : thread;
    loaded.set(old ? threads.map((t) => (t === old ? next : t)) : [...threads, thread]);
    changed();
  };
  const post = async (number: number, body: Schema["NewComment"]) => {
    const made = await got(
      api.POST("/api/v1/skills/{skill}/versions/{version}/comments", {
        params: { path: { skill: skill.id, version: String(number) } },
        body,
      }),
    );
    return made.thread;
  };
  const of = (comment: string) => ({ params: { path: { skill: skill.id, comment } } });
  return useMemo(
    () => ({
      threads,
      may,
      target,
      setTarget,
      add: (place, text) => put(post(version.number, { ...place, digest: version.digest, text })),
      reply: (thread, text) => put(post(thread.version, { thread: thread.id, text })),
      edit: (comment, text) =>
        put(got(api.PATCH("/api/v1/skills/{skill}/comments/{comment}", { ...of(comment), body: { text } }))),
      remove: async (comment) => {
        await got(api.DELETE("/api/v1/skills/{skill}/comments/{comment}", of(comment)));
        await loaded.again();
        changed();
      },
      resolve: (thread, resolved) =>
        put(
          got(api.PUT("/api/v1/skills/{skill}/comments/{comment}/resolved", { ...of(thread.id), body: { resolved } })),
        ),
    }),
    [threads, may, target, skill.id, version.number],
  );
}

const none: Thread[] = [];
