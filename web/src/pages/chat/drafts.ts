import { signal } from "@preact/signals";
import { isUnreachable, reachable, type Schema } from "../../shared/api/client";
import { me } from "../../shared/api/me";
import { msg } from "../../shared/i18n/messages";
import { failed } from "../../shared/ui/notify";

/** An unsent message. */
export interface Draft {
  text: string;
  /** The name of the selected skill. */
  skill?: string;
  /** The attached files. */
  files: File[];
  /** Images of an earlier message, which are sent again. */
  images?: Schema["MessageImage"][];
  /** The agent of a new conversation. */
  agent?: string;
  /** The ID of the chosen model of a new conversation. */
  model?: string;
  /** Whether it is being sent, or waits until the hub can be reached. Nothing else changes meanwhile. */
  state?: "sending" | "waiting";
}

export const empty: Draft = { text: "", files: [] };

/** The drafts by conversation, "" for a new one. Texts are also stored until the tab is closed; files are not. */
const drafts = signal<Record<string, Draft>>({});

/** The drafts as they were stored when the page was loaded, by the name of their storage. */
const restored: Record<string, Draft> = {};

const storageName = (id: string) => `loadout.message.${me.value?.user.id}.${id}`;

export const draftOf = (id: string): Draft => drafts.value[id] ?? (restored[storageName(id)] ??= restore(id));

function restore(id: string): Draft {
  try {
    return { ...empty, ...(JSON.parse(sessionStorage.getItem(storageName(id)) ?? "{}") as Partial<Draft>) };
  } catch {
    return empty;
  }
}

export function keepDraft(id: string, draft: Draft) {
  drafts.value = { ...drafts.value, [id]: draft };
  try {
    const { text, skill, agent, model } = draft;
    if (text) sessionStorage.setItem(storageName(id), JSON.stringify({ text, skill, agent, model }));
    else sessionStorage.removeItem(storageName(id));
  } catch {
    // The browser refuses storage: the text lasts as long as the page.
  }
}

/** changeDraft changes parts of a draft. If it is being sent or waits, it stays, and the user is told so. */
export function changeDraft(id: string, more: Partial<Draft>) {
  const draft = draftOf(id);
  if (draft.state) failed(new Error(msg("chat.notChanged")));
  else keepDraft(id, { ...draft, ...more });
}

/** cancelDraft ends the wait of a draft, which can then be changed. */
export const cancelDraft = (id: string) => keepDraft(id, { ...draftOf(id), state: undefined });

/** How often a message is sent without a response. */
const attempts = 3;

/**
 * deliver sends the draft of a conversation and empties it. If the hub cannot be reached, the draft
 * waits until it can, and is sent again.
 */
export async function deliver(id: string, send: (draft: Draft) => Promise<void>) {
  const draft = draftOf(id);
  for (let attempt = 1; ; attempt++) {
    keepDraft(id, { ...draft, state: "sending" });
    try {
      await send(draft);
      return keepDraft(id, empty);
    } catch (error) {
      if (isUnreachable(error) && attempt < attempts) keepDraft(id, { ...draft, state: "waiting" });
      else {
        keepDraft(id, draft);
        throw isUnreachable(error) ? new Error(msg("chat.notSent")) : error;
      }
    }
    await reachable(() => !draftOf(id).state);
    if (!draftOf(id).state) return;
  }
}
