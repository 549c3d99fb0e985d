import { useEffect, useRef, useState } from "preact/hooks";
import { api, away, got, Refusal, type Schema } from "../../shared/api/client";
import { asDraft, type Work } from "./draftstate";
import type { DraftFile } from "./files";

/** The hub's result for a draft, while the user types. */
export interface CheckResult<T> {
  /** The last result. It stays during the next request. */
  data?: T;
  /** The files of the last result. */
  of?: DraftFile[];
  error?: Error;
  /** Whether a request is running or scheduled. */
  busy: boolean;
}

/**
 * useCheck sends a request shortly after the last change, and cancels the earlier one. While the hub
 * is unreachable it keeps the last result and tries again.
 */
function useCheck<T>(
  work: Work,
  wait: number,
  ask: ((stop: AbortSignal) => Promise<T>) | undefined,
  deps: unknown[],
): CheckResult<T> {
  const [result, put] = useState<CheckResult<T>>({ busy: true });
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
  return result;
}

/** isLarge reports whether the draft takes long to send. Binary files are most of it. */
const isLarge = (files: DraftFile[]) =>
  files.reduce((n, f) => n + (f.base64?.length ?? f.text?.length ?? 0), 0) > 1 << 20;

/** isAway reports whether an error means that the hub is unreachable. */
export const isAway = (error: Error | undefined): boolean =>
  error !== undefined && (!(error instanceof Refusal) || [502, 503, 504].includes(error.problem.status));

/** useChecked checks the draft while it is edited. */
export function useChecked(work: Work): CheckResult<Schema["Checked"]> {
  const ask = (signal: AbortSignal) =>
    got(
      api.POST("/api/v1/drafts/check", { body: { ...asDraft(work, work.files), namespace: work.namespace }, signal }),
    );
  return useCheck(work, 500, ask, []);
}

/** useFound searches for each request, with the draft among the skills. */
export function useFound(work: Work, queries: string[]): CheckResult<Schema["DraftFound"][]> {
  const ask = async (signal: AbortSignal) =>
    (
      await got(
        api.POST("/api/v1/drafts/find", {
          body: { ...asDraft(work, work.files), namespace: work.namespace, queries },
          signal,
        }),
      )
    ).items;
  return useCheck(work, 700, queries.length ? ask : undefined, [queries.join("\n")]);
}
