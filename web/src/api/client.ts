import { signal } from "@preact/signals";
import createClient from "openapi-fetch";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { toldProblem } from "../told";
import type { components, paths } from "./schema";

/** The schemas of the API by name: `Schema["Skill"]`. */
export type Schema = components["schemas"];

/** The public API, typed by /openapi.json: `api.GET("/api/v1/skills", {params: {query: {q}}})`. */
export const api = createClient<paths>({ baseUrl: location.origin });

/** Is set while the hub says that nobody is signed in; the shell shows the sign-in then. */
export const signedOut = signal(false);

/** Is set while the hub cannot be reached; the shell says so until it can. */
export const away = signal(false);

api.use({
  async onResponse({ response, request }) {
    away.value = response.status === 502 || response.status === 504 || (response.status === 503 && !(await isBusy(response)));
    // A wrong password is said where it was typed.
    if (response.status === 401 && !/\/(login|password)$/.test(request.url)) signedOut.value = true;
  },
  onError({ error }) {
    if ((error as Error).name !== "AbortError") away.value = true;
  },
});

/** Whether a hub that is there has too much to do for this one request. */
async function isBusy(response: Response): Promise<boolean> {
  const problem = (await response.clone().json().catch(() => undefined)) as Schema["Problem"] | undefined;
  return problem?.code === "busy";
}

/** An answer that is no success, as the hub says it. */
export class Refusal extends Error {
  constructor(readonly problem: Schema["Problem"]) {
    super();
    // In the language that the page speaks when it is read.
    Object.defineProperty(this, "message", { get: () => toldProblem(problem).detail || problem.title });
  }
}

type Answer<T> = { data?: T; error?: unknown; response: Response };

/** What was answered, or a Refusal is thrown: `await got(api.GET(...))`. */
export async function got<T>(answer: Promise<Answer<T>>): Promise<T> {
  const { data, error, response } = await answer;
  if (response.ok) return data as T;
  throw refusal(response.status, error);
}

/** The Refusal of a status and a body. */
export function refusal(status: number, body: unknown): Refusal {
  const problem = body as Schema["Problem"] | undefined;
  if (problem && typeof problem === "object" && problem.code) return new Refusal(problem);
  return new Refusal({ status, code: "unknown", title: `status ${status}`, detail: typeof body === "string" && body ? body : `the hub answered with status ${status}` });
}

/** What is known of something that is asked of the hub. */
export interface Asked<T> {
  /** What was answered last; it stays while it is asked again. */
  data?: T;
  error?: Error;
  /** Whether an answer is awaited. */
  busy: boolean;
  /** Ask again. */
  again: () => Promise<void>;
  /** Put what is known already in place of the answer. */
  set: (data: T) => void;
}

/**
 * Ask for something when a component is drawn, and again when one of deps changes. What
 * is answered to an older question is thrown away.
 */
export function useAsked<T>(ask: (stop: AbortSignal) => Promise<T>, deps: unknown[]): Asked<T> {
  const [state, put] = useState<{ data?: T; error?: Error; busy: boolean }>({ busy: true });
  const current = useRef<AbortController>(undefined);
  const again = useCallback(async () => {
    current.current?.abort();
    const mine = (current.current = new AbortController());
    put((was) => ({ ...was, busy: true }));
    try {
      const data = await ask(mine.signal);
      if (!mine.signal.aborted) put({ data, busy: false });
    } catch (error) {
      if (!mine.signal.aborted) put((was) => ({ data: was.data, error: error as Error, busy: false }));
    }
  }, deps);
  useEffect(() => {
    void again();
    return () => current.current?.abort();
  }, [again]);
  const set = useCallback((data: T) => put({ data, busy: false }), []);
  return { ...state, again, set };
}

/** A list that comes in pages. */
export interface Pages<T> extends Asked<T[]> {
  /** Get the next page, where there is one. */
  more?: () => Promise<void>;
}

/** A list page by page: ask gets what `next` of the page before said. */
export function usePages<T>(ask: (after: string | undefined, stop: AbortSignal) => Promise<{ items: T[]; next?: string }>, deps: unknown[]): Pages<T> {
  const [next, setNext] = useState<string>();
  const asked = useRef<AbortSignal>(undefined); // what the list is the answer to
  const first = useAsked(async (stop) => {
    asked.current = stop;
    const page = await ask(undefined, stop);
    if (!stop.aborted) setNext(page.next);
    return page.items;
  }, deps);
  const more = async () => {
    const stop = asked.current!;
    const page = await ask(next, stop).catch((error: unknown) => {
      if (!stop.aborted) throw error;
    });
    if (!page || stop.aborted) return; // another list was asked for meanwhile
    setNext(page.next);
    first.set([...(first.data ?? []), ...page.items]);
  };
  return { ...first, more: next ? more : undefined };
}
