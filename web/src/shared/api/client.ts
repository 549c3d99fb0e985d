import { computed, signal } from "@preact/signals";
import createClient from "openapi-fetch";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { msg } from "../i18n/messages";
import { loadProblemPatterns, translateProblem } from "../servertext";
import type { components, paths } from "./schema";

/** The API schemas by name: `Schema["Skill"]`. */
export type Schema = components["schemas"];

/**
 * The client of the public API, typed by its OpenAPI document: `api.GET("/api/v1/skills", {params:
 * {query: {q}}})`.
 */
export const api = createClient<paths>({ baseUrl: location.origin });

/** Whether the hub requires a sign-in. The shell then shows it. */
export const signedOut = signal(false);

/** Whether the hub is unreachable. The shell then says so. */
export const away = signal(false);

api.use({
  async onResponse({ response, request }) {
    away.value = isAway(response.status, response.status === 503 ? await codeOf(response) : undefined);
    // the password form shows its own error, and meet first loads the ways to sign in
    if (response.status === 401 && !/\/(login|password|me)$/.test(request.url)) signedOut.value = true;
  },
  onError({ error }) {
    if ((error as Error).name === "AbortError") return;
    away.value = true;
    return new Unreachable();
  },
});

/**
 * isAway reports whether a response means that the hub is unreachable. With the code "busy", the hub
 * only refused this request because of its load.
 */
const isAway = (status: number, code?: string) =>
  status === 502 || status === 504 || (status === 503 && code !== "busy");

/** codeOf returns the code of an error response. */
async function codeOf(response: Response): Promise<string | undefined> {
  const problem = (await response
    .clone()
    .json()
    .catch(() => undefined)) as Schema["Problem"] | undefined;
  return problem?.code;
}

/** The error of a request that got no response. */
export class Unreachable extends Error {
  // Translated whenever it is read.
  override get message() {
    return msg("ui.unreachable");
  }
}

/** reachable waits until the hub can be reached, or until given reports true. */
export const reachable = (given: () => boolean) =>
  new Promise<void>((resolve) => {
    const stop = computed(() => !away.value || given()).subscribe((now) => {
      if (!now) return;
      queueMicrotask(() => stop()); // subscribe may not have returned yet
      resolve();
    });
  });

/** An error response of the hub. */
export class Refusal extends Error {
  constructor(
    readonly problem: Schema["Problem"],
    /** The seconds until another attempt can succeed, if the hub says so. */
    readonly wait?: number,
  ) {
    super();
  }

  // Translated whenever it is read.
  override get message() {
    return translateProblem(this.problem).detail || this.problem.title;
  }
}

/** isUnreachable reports whether an error means that the request did not reach the hub, or its response was lost. */
export const isUnreachable = (error: unknown) =>
  error instanceof Unreachable || (error instanceof Refusal && isAway(error.problem.status, error.problem.code));

type Answer<T> = { data?: T; error?: unknown; response: Response };

/** got returns the data of a response, or throws a Refusal: `await got(api.GET(...))`. */
export async function got<T>(answer: Promise<Answer<T>>): Promise<T> {
  const { data, error, response } = await answer;
  if (response.ok) return data as T;
  await loadProblemPatterns();
  const wait = response.headers.get("Retry-After");
  throw refusal(response.status, error, wait && /^\d+$/.test(wait) ? Number(wait) : undefined);
}

/** refusal creates a Refusal from a status and a body. */
export function refusal(status: number, body: unknown, wait?: number): Refusal {
  const problem = body as Schema["Problem"] | undefined;
  if (problem && typeof problem === "object" && problem.code) return new Refusal(problem, wait);
  return new Refusal({
    status,
    code: "unknown",
    title: `status ${status}`,
    detail: typeof body === "string" && body ? body : `the hub returned status ${status}`,
  });
}

/** The state of a request. */
export interface Load<T> {
  /** The last response. It stays during the next request. */
  data?: T;
  error?: Error;
  /** Whether a request is running. */
  busy: boolean;
  /** Sends the request again. */
  again: () => Promise<void>;
  /** Replaces the data without a request. */
  set: (data: T) => void;
  /** Changes the data as it is now, if there is any, without a request. */
  change: (f: (data: T) => T) => void;
}

/**
 * useLoad sends a request when a component is drawn, and again when deps change, or when the hub
 * can be reached again after a failure. It drops responses to older requests.
 */
export function useLoad<T>(ask: (stop: AbortSignal) => Promise<T>, deps: unknown[]): Load<T> {
  const [state, put] = useState<{ data?: T; error?: Error; busy: boolean }>({ busy: true });
  const current = useRef<AbortController>(undefined);
  const lost = useRef(false); // whether the last request did not reach the hub
  const again = useCallback(async () => {
    current.current?.abort();
    const mine = (current.current = new AbortController());
    lost.current = false;
    put((was) => ({ ...was, busy: true }));
    try {
      const data = await ask(mine.signal);
      if (!mine.signal.aborted) put({ data, busy: false });
    } catch (error) {
      if (mine.signal.aborted) return;
      lost.current = away.value;
      put((was) => ({ data: was.data, error: error as Error, busy: false }));
    }
  }, deps);
  useEffect(() => {
    void again();
    return () => current.current?.abort();
  }, [again]);
  useEffect(() => {
    if (!away.value && lost.current) void again();
  }, [away.value]);
  const set = useCallback((data: T) => put({ data, busy: false }), []);
  const change = useCallback(
    (f: (data: T) => T) => put((was) => (was.data === undefined ? was : { ...was, data: f(was.data) })),
    [],
  );
  return { ...state, again, set, change };
}

/** A list with pages. */
export interface Pages<T> extends Load<T[]> {
  /** Loads the next page, if there is one. */
  more?: () => Promise<void>;
}

/** usePages loads a list page by page. `ask` gets the cursor of the page. */
export function usePages<T>(
  ask: (after: string | undefined, stop: AbortSignal) => Promise<{ items: T[]; next?: string }>,
  deps: unknown[],
): Pages<T> {
  const [next, setNext] = useState<string>();
  const asked = useRef<AbortSignal>(undefined); // the request that produced the list
  const first = useLoad(async (stop) => {
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
    if (!page || stop.aborted) return; // another list was requested meanwhile
    setNext(page.next);
    first.set([...(first.data ?? []), ...page.items]);
  };
  return { ...first, more: next ? more : undefined };
}
