import { h, render } from "preact";
import { same, test } from "../../../test/units/check";
import { type Branch, currentBranch, newestWith, useBranch } from "./branches";
import { blank, type ChatEvent, follow, type Transcript } from "./transcript";

/** talk makes the events of turns: [kind, text, after], with a step for the message and one for the answer. */
class Talk {
  private events: ChatEvent[] = [];
  private step = 0;
  private input = 0;

  private add(e: Partial<ChatEvent>) {
    this.events.push({ seq: this.events.length + 1, time: "2026-01-01T00:00:00Z", type: "step", ...e } as ChatEvent);
  }
  private note(s: object) {
    this.add({ input: this.input, step: { seq: ++this.step, time: "", type: "", ...s } as ChatEvent["step"] });
  }
  wait(text: string, after?: number) {
    this.add({ type: "said", input: ++this.input, kind: "message", text, after });
    return this;
  }
  begin(kind: string, text: string, after?: number) {
    this.add({ type: "said", input: ++this.input, kind, text, after });
    this.add({ type: "begun", input: this.input });
    if (after !== undefined && after !== this.step) this.note({ branched: { after } });
    return this;
  }
  end(reason = "done") {
    this.add({ type: "ended", input: this.input, reason });
    return this;
  }
  stream(text: string) {
    this.add({ type: "text", input: this.input, text });
    return this;
  }
  call(text: string) {
    this.begin("message", text);
    this.note({ message: { role: "user", text } });
    this.note({ message: { role: "assistant", text: "wait", calls: [{ id: "x", name: "list", arguments: "{}" }] } });
    this.note({ result: { call: "x", text: "none" } });
    this.stream("none ").stream("here");
    this.note({ message: { role: "assistant", text: "none here" } });
    return this.end();
  }
  say(text: string, after?: number) {
    this.begin("message", text, after);
    this.note({ message: { role: "user", text } });
    this.note({ message: { role: "assistant", text: `to ${text}` } });
    return this.end();
  }
  load(name: string) {
    this.begin("load", name);
    this.note({ loaded: { skill: { name, origin: "", dir: "" }, direct: true } });
    return this.end();
  }
  choose(after: number) {
    return this.begin("branch", "", after).end();
  }
  tell(text: string) {
    this.add({ type: "notice", input: this.input, text });
    return this;
  }
  get transcript(): Transcript {
    return follow(blank, this.events);
  }
}

const turns = (talk: Talk) => currentBranch(talk.transcript).turns.map((t) => t.text);

const versions = (talk: Talk) =>
  [...currentBranch(talk.transcript).versions].map(([input, all]) => [input, all.map((v) => [v.turn.text, v.last])]);

test("branches: a conversation without branches has one version of each message", () => {
  const talk = new Talk().say("a").load("tides").say("b").wait("c");
  same(turns(talk), ["a", "tides", "b", "c"]);
  same(versions(talk), []);
});

test("branches: an edited message replaces the message and what follows, until it is chosen again", () => {
  const talk = new Talk().say("a").say("b").say("c").say("B", 2);
  same(turns(talk), ["a", "B"]);
  const both = [
    ["b", 6],
    ["B", 9],
  ];
  same(versions(talk), [
    [2, both],
    [4, both],
  ]);
  talk.choose(6);
  same(turns(talk), ["a", "b", "c"]);
  talk.say("d");
  same(turns(talk), ["a", "b", "c", "d"]);
  same(versions(talk)[0]![1], [
    ["b", 12],
    ["B", 9],
  ]);
  talk.say("A", 0);
  same(turns(talk), ["A"]);
});

test("branches: the choice of a version is shown only if it failed or has a notice", () => {
  const kinds = (talk: Talk) => currentBranch(talk.transcript).turns.map((t) => t.kind);
  const talk = () => new Talk().say("a").say("b").say("B", 2).begin("branch", "", 4);
  same(kinds(talk().end()), ["message", "message"]);
  same(kinds(talk().end("failed")), ["message", "message", "branch"]);
  const noticed = talk().tell("files are missing").end();
  same(kinds(noticed), ["message", "message", "branch"]);
  same(kinds(noticed.say("c")), ["message", "message", "branch", "message"]);
});

test("branches: commands before a message do not hide its versions", () => {
  const talk = new Talk().say("a").load("tides").say("b").say("B", 2);
  same(turns(talk), ["a", "B"]);
  same(versions(talk).length, 2);
  talk.choose(5);
  same(turns(talk), ["a", "tides", "b"]);
});

test("branches: a message that waits is shown where it will be", () => {
  const talk = new Talk().say("a").say("b").say("c").wait("B", 2);
  same(turns(talk), ["a", "B"]);
  talk.end("cancelled");
  same(turns(talk), ["a", "B", "b", "c"]);
  talk.begin("message", "C", 4);
  same(turns(talk), ["a", "B", "b", "C"]);
});

test("branches: the newest branch with a step is found", () => {
  const talk = new Talk().say("a").say("b").say("c").say("B", 2);
  const { transcript } = talk;
  same(
    [1, 3, 6, 8, 9, 10, 0].map((step) => newestWith(transcript, step)),
    [9, 6, 6, 9, 9, 0, 0],
  );
  same(newestWith(talk.choose(4).transcript, 3), 10);
  same(newestWith(talk.transcript, 6), 6);
});

test("branches: hostile steps do not loop", () => {
  const talk = new Talk().say("a").begin("message", "b", 999).end();
  same(turns(talk).at(-1), "b");
});

test("branches: a turn in which the branch ends is shown up to there, and again as a whole", () => {
  const items = (talk: Talk) => currentBranch(talk.transcript).turns.map((t) => t.items.map((i) => i.type));
  const all = [["answer"], ["answer", "call", "answer"]];
  const talk = new Talk().say("a").call("b");
  same(items(talk), all);
  same(items(talk.choose(5)), [["answer"], ["answer", "call"]]);
  same(items(talk.say("c")), [["answer"], ["answer", "call"], ["answer"]]);
  same(items(talk.choose(6)), all);
});

test("branches: streamed text changes the turn, and the branch is not followed again", () => {
  const seen: Branch[] = [];
  const Probe = ({ t }: { t: Transcript }) => {
    seen.push(useBranch(t));
    return null;
  };
  const box = document.createElement("div");
  const talk = new Talk().say("a").say("b").begin("message", "B", 2);
  render(h(Probe, { t: talk.transcript }), box);
  for (const word of ["one ", "two ", "three"]) render(h(Probe, { t: talk.stream(word).transcript }), box);
  const { turns, versions } = seen.at(-1)!;
  same(
    turns.map((turn) => [turn.text, turn.items.map((i) => "text" in i && i.text)]),
    [
      ["a", ["to a"]],
      ["B", ["one two three"]],
    ],
  );
  same(versions.size, 2);
  same(new Set(seen.map((b) => b.versions)).size, 1, "trees");
  render(h(Probe, { t: talk.end().transcript }), box);
  same(new Set(seen.map((b) => b.versions)).size, 2, "trees");
  render(null, box);
});
