import { signal } from "@preact/signals";
import { away, reachable } from "../../shared/api/client";

/** An unsent message. */
export interface Draft {
  text: string;
  /** The name of the selected skill. */
  skill?: string;
  /** The attached files. */
  files: File[];
  /** Whether it is being sent, or waits until the hub can be reached. */
  state?: "sending" | "waiting";
}

export const empty: Draft = { text: "", files: [] };

/** The drafts by conversation, "" for a new one. They last as long as the page. */
const drafts = signal<Record<string, Draft>>({});

export const draftOf = (id: string): Draft => drafts.value[id] ?? empty;

export function keepDraft(id: string, draft: Draft) {
  drafts.value = { ...drafts.value, [id]: draft };
}

/** changeDraft changes parts of a draft. */
export const changeDraft = (id: string, more: Partial<Draft>) => keepDraft(id, { ...draftOf(id), ...more });

/**
 * deliver sends the draft of a conversation and empties it. If the hub cannot be reached, the draft
 * waits and is sent as it is by then, unless its state is cleared meanwhile.
 */
export async function deliver(id: string, send: (draft: Draft) => Promise<void>) {
  for (;;) {
    changeDraft(id, { state: "sending" });
    try {
      await send(draftOf(id));
      return keepDraft(id, empty);
    } catch (error) {
      const state = away.value ? "waiting" : undefined;
      changeDraft(id, { state });
      if (!state) throw error;
    }
    await reachable(() => !draftOf(id).state);
    if (!draftOf(id).state) return;
  }
}
