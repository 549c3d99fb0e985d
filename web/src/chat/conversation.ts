import { type Signal, signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { api, got, type Schema } from "../api/client";
import { me } from "../api/me";
import { shownSession } from "../asks/waiting";
import { put, refreshSessions, rename, sessionOf, titleFrom } from "./sessions";
import { blank, follow, isBusy, type Transcript } from "./transcript";
import { type Link, watch } from "./watch";

/** A conversation that is on the screen. */
export interface Conversation {
  id: string;
  transcript: Signal<Transcript>;
  link: Signal<Link>;
  /** Whether what was said before is there. */
  ready: Signal<boolean>;
}

const kept = new Map<string, Transcript>();
const most = 8;

function keep(id: string, t: Transcript) {
  kept.delete(id);
  kept.set(id, t);
  if (kept.size > most) kept.delete(kept.keys().next().value!);
}

/** A conversation, heard as long as it is drawn. One that was drawn before goes on where it was. */
export function useConversation(id: string): Conversation {
  const c = useMemo<Conversation>(() => {
    const known = kept.get(id);
    return { id, transcript: signal(known ?? blank), link: signal<Link>({ state: "opening" }), ready: signal(known !== undefined) };
  }, [id]);
  useEffect(() => {
    let quiet = 0;
    let stop = () => {};
    let over = false;
    const settle = () => {
      clearTimeout(quiet);
      quiet = window.setTimeout(() => (c.ready.value = true), 150); // nothing says that all was told; a pause does
    };
    const begin = (mine: boolean) => {
      if (over) return;
      stop = watch({
        session: id,
        after: () => c.transcript.value.seq,
        attend: mine,
        idle: () => !isBusy(c.transcript.value),
        onLink: (link) => {
          c.link.value = link;
          if (link.state === "live") settle();
        },
        onEvents: (events) => {
          const was = c.transcript.value;
          c.transcript.value = follow(was, events);
          keep(id, c.transcript.value);
          if (!c.ready.value) settle();
          else if (isBusy(was) !== isBusy(c.transcript.value)) void refreshSessions().catch(() => {});
        },
      });
    };
    shownSession.value = id;
    void meet(id).then((s) => begin(!s || s.owner === me.value?.user.id));
    return () => {
      over = true;
      clearTimeout(quiet);
      stop();
      if (shownSession.value === id) shownSession.value = undefined;
    };
  }, [c]);
  useTitled(c);
  return c;
}

/** Finds out whose conversation it is; where that is not to be had the stream says why. */
async function meet(id: string): Promise<Schema["Session"] | undefined> {
  const known = sessionOf(id);
  if (known) return known;
  try {
    const session = await got(api.GET("/api/v1/sessions/{session}", { params: { path: { session: id } } }));
    put(session);
    return session;
  } catch {
    return undefined;
  }
}

/** Gives a conversation without a title one, from what was said first. */
function useTitled(c: Conversation) {
  const session = sessionOf(c.id);
  const said = c.transcript.value.turns.find((t) => t.kind === "message" && t.text)?.text;
  const wanted = session && !session.title && session.owner === me.value?.user.id && said ? titleFrom(said) : "";
  useEffect(() => {
    if (wanted) void rename(c.id, wanted).catch(() => {});
  }, [c, wanted]);
}

/** Forgets what was kept of a conversation that is deleted. */
export const forget = (id: string) => kept.delete(id);
