import { createContext } from "preact";
import { useContext, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { api, got, type Schema, useLoad } from "../../shared/api/client";
import { type Drafts, draftsOf, keyOf } from "./drafts";
import type { Loaded } from "./loaded";
import { type Position, threadOfHash } from "./position";
import { openOf, type Thread, withComments, withEdited, withoutComment, withResolved } from "./threads";

export type { Thread } from "./threads";

/** The comments on a version, and how to change them. */
export interface Discussion {
  threads: Thread[];
  /** The threads that nobody resolved. */
  open: Thread[];
  /** Returns the threads at a location. */
  at: (position: Position) => Thread[];
  /** Why the threads are not loaded. */
  error?: Error;
  /** Loads the threads again. */
  again: () => Promise<void>;
  /** Whether the user may comment. */
  may: boolean;
  drafts: Drafts;
  /** The thread to go to. */
  wanted?: string;
  want: (thread?: string) => void;
  /** The resolved threads that the user opened. */
  expanded: Set<string>;
  add: (position: Position, text: string) => Promise<void>;
  reply: (thread: Thread, text: string) => Promise<void>;
  edit: (comment: string, text: string) => Promise<void>;
  remove: (comment: string) => Promise<void>;
  resolve: (thread: Thread, resolved: boolean) => Promise<void>;
}

const Current = createContext<Discussion | undefined>(undefined);

export const DiscussionProvider = Current.Provider;

export const useDiscussion = () => useContext(Current)!;

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
  const { data, error, again, change } = loaded;
  const [wanted, want] = useWanted(`${skill.id}/${version.number}`);
  const deleted = useRef(new Set<string>());
  const expanded = useRef(new Set<string>());
  const threads = data ?? none;
  const put = async (f: (now: Thread[]) => Thread[]) => {
    change(f);
    changed();
    if (!data) await again();
  };
  const post = async (number: number, body: Schema["NewComment"]) => {
    const made = await got(
      api.POST("/api/v1/skills/{skill}/versions/{version}/comments", {
        params: { path: { skill: skill.id, version: String(number) } },
        body,
      }),
    );
    await put((now) => withComments(now, made.thread, deleted.current));
  };
  const of = (comment: string) => ({ params: { path: { skill: skill.id, comment } } });
  return useMemo(() => {
    const byPosition = new Map<string, Thread[]>();
    for (const t of threads) byPosition.set(keyOf(t), [...(byPosition.get(keyOf(t)) ?? []), t]);
    return {
      threads,
      open: openOf(threads),
      at: (position) => byPosition.get(keyOf(position)) ?? none,
      error,
      again,
      may,
      drafts: draftsOf(skill.id, version.number),
      wanted,
      want,
      expanded: expanded.current,
      add: (position, text) => post(version.number, { ...position, digest: version.digest, text }),
      reply: (thread, text) => post(thread.version, { thread: thread.id, text }),
      edit: async (comment, text) => {
        const answer = await got(
          api.PATCH("/api/v1/skills/{skill}/comments/{comment}", { ...of(comment), body: { text } }),
        );
        await put((now) => withEdited(now, answer, comment));
      },
      remove: async (comment) => {
        await got(api.DELETE("/api/v1/skills/{skill}/comments/{comment}", of(comment)));
        deleted.current.add(comment);
        await put((now) => withoutComment(now, comment));
      },
      resolve: async (thread, resolved) => {
        const answer = await got(
          api.PUT("/api/v1/skills/{skill}/comments/{comment}/resolved", { ...of(thread.id), body: { resolved } }),
        );
        await put((now) => withResolved(now, answer));
      },
    };
  }, [data, error, may, wanted, skill.id, version.number]);
}

/** useWanted returns the thread that the address names until it is shown, and a function to go to another one. */
function useWanted(version: string): [string | undefined, (thread?: string) => void] {
  const [wanted, want] = useState(threadOfHash);
  useEffect(() => {
    const read = () => want(threadOfHash());
    read();
    addEventListener("hashchange", read);
    return () => removeEventListener("hashchange", read);
  }, [version]);
  return [wanted, want];
}

const none: Thread[] = [];
