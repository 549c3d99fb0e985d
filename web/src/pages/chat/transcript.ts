import type { Schema } from "../../shared/api/client";

/** An event of a conversation. */
export type ChatEvent = Schema["ChatEvent"];
type Ask = Schema["ApprovalRequest"];
type Usage = Schema["SessionUsage"];

/** The state of a turn. `wait` has ended and needs the user. */
type State = "waiting" | "running" | "done" | "wait" | "cancelled" | "failed";

/** A message or command of the user, with everything that followed. */
export interface Turn {
  input: number;
  /** One of message, load, unload, compact and branch. */
  kind: string;
  /** The step after which the message asks to continue; undefined for the last one. */
  after?: number;
  /** The step that its first step follows on its branch, or 0. */
  parent: number;
  /** The numbers of its first and last step, or 0. */
  first: number;
  last: number;
  /** The numbers of the events of its steps, from the first step on. */
  events: number[];
  text: string;
  skill: string;
  images: readonly Schema["SessionImage"][];
  state: State;
  /** The reason of a failure. */
  error: string;
  said: string;
  begun?: string;
  ended?: string;
  items: Item[];
  usage?: Usage;
  model?: string;
  /** The result of a manual load. */
  loaded?: Schema["ChatLoaded"];
}

export type Item = Words | Call | Loaded | Unloaded | RetentionChange | Line | Question | Short;

/** Text or reasoning of the model. It grows while open. */
export interface Words {
  type: "answer" | "thought";
  key: number;
  text: string;
  open: boolean;
  /** The reason why the model stopped early. */
  stop?: string;
}

/** The state of a tool call. The result of `unknown` was never reported. */
export type CallState = "waiting" | "running" | "done" | "failed" | "denied" | "unknown";

export interface Call {
  type: "call";
  key: number;
  id: string;
  name: string;
  args: string;
  state: CallState;
  progress?: string;
  begun?: string;
  ended?: string;
  result?: Schema["SessionCallResult"];
  /** Whether a loaded skill represents it. */
  covered: boolean;
}

export interface Loaded {
  type: "loaded";
  key: number;
  load: Schema["SessionSkillLoad"];
}

export interface Unloaded {
  type: "unloaded";
  key: number;
  name: string;
  reason: string;
}

/** A skill whose lifetime the user set. */
export interface RetentionChange {
  type: "kept";
  key: number;
  name: string;
  /** One of pinned, once and "". */
  keep: string;
}

/** An event of the conversation itself. */
export interface Line {
  type: "notice" | "told" | "resumed" | "updated" | "restored";
  key: number;
  text: string;
  /** The kind of a notice that the page translates. */
  code?: string;
}

interface Question {
  type: "ask";
  key: number;
  ask: Ask;
  outcome?: string;
}

/** The summary of compacted messages. */
export interface Short {
  type: "compacted";
  key: number;
  text: string;
}

/** A conversation as shown. It is immutable: {@link follow} returns the next one. */
export interface Transcript {
  /** The number of the last applied event. */
  seq: number;
  /** The number of the last step. */
  step: number;
  /** The turns of all branches. */
  turns: readonly Turn[];
  /** The number of the last event that may change active skills, files or usage. */
  changed: number;
  /** The names of the skills in the last listing for the model. */
  offered: readonly string[];
}

export const blank: Transcript = { seq: 0, step: 0, turns: [], changed: 0, offered: [] };

/** runningTurn returns the running turn. */
export const runningTurn = (t: Transcript) => t.turns.find((turn) => turn.state === "running");

/** isBusy reports whether a turn is running or queued. */
export const isBusy = (t: Transcript) => t.turns.some((turn) => turn.state === "running" || turn.state === "waiting");

/**
 * follow applies events to a transcript. It skips events that were applied already. Unchanged turns
 * and items keep their identity.
 */
export function follow(was: Transcript, events: readonly ChatEvent[]): Transcript {
  const draft = new Draft(was);
  for (const e of events) if (e.seq > draft.seq) draft.take(e);
  return draft.seq === was.seq
    ? was
    : { seq: draft.seq, step: draft.step, turns: draft.turns, changed: draft.changed, offered: draft.offered };
}

