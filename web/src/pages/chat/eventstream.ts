import { handleEvent } from "../../features/approvals/events";
import { api, got, Refusal, type Schema } from "../../shared/api/client";
import type { ChatEvent } from "./transcript";

/** The connection of a conversation to the hub. */
export interface Link {
  /** `again` means reconnecting, `over` means it was given up. */
  state: "opening" | "live" | "again" | "over";
  /** The reason why it is not live. */
  problem?: Pick<Schema["Problem"], "status" | "detail" | "next">;
  /** Whether the hub announced a restart. */
  bye?: boolean;
}

interface Watching {
  session: string;
  /** Returns the number of the last known event. */
  after: () => number;
  /** Whether this page runs the page actions of skills. */
  attend: boolean;
  /** Reports whether no events are expected, so that a hidden page needs no connection. */
  idle: () => boolean;
  onEvents: (events: ChatEvent[]) => void;
  /** Reports that all earlier events were passed to onEvents. */
  onReady: () => void;
  onLink: (link: Link) => void;
}

const types = [
  "said",
  "begun",
  "resumed",
  "ended",
  "step",
  "text",
  "thinking",
  "tool_call",
  "tool_progress",
  "notice",
  "ask",
  "answered",
  "title",
];

const firstWait = 300;
const longestWait = 10_000;
const steady = 5000; // a stream that lasted this long is reopened at once
const unseen = 60_000; // a hidden page disconnects after this time, because browsers allow few connections
const slept = 90_000; // browsers run timers of hidden pages once a minute

/**
 * watch follows the events of a conversation until it is closed. After an interruption it continues
 * with the next event, so that none is lost or repeated.
 */
export function watch(w: Watching): () => void {
  const stream = new Heartbeat(w);
  whenAwake(stream.stop.signal, stream);
  w.onLink({ state: "opening" });
  stream.open();
  return () => stream.end();
}

class Heartbeat {
  readonly stop = new AbortController();
  private source?: EventSource;
  private reading?: AbortController;
  private complete: boolean; // whether the earlier events are known
  private last: number;
  private wait = firstWait;
  private since = 0; // when it was last open
  private timer = 0;
  private batch: ChatEvent[] = [];
  private requests: ChatEvent[] = []; // and answers, which are applied once all earlier events are known
  private due = 0;

  constructor(private w: Watching) {
    this.last = w.after();
    this.complete = this.last > 0;
  }

  get isOpen(): boolean {
    return this.source !== undefined || this.reading !== undefined;
  }

  open() {
    this.close();
    if (this.stop.signal.aborted) return;
    if (!this.complete) return void this.readEarlier();
    const mine = (this.source = new EventSource(
      `/api/v1/sessions/${encodeURIComponent(this.w.session)}/events?follow=true&attend=${this.w.attend}&after=${this.last}`,
    ));
    let opened = false;
    const hear = (type: string, f: (data: string) => void) =>
      mine.addEventListener(type, (e) => mine === this.source && f((e as MessageEvent<string>).data));
    mine.onopen = () => {
      opened = true;
      this.since = Date.now();
      this.w.onLink({ state: "live" });
    };
    mine.onerror = () => mine === this.source && void this.broken(opened);
    for (const type of types) hear(type, (data) => this.take(JSON.parse(data) as ChatEvent));
    hear("bye", () => this.retry({ bye: true }));
    hear("problem", (data) => this.refused(JSON.parse(data) as Schema["Problem"]));
  }

  /** readEarlier reads the earlier events, all at once because a stream of thousands takes seconds, and then follows. */
  private async readEarlier() {
    const reading = (this.reading = new AbortController());
    const { session, attend } = this.w;
    try {
      for (let next: string | undefined = String(this.last); next;) {
        const query: { after: string; attend: boolean } = { after: next, attend };
        const list: Schema["EventList"] = await got(
          api.GET("/api/v1/sessions/{session}/history", {
            params: { path: { session }, query },
            signal: reading.signal,
          }),
        );
        if (reading !== this.reading) return;
        for (const e of list.items) this.add(e);
        next = list.next;
      }
    } catch (e) {
      if (reading !== this.reading) return;
      return e instanceof Refusal ? this.refused(e.problem) : this.retry();
    }
    this.complete = true;
    this.flush();
    this.w.onReady();
    this.open();
  }

