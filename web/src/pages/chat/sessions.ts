import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { api, got, type Schema } from "../../shared/api/client";
import { failed } from "../../shared/ui";

export type Session = Schema["Session"];

/** The user's conversations, newest first, or undefined until loaded. */
export const sessions = signal<Session[]>();

/** The cursor of the next page. */
export const rest = signal<string>();

const page = 50;

const get = (after?: string) => got(api.GET("/api/v1/sessions", { params: { query: { limit: page, after } } }));

/** refreshSessions loads the newest conversations and keeps the older ones. */
export async function refreshSessions() {
  const { items, next } = await get();
  const oldest = items.at(-1)?.id;
  const older = next && oldest ? (sessions.value ?? []).filter((s) => s.id < oldest) : [];
  if (!older.length) rest.value = next;
  sessions.value = [...items, ...older];
}

export async function moreSessions() {
  const { items, next } = await get(rest.value);
  rest.value = next;
  const known = new Set(items.map((s) => s.id));
  sessions.value = [...(sessions.value ?? []).filter((s) => !known.has(s.id)), ...items];
}

/** sessionOf returns a loaded conversation. */
export const sessionOf = (id: string): Session | undefined =>
  sessions.value?.find((s) => s.id === id) ?? (aside.value?.id === id ? aside.value : undefined);

/** An open conversation that is not in the list, because it is old, temporary or another user's. */
const aside = signal<Session>();

/** put updates a conversation. */
export function put(session: Session) {
  const all = sessions.value ?? [];
  if (session.trial) aside.value = session;
  else if (all.some((s) => s.id === session.id)) sessions.value = all.map((s) => (s.id === session.id ? session : s));
  else if (sessions.value && (!all[0] || session.id > all[0].id)) sessions.value = [session, ...all];
  else aside.value = session;
}

/** change changes the title or the model of a conversation. */
export async function change(id: string, body: Schema["SessionChange"]) {
  put(await got(api.PATCH("/api/v1/sessions/{session}", { params: { path: { session: id } }, body })));
}

export const rename = (id: string, title: string) => change(id, { title });

export async function remove(id: string) {
  await got(api.DELETE("/api/v1/sessions/{session}", { params: { path: { session: id } } }));
  sessions.value = sessions.value?.filter((s) => s.id !== id);
}

/** useFreshSessions reloads the list while it is visible. */
export function useFreshSessions(every = 15_000) {
  useEffect(() => {
    void refreshSessions().catch((error) => sessions.value || failed(error));
    const look = () => document.visibilityState === "visible" && void refreshSessions().catch(() => {});
    const timer = setInterval(look, every);
    document.addEventListener("visibilitychange", look);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", look);
    };
  }, []);
}

/** titleFrom returns a title made from the first message. */
export function titleFrom(text: string, most = 60): string {
  const line = text
    .trim()
    .split("\n")[0]!
    .replace(/^[#>*\s-]+|[`*]+/g, "")
    .replace(/\s+/g, " ");
  const letters = [...line];
  if (letters.length <= most) return line;
  const cut = letters.slice(0, most).join("");
  const blank = cut.lastIndexOf(" ");
  return `${blank > most / 2 ? cut.slice(0, blank) : cut}…`;
}