class Draft {
  seq: number;
  step: number;
  changed: number;
  turns: Turn[];
  offered: readonly string[];
  private own = new Set<number>();

  constructor(was: Transcript) {
    this.seq = was.seq;
    this.step = was.step;
    this.changed = was.changed;
    this.turns = [...was.turns];
    this.offered = was.offered;
  }

  take(e: ChatEvent) {
    this.seq = e.seq;
    if (e.type === "said") {
      this.own.add(e.input!);
      this.turns.push({
        input: e.input!,
        kind: e.kind ?? "message",
        text: e.text ?? "",
        skill: e.skill ?? "",
        images: e.images ?? [],
        after: e.after,
        parent: e.after ?? this.step,
        first: 0,
        last: 0,
        events: [],
        state: "waiting",
        error: "",
        said: e.time,
        items: [],
      });
      return;
    }
    if (e.step) this.step = e.step.seq;
    if (e.answer) return this.settle(e.answer);
    const turn = this.turn(e.input);
    if (turn) this.happen(turn, e);
  }

  /** turn returns a mutable copy of the turn of an event. Requests do not name their turn. */
  private turn(input?: number): Turn | undefined {
    const at = this.turns.findLastIndex((t) => (input ? t.input === input : t.state === "running"));
    return at < 0 ? undefined : this.mine(at);
  }

  private mine(at: number): Turn {
    let turn = this.turns[at]!;
    if (!this.own.has(turn.input)) {
      turn = this.turns[at] = { ...turn, events: [...turn.events], items: [...turn.items] };
      this.own.add(turn.input);
    }
    return turn;
  }

  private settle(answer: Schema["ChatResolution"]) {
    for (let at = this.turns.length - 1; at >= 0; at--) {
      const i = this.turns[at]!.items.findLastIndex((item) => item.type === "ask" && item.ask.id === answer.id);
      if (i < 0) continue;
      const { items } = this.mine(at);
      items[i] = { ...(items[i] as Question), outcome: answer.outcome };
      return;
    }
  }

  private happen(turn: Turn, e: ChatEvent) {
    switch (e.type) {
      case "begun":
        turn.state = "running";
        turn.begun = e.time;
        break;
      case "resumed":
        turn.items = turn.items.filter((i) => !isOpen(i));
        turn.items.push({ type: "resumed", key: e.seq, text: "" });
        break;
      case "text":
      case "thinking":
        grow(turn, e.type === "text" ? "answer" : "thought", e);
        break;
      case "tool_progress":
        editCall(turn, e.call?.id, (c) => ({ ...c, progress: e.text }));
        break;
      case "notice":
        turn.items.push({ type: "notice", key: e.seq, text: e.text ?? "", code: e.code });
        break;
      case "ask":
        turn.items.push({ type: "ask", key: e.seq, ask: e.ask! });
        break;
      case "step":
        step(turn, e.step!, e.seq);
        this.offered = e.step?.begun?.skills ?? e.step?.notice?.skills ?? this.offered;
        this.changed = e.seq;
        break;
      case "ended":
        end(turn, e);
        this.changed = e.seq;
        break;
    }
  }
}

const isOpen = (i: Item): i is Words => (i.type === "answer" || i.type === "thought") && i.open;

/** upTo returns a turn without what follows one of its steps. */
export function upTo(turn: Turn, step: number): Turn {
  if (turn.last <= step) return turn;
  const seq = turn.events[step - turn.first]!;
  return { ...turn, last: step, items: turn.items.filter((i) => i.key < seq + 0.5) };
}

/** grow appends text to the open item. */
function grow(turn: Turn, type: Words["type"], e: ChatEvent) {
  const at = turn.items.findLastIndex((i) => i.type === type && isOpen(i));
  if (at < 0) turn.items.push({ type, key: e.seq, text: e.text ?? "", open: true });
  else turn.items[at] = { ...(turn.items[at] as Words), text: (turn.items[at] as Words).text + (e.text ?? "") };
}

function editCall(turn: Turn, id: string | undefined, edit: (c: Call) => Call) {
  const at = turn.items.findLastIndex((i) => i.type === "call" && i.id === id); // vendors reuse IDs
  if (at >= 0) turn.items[at] = edit(turn.items[at] as Call);
}

