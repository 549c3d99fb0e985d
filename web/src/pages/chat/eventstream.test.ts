import { same, test, until } from "../../../test/units/check";
import { api } from "../../shared/api/client";
import { type Link, watch } from "./eventstream";
import type { ChatEvent } from "./transcript";

type Answer = { items?: Partial<ChatEvent>[]; next?: string; status?: number; lost?: boolean };

/** follow watches a conversation whose history the hub answers with these pages, and then streams nothing. */
function follow(...answers: Answer[]) {
  const asked: string[] = [];
  const sent: string[] = [];
  const hub = {
    onRequest({ request, schemaPath }: { request: Request; schemaPath: string }) {
      if (schemaPath !== "/api/v1/sessions/{session}/history") {
        sent.push(schemaPath);
        return Response.json({});
      }
      asked.push(new URL(request.url).searchParams.get("after")!);
      const { status = 200, lost, ...page } = answers.shift()!;
      if (lost) throw new TypeError("connection lost");
      return Response.json(status === 200 ? page : { status, code: "x", title: "No", detail: "no" }, { status });
    },
  };
  api.use(hub);
  const streams: string[] = [];
  const real = window.EventSource;
  window.EventSource = class extends EventTarget {
    constructor(url: string) {
      super();
      streams.push(new URL(url, location.origin).searchParams.get("after")!);
    }
    close() {}
  } as never;
  const events: number[] = [];
  const links: Link[] = [];
  let ready = 0;
  const stop = watch({
    session: "s",
    after: () => 0,
    attend: true,
    idle: () => false,
    onEvents: (all) => events.push(...all.map((e) => e.seq)),
    onReady: () => ready++,
    onLink: (link) => links.push(link),
  });
  const end = () => {
    stop();
    api.eject(hub);
    window.EventSource = real;
  };
  return { asked, sent, streams, events, links, readies: () => ready, end };
}

const event = (seq: number, more: object = {}) => ({ seq, type: "notice", ...more }) as Partial<ChatEvent>;

test("history: all pages are read, each event is passed once, and the stream continues after the last one", async () => {
  const f = follow({ items: [event(1), event(2)], next: "2" }, { items: [event(3)] });
  await until(() => f.streams.length, "the stream");
  same([f.asked, f.events, f.readies(), f.streams], [["0", "2"], [1, 2, 3], 1, ["3"]]);
  f.end();
});

test("history: after an interruption it goes on with the next page, and is complete only after the last one", async () => {
  for (const interruption of [{ lost: true }, { status: 503 }, { status: 401 }]) {
    const f = follow({ items: [event(1), event(2)], next: "2" }, interruption, { items: [event(3)] });
    await until(() => f.links.some((l) => l.state === "again"), "the interruption");
    same([f.readies(), f.streams.length], [0, 0]);
    await until(() => f.streams.length, "the stream");
    same([f.asked, f.events, f.readies(), f.streams], [["0", "2", "2"], [1, 2, 3], 1, ["3"]]);
    f.end();
  }
});

test("history: a conversation that is gone is given up", async () => {
  const f = follow({ items: [event(1)], next: "1" }, { status: 404 });
  const over = await until(() => f.links.find((l) => l.state === "over"), "the end");
  same([over.problem?.status, f.events, f.readies(), f.streams], [404, [1], 0, []]);
  f.end();
});

test("history: a page action whose answer is on a later page does not run again", async () => {
  const ask = { id: "a1", kind: "action", payload: { action: "none" } };
  const f = follow(
    { items: [event(1, { type: "ask", ask })], next: "1" },
    { lost: true }, // so that the next page comes later
    { items: [event(2, { type: "answered", answer: { id: "a1" } })] },
  );
  await until(() => f.streams.length, "the stream");
  same(f.sent, []);
  f.end();
});
