import type { Transcript } from "./transcript";

const kept = new Map<string, Transcript>();
const most = 8;

/** cached returns the transcript of a conversation that was shown before. */
export const cached = (id: string) => kept.get(id);

/** keep keeps the transcripts of the last conversations. */
export function keep(id: string, t: Transcript) {
  kept.delete(id);
  kept.set(id, t);
  if (kept.size > most) kept.delete(kept.keys().next().value!);
}

/** forget drops the transcript of a deleted conversation. */
export const forget = (id: string) => kept.delete(id);