/** step applies a step of the stored transcript. */
function step(turn: Turn, s: Schema["SessionEvent"], seq: number) {
  turn.first ||= s.seq;
  turn.last = s.seq;
  turn.events.push(seq);
  if (turn.first === s.seq) turn.parent = s.branched && s.branched.after < s.seq ? s.branched.after : s.seq - 1;
  if (s.message?.role === "assistant") message(turn, s.message, seq);
  if (s.started) editCall(turn, s.started.call, (c) => ({ ...c, state: "running", begun: s.time }));
  if (s.result) {
    const result = s.result;
    const state = result.denied ? "denied" : result.error ? "failed" : "done";
    editCall(turn, result.call, (c) => ({
      ...c,
      state,
      result,
      progress: undefined,
      ended: s.time,
      covered: c.covered && state === "done",
    }));
  }
  if (s.loaded) {
    const at = turn.items.findLastIndex((i) => i.type === "call" && i.name === "load_skill" && i.state === "running");
    if (at >= 0 && !s.loaded.direct) turn.items[at] = { ...(turn.items[at] as Call), covered: true };
    turn.items.push({ type: "loaded", key: seq, load: s.loaded });
  }
  if (s.unloaded)
    turn.items.push({ type: "unloaded", key: seq, name: s.unloaded.skill.name, reason: s.unloaded.reason });
  if (s.used?.set) turn.items.push({ type: "kept", key: seq, name: s.used.skill.name, keep: s.used.keep ?? "" });
  if (s.updated)
    turn.items.push({ type: s.updated.restored ? "restored" : "updated", key: seq, text: s.updated.skill.name });
  if (s.notice) turn.items.push({ type: "told", key: seq, text: s.notice.text });
  if (s.compacted) {
    turn.items.push({ type: "compacted", key: seq, text: s.compacted.text });
    spend(turn, s.compacted.usage, s.compacted.model);
  }
}

/** The reasons that need no explanation. For a cut turn, the turn explains it. */
const plainEnds = ["end", "tools", "cut"];

/** message replaces the streamed text by the final message. */
function message(turn: Turn, m: Schema["SessionMessage"], seq: number) {
  const stop = m.stop && !plainEnds.includes(m.stop) ? m.stop : undefined;
  say(
    turn,
    "thought",
    (m.thinking ?? [])
      .map((t) => t.text ?? "")
      .filter(Boolean)
      .join("\n\n"),
    seq,
  );
  say(turn, "answer", m.text, seq, stop);
  (m.calls ?? []).forEach((c, i) =>
    turn.items.push({
      type: "call",
      key: seq + (i + 1) / 1000,
      id: c.id,
      name: c.name,
      args: c.arguments,
      state: "waiting",
      covered: false,
    }),
  );
  spend(turn, m.usage, m.model);
}

function say(turn: Turn, type: Words["type"], text: string, seq: number, stop?: string) {
  const at = turn.items.findIndex((i) => i.type === type && isOpen(i));
  if (at >= 0 && text) turn.items[at] = { ...(turn.items[at] as Words), text, open: false, stop };
  else if (at >= 0) turn.items.splice(at, 1);
  else if (text) turn.items.push({ type, key: type === "thought" ? seq - 0.5 : seq, text, open: false, stop });
}

function spend(turn: Turn, u?: Usage, model?: string) {
  turn.model = model || turn.model;
  if (!u || !(u.input || u.output || u.cache_read || u.cache_write)) return; // no tokens were reported
  const was = turn.usage ?? { input: 0, output: 0, cache_read: 0, cache_write: 0 };
  turn.usage = {
    input: was.input + u.input,
    output: was.output + u.output,
    cache_read: was.cache_read + u.cache_read,
    cache_write: was.cache_write + u.cache_write,
  };
}

function end(turn: Turn, e: ChatEvent) {
  turn.state = (e.reason as State) || "done";
  turn.error = e.text ?? "";
  turn.ended = e.time;
  turn.loaded = e.loaded;
  turn.items = turn.items.map((i) => {
    if (isOpen(i)) return { ...i, open: false };
    return i.type === "call" && (i.state === "running" || i.state === "waiting")
      ? { ...i, state: "unknown", ended: e.time }
      : i;
  });
}
