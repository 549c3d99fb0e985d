import { useEffect, useRef, useState } from "preact/hooks";
import { api, away, got, Refusal, type Schema } from "../api/client";
import type { DraftFile } from "./files";
import { asDraft, type Work } from "./work";

/** What the hub says of something that is written, while it is written. */
export interface Said<T> {
  /** What was said last; it stays while it is asked again. */
  data?: T;
  /** The files that it was said of. */
  of?: DraftFile[];
  error?: Error;
  /** Whether an answer is awaited, or about to be asked for. */
  busy: boolean;
}

/**
 * Asks a moment after the last change, and breaks off what was asked before. While the hub
 * is away it keeps what was said last, and asks again when it is back.
 */
function useSaid<T>(work: Work, wait: number, ask: ((stop: AbortSignal) => Promise<T>) | undefined, deps: unknown[]): Said<T> {
  const [said, put] = useState<Said<T>>({ busy: true });
  const first = useRef(true);
  useEffect(() => {
    if (!ask) return put((was) => ({ ...was, busy: false }));
    const stop = new AbortController();
    put((was) => ({ ...was, busy: true }));
    const run = async () => {
      first.current = false;
      try {
        const data = await ask(stop.signal);
        if (!stop.signal.aborted) put({ data, of: work.files, busy: false });
      } catch (error) {
        if (!stop.signal.aborted) put((was) => ({ data: was.data, of: was.of, error: error as Error, busy: false }));
      }
    };
    const timer = setTimeout(() => void run(), first.current ? 0 : isLarge(work.files) ? 4 * wait : wait);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [work.files, work.namespace, away.value, ...deps]);
  return said;
}

/** Whether sending files takes a while: those that are no text are most of it. */
const isLarge = (files: DraftFile[]) => files.reduce((n, f) => n + (f.base64?.length ?? f.text?.length ?? 0), 0) > 1 << 20;

/** Whether an error says that the hub cannot be reached, and not that it refuses. */
export const isAway = (error: Error | undefined): boolean => error !== undefined && (!(error instanceof Refusal) || [502, 503, 504].includes(error.problem.status));

/** What there is to know of the draft, told anew while it is written. */
export function useChecked(work: Work): Said<Schema["Checked"]> {
  const ask = (signal: AbortSignal) => got(api.POST("/api/v1/drafts/check", { body: { ...asDraft(work, work.files), namespace: work.namespace }, signal }));
  return useSaid(work, 500, ask, []);
}

/** What a search finds with the draft among the skills, for each request. */
export function useFound(work: Work, queries: string[]): Said<Schema["DraftFound"][]> {
  const ask = async (signal: AbortSignal) => (await got(api.POST("/api/v1/drafts/find", { body: { ...asDraft(work, work.files), namespace: work.namespace, queries }, signal }))).items;
  return useSaid(work, 700, queries.length ? ask : undefined, [queries.join("\n")]);
}
