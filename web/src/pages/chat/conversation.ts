import { type Signal, signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { shownSession } from "../../features/approvals/requests";
import type { Schema } from "../../shared/api/client";
import { me } from "../../shared/api/me";
import { type Link, watch } from "./eventstream";
import { reload, sessionOf } from "./sessions";
import { blank, follow, isBusy, type Transcript } from "./transcript";
import { findTranscript, storeTranscript } from "./transcriptcache";

/** A conversation on the screen. */
export interface Conversation {
  id: string;
  transcript: Signal<Transcript>;
  link: Signal<Link>;
  /** Whether the earlier messages are loaded. */
  ready: Signal<boolean>;
}

/**
 * useConversation follows a conversation while it is shown. A conversation that was shown before
 * continues from its last event.
 */
export function useConversation(id: string): Conversation {
  const c = useMemo<Conversation>(() => {
    const known = findTranscript(id);
    return {
      id,
      transcript: signal(known ?? blank),
      link: signal<Link>({ state: "opening" }),
      ready: signal(known !== undefined),
    };
  }, [id]);
  useEffect(() => {
    let stop = () => {};
    let over = false;
    const begin = (mine: boolean) => {
      if (over) return;
      stop = watch({
        session: id,
        after: () => c.transcript.value.seq,
        attend: mine,
        idle: () => !isBusy(c.transcript.value),
        onLink: (link) => (c.link.value = link),
        onReady: () => (c.ready.value = true),
        onEvents: (events) => {
          const was = c.transcript.value;
          c.transcript.value = follow(was, events);
          storeTranscript(id, c.transcript.value);
          if (c.ready.value && (isBusy(was) !== isBusy(c.transcript.value) || events.some((e) => e.type === "title")))
            void reload(id).catch(() => {});
        },
      });
    };
    shownSession.value = id;
    void loadSession(id).then((s) => begin(!s || s.owner === me.value?.user.id));
    return () => {
      over = true;
      stop();
      if (shownSession.value === id) shownSession.value = undefined;
    };
  }, [c]);
  return c;
}

/** loadSession loads a conversation. If that fails, the stream reports the reason. */
async function loadSession(id: string): Promise<Schema["Session"] | undefined> {
  const known = sessionOf(id);
  if (known) return known;
  try {
    return await reload(id);
  } catch {
    return undefined;
  }
}
