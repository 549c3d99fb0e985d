import { signal } from "@preact/signals";

/** An unsent message. */
export interface Draft {
  text: string;
  /** The name of the selected skill. */
  skill?: string;
  /** The attached files. */
  files: File[];
}

export const empty: Draft = { text: "", files: [] };

/** The drafts by conversation, "" for a new one. They last as long as the page. */
const drafts = signal<Record<string, Draft>>({});

export const draftOf = (id: string): Draft => drafts.value[id] ?? empty;

export function keepDraft(id: string, draft: Draft) {
  drafts.value = { ...drafts.value, [id]: draft };
}
