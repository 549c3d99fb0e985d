/** The messages without a confirmed delivery, with their keys. */
const unsure = new Map<string, { text: string; key: string }>();

/**
 * keyFor returns the idempotency key of a message. A message that is sent again keeps its key, so
 * the hub accepts it once.
 */
export function keyFor(session: string, text: string): string {
  const before = unsure.get(session);
  if (before?.text === text) return before.key;
  const key = Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, "0")).join("");
  unsure.set(session, { text, key });
  return key;
}

/** clearRequestKey ends the current message, so that the same text is a new message. */
export const clearRequestKey = (session: string) => void unsure.delete(session);
