import { holds, same, test } from "../../../test/units/check";
import { type Call, blank, follow, isBusy, type ChatEvent, type Transcript } from "./transcript";

const time = (seq: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, seq)).toISOString();

/** numbered numbers events and adds times, as the hub does. */
const numbered = (...events: Partial<ChatEvent>[]): ChatEvent[] =>
  events.map((e, i) => ({ seq: i + 1, time: time(i + 1), type: "step", ...e }));

const step = (input: number, s: Partial<NonNullable<ChatEvent["step"]>>): Partial<ChatEvent> => ({
  type: "step",
  input,
  step: { seq: 1, time: time(1), type: "message", ...s },
});
const answer = (text: string, more = {}) => ({
  message: {
    role: "assistant",
    text,
    usage: { input: 10, output: 2, cache_read: 0, cache_write: 0 },
    model: "m",
    ...more,
  },
});

/** A turn with reasoning, a tool call, a load, a request, an interruption and an end. */
const whole = numbered(
  { type: "said", input: 1, kind: "message", text: "hello" },
  { type: "begun", input: 1 },
  { type: "thinking", input: 1, text: "I " },
  { type: "thinking", input: 1, text: "see" },
  { type: "text", input: 1, text: "I loo" },
  step(
    1,
    answer("I look.", {
      thinking: [{ vendor: "v", text: "I see" }],
      calls: [
        { id: "a", name: "load_skill", arguments: "{}" },
        { id: "b", name: "run_command", arguments: "{}" },
      ],
    }),
  ),
  step(1, { started: { call: "a" } }),
  step(1, { loaded: { skill: { name: "tides", origin: "mine", dir: "tides" }, digest: "d", text: "t", tokens: 5 } }),
  step(1, { result: { call: "a", text: "loaded" } }),
  {
    type: "ask",
    ask: {
      id: "q",
      kind: "approval",
      session: "s",
      principal: { id: "ada", kind: "person" },
      message: "may it?",
      asked: time(9),
    },
  },
  { type: "said", input: 2, kind: "message", text: "and then?" },
  { type: "answered", answer: { id: "q", outcome: "declined" } },
  step(1, { result: { call: "b", text: "no", denied: true } }),
  { type: "text", input: 1, text: "half a" },
  { type: "resumed", input: 1 },
  { type: "text", input: 1, text: "All" },
  step(1, answer("All done.")),
  { type: "ended", input: 1, reason: "done" },
  { type: "ended", input: 2, reason: "cancelled" },
);

const shape = (t: Transcript) =>
  t.turns.map((turn) => [
    turn.state,
    ...turn.items.map((i) =>
      "text" in i
        ? `${i.type}: ${i.text}`
        : i.type === "call"
          ? `${i.name} ${i.state}${i.covered ? " covered" : ""}`
          : i.type === "ask"
            ? `ask ${i.outcome}`
            : i.type,
    ),
  ]);

test("a transcript contains messages, calls and answers", () => {
  const t = follow(blank, whole);
  same(shape(t), [
    [
      "done",
      "thought: I see",
      "answer: I look.",
      "load_skill done covered",
      "run_command denied",
      "loaded",
      "ask declined",
      "resumed: ",
      "answer: All done.",
    ],
    ["cancelled"],
  ]);
  same(t.turns[0]!.usage, { input: 20, output: 4, cache_read: 0, cache_write: 0 });
  holds(!isBusy(t), "nothing is under way");
});

test("a transcript does not depend on the order or repetition of events", () => {
  const all = follow(blank, whole);
  for (let size = 1; size < whole.length; size++) {
    let t = blank;
    for (let at = 0; at < whole.length; at += size) {
      t = follow(t, whole.slice(at, at + size));
      t = follow(t, whole.slice(Math.max(0, at - 3), at + size)); // as after a broken stream
    }
    same(t, all, `in pieces of ${size}`);
  }
});

test("unchanged parts keep their identity, so that they are not rendered again", () => {
  const before = follow(blank, whole.slice(0, 13));
  const after = follow(before, whole.slice(13, 14));
  holds(before.turns[1] === after.turns[1], "the turn that waits is the same");
  holds(before.turns[0] !== after.turns[0], "the turn that went on is another");
  holds(before.turns[0]!.items[0] === after.turns[0]!.items[0], "its first item is the same");
  same(shape(before), shape(follow(blank, whole.slice(0, 13))), "what was made is not changed");
  holds(follow(after, whole.slice(0, 14)) === after, "what is known changes nothing");
});

test("a reused call id refers to the last call", () => {
  const call = { calls: [{ id: "x", name: "read_file", arguments: "{}" }] };
  const t = follow(
    blank,
    numbered(
      { type: "said", input: 1, kind: "message", text: "a" },
      { type: "begun", input: 1 },
      step(1, answer("", call)),
      step(1, { result: { call: "x", text: "one" } }),
      step(1, answer("", call)),
      step(1, { result: { call: "x", text: "two", error: true } }),
    ),
  );
  same(
    t.turns[0]!.items.map((i) => [(i as Call).state, (i as Call).result?.text]),
    [
      ["done", "one"],
      ["failed", "two"],
    ],
  );
});

test("a call without a result at the end of the turn is marked unknown", () => {
  const t = follow(
    blank,
    numbered(
      { type: "said", input: 1, kind: "message", text: "a" },
      { type: "begun", input: 1 },
      step(1, answer("", { calls: [{ id: "x", name: "read_file", arguments: "{}" }] })),
      step(1, { started: { call: "x" } }),
      { type: "ended", input: 1, reason: "failed", text: "the model is away" },
    ),
  );
  same(shape(t), [["failed", "read_file unknown"]]);
  same(t.turns[0]!.error, "the model is away");
});
