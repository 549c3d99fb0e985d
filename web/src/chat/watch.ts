import { api, type Schema } from "../api/client";
import { handleEvent } from "../asks/events";
import type { Told } from "./transcript";

/** How a conversation is connected with the hub. */
export interface Link {
  /** `again` is broken and tried again; `over` is not tried any more. */
  state: "opening" | "live" | "again" | "over";
  /** Why it is not live. */
  problem?: Pick<Schema["Problem"], "status" | "detail" | "next">;
  /** Whether the hub said good-bye, as when it is started again. */
  bye?: boolean;
}

interface Watching {
  session: string;
  /** The number of the last event that is known. */
  after: () => number;
  /** Whether the page carries out what skills ask it to do. */
  attend: boolean;
  /** Whether nothing is expected, so that a page that nobody sees needs no connection. */
  idle: () => boolean;
  onEvents: (events: Told[]) => void;
  onLink: (link: Link) => void;
}

const types = ["said", "begun", "resumed", "ended", "step", "text", "thinking", "tool_call", "tool_progress", "notice", "ask", "answered"];

const firstWait = 300;
const longestWait = 10_000;
const unseen = 60_000; // after which a page that nobody sees lets go: browsers have few connections
const slept = 90_000; // browsers let timers of pages that nobody sees run once a minute

/**
 * Hears what is told of a conversation until it is ended. Whatever breaks the stream, it goes on after the last event
 * that came, so that nothing is lost and nothing is told twice.
 */
export function watch(w: Watching): () => void {
  const stop = new AbortController();
  let source: EventSource | undefined;
  let timer = 0;
  let wait = firstWait;
  let last = w.after();
  let batch: Told[] = [];
  let due = 0;

  const flush = () => {
    clearTimeout(due);
    due = 0;
    const events = batch;
    batch = [];
    if (events.length) w.onEvents(events);
  };
  const close = () => {
    clearTimeout(timer);
    source?.close();
    source = undefined;
  };
  const over = (problem: Link["problem"]) => {
    close();
    flush();
    w.onLink({ state: "over", problem });
  };
  const retry = (link: Partial<Link> = {}) => {
    close();
    flush();
    w.onLink({ state: "again", ...link });
    timer = window.setTimeout(open, wait * (0.75 + Math.random() / 2));
    wait = Math.min(wait * 2, longestWait);
  };
  const take = (e: Told) => {
    if (e.seq <= last) return;
    if (e.seq > last + 1) return retry(); // a gap: it is told again from there
    last = e.seq;
    if (e.ask || e.answer) handleEvent(w.session, e);
    batch.push(e);
    due ||= window.setTimeout(flush, 16);
  };
  const broken = async (opened: boolean) => {
    retry();
    const problem = opened ? undefined : await whyNot(w.session, stop.signal);
    if (problem && !stop.signal.aborted) over(problem);
  };

  function open() {
    close();
    if (stop.signal.aborted) return;
    const mine = (source = new EventSource(`/api/v1/sessions/${encodeURIComponent(w.session)}/events?follow=true&attend=${w.attend}&after=${last}`));
    let opened = false;
    mine.onopen = () => {
      opened = true;
      wait = firstWait;
      w.onLink({ state: "live" });
    };
    mine.onerror = () => mine === source && void broken(opened);
    for (const type of types) mine.addEventListener(type, (e) => mine === source && take(JSON.parse((e as MessageEvent<string>).data) as Told));
    mine.addEventListener("bye", () => mine === source && retry({ bye: true }));
    mine.addEventListener("problem", (e) => {
      if (mine !== source) return;
      const problem = JSON.parse((e as MessageEvent<string>).data) as Schema["Problem"];
      if (problem.status >= 500 || problem.status === 429) retry({ problem });
      else over(problem);
    });
  }

  const reopen = () => {
    wait = firstWait;
    open();
  };
  whenAwake(stop.signal, { reopen, letGo: () => w.idle() && close(), isOpen: () => source !== undefined });
  w.onLink({ state: "opening" });
  open();
  return () => {
    stop.abort();
    close();
    clearTimeout(due);
  };
}

/** Why there is no stream of a conversation, where that is for good. */
async function whyNot(session: string, signal: AbortSignal): Promise<Link["problem"] | undefined> {
  try {
    const { error, response } = await api.GET("/api/v1/sessions/{session}", { params: { path: { session } }, signal });
    if (response.ok || response.status >= 500 || response.status === 429) return undefined;
    return { status: response.status, detail: error?.detail ?? "", next: error?.next };
  } catch {
    return undefined; // the hub cannot be reached now
  }
}

/** Opens anew after the machine slept, the network changed, or the page came back; lets go while nobody looks. */
function whenAwake(signal: AbortSignal, { reopen, letGo, isOpen }: { reopen: () => void; letGo: () => void; isOpen: () => boolean }) {
  let tick = Date.now();
  let away = 0;
  const beat = setInterval(() => {
    const now = Date.now();
    if (now - tick > slept) reopen();
    else if (away && now - away > unseen) letGo();
    tick = now;
  }, 5000);
  signal.addEventListener("abort", () => clearInterval(beat));
  const seen = () => {
    const hidden = document.visibilityState === "hidden";
    if (!hidden && (!isOpen() || (away && Date.now() - away > unseen))) reopen();
    away = hidden ? Date.now() : 0;
  };
  document.addEventListener("visibilitychange", seen, { signal });
  addEventListener("pageshow", (e) => e.persisted && reopen(), { signal });
  addEventListener("online", reopen, { signal });
}
