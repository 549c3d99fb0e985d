import type { Transcript } from "./transcript";

const cache = new Map<string, Transcript>();
const most = 8;

/** findTranscript returns the transcript of a conversation that was shown before. */
export const findTranscript = (id: string) => cache.get(id);

/** storeTranscript keeps the transcripts of the last conversations. */
export function storeTranscript(id: string, t: Transcript) {
  cache.delete(id);
  cache.set(id, t);
  if (cache.size > most) cache.delete(cache.keys().next().value!);
}

/** removeTranscript drops the transcript of a deleted conversation. */
export const removeTranscript = (id: string) => cache.delete(id);
