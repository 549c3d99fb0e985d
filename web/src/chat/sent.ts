/** What was sent to conversations and not accepted as far as is known, with its key. */
const unsure = new Map<string, { said: string; key: string }>();

/** The key of a message: the same when it is sent again, as the answer was lost, so that the hub has it once. */
export function keyFor(session: string, said: string): string {
  const before = unsure.get(session);
  if (before?.said === said) return before.key;
  const key = Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, "0")).join("");
  unsure.set(session, { said, key });
  return key;
}

/** What is sent to a conversation next is another message, also where it says the same. */
export const accepted = (session: string) => void unsure.delete(session);