  reopen() {
    this.wait = firstWait;
    this.open();
  }

  /** letGo closes the connection while no events are expected. */
  letGo() {
    if (this.w.idle()) this.close();
  }

  end() {
    this.stop.abort();
    this.close();
    clearTimeout(this.due);
  }

  private close() {
    clearTimeout(this.timer);
    this.source?.close();
    this.source = undefined;
    this.reading?.abort();
    this.reading = undefined;
  }

  private take(e: ChatEvent) {
    if (e.seq <= this.last) return;
    if (e.seq > this.last + 1) return this.retry(); // events are missing, so reload from the last known one
    this.add(e);
    this.due ||= window.setTimeout(() => this.flush(), 16);
  }

  private add(e: ChatEvent) {
    this.last = e.seq;
    if (e.ask || e.answer) this.requests.push(e);
    this.batch.push(e);
  }

  private flush() {
    clearTimeout(this.due);
    this.due = 0;
    const events = this.batch;
    this.batch = [];
    if (events.length) this.w.onEvents(events);
    if (this.complete) for (const e of this.requests.splice(0)) handleEvent(this.w.session, e);
  }

  private retry(link: Partial<Link> = {}) {
    if (this.since && Date.now() - this.since > steady) this.wait = firstWait;
    this.since = 0;
    this.close();
    this.flush();
    this.w.onLink({ state: "again", ...link });
    this.timer = window.setTimeout(() => this.open(), this.wait * (0.75 + Math.random() / 2));
    this.wait = Math.min(this.wait * 2, longestWait);
  }

  private async broken(opened: boolean) {
    this.retry();
    const problem = opened ? undefined : await whyNot(this.w.session, this.stop.signal);
    if (problem && !this.stop.signal.aborted) this.over(problem);
  }

  private refused(problem: Schema["Problem"]) {
    // After 401 the browser may have another cookie. If not, the next attempt shows the sign-in.
    if (problem.status >= 500 || problem.status === 429 || problem.status === 401) this.retry({ problem });
    else this.over(problem);
  }

  private over(problem: Link["problem"]) {
    this.close();
    this.flush();
    this.w.onLink({ state: "over", problem });
  }
}

/** whyNot returns the reason why a conversation cannot be followed, if it is permanent. */
async function whyNot(session: string, signal: AbortSignal): Promise<Link["problem"] | undefined> {
  try {
    const { error, response } = await api.GET("/api/v1/sessions/{session}", { params: { path: { session } }, signal });
    if (response.ok || response.status >= 500 || response.status === 429) return undefined;
    return { status: response.status, detail: error?.detail ?? "", next: error?.next };
  } catch {
    return undefined; // The hub is unreachable.
  }
}

/**
 * whenAwake reconnects after sleep, a network change or a return to the page, and disconnects a
 * hidden page.
 */
function whenAwake(signal: AbortSignal, stream: Heartbeat) {
  let tick = Date.now();
  let hidden = 0; // the time the page was hidden
  const beat = setInterval(() => {
    const now = Date.now();
    if (now - tick > slept) stream.reopen();
    else if (hidden && now - hidden > unseen) stream.letGo();
    tick = now;
  }, 5000);
  signal.addEventListener("abort", () => clearInterval(beat));
  const seen = () => {
    const was = hidden;
    hidden = document.visibilityState === "hidden" ? Date.now() : 0;
    if (!hidden && (!stream.isOpen || (was && Date.now() - was > unseen))) stream.reopen();
  };
  document.addEventListener("visibilitychange", seen, { signal });
  addEventListener("pageshow", (e) => e.persisted && stream.reopen(), { signal });
  addEventListener("online", () => stream.reopen(), { signal });
}
