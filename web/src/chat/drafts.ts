import { signal } from "@preact/signals";

/** What is written and not sent yet. */
export interface Draft {
  text: string;
  /** The skill that is to be used for it, by its name. */
  skill?: string;
  /** Files that go with it. */
  files: File[];
}

export const empty: Draft = { text: "", files: [] };

/** By conversation, "" for one that is not begun; as long as the page is open. */
const drafts = signal<Record<string, Draft>>({});

export const draftOf = (id: string): Draft => drafts.value[id] ?? empty;

export function keepDraft(id: string, draft: Draft) {
  drafts.value = { ...drafts.value, [id]: draft };
}
