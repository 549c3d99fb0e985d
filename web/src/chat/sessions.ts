import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { api, got, type Schema } from "../api/client";
import { failed } from "../ui";

export type Session = Schema["Session"];

/** The conversations of who is signed in, those that began last first; undefined until they are known. */
export const sessions = signal<Session[]>();

/** Where more of them begin. */
export const rest = signal<string>();

const page = 50;

const get = (after?: string) => got(api.GET("/api/v1/sessions", { params: { query: { limit: page, after } } }));

/** Gets the newest, and leaves older ones that were got before. */
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

/** What is known of a conversation. */
export const sessionOf = (id: string): Session | undefined => sessions.value?.find((s) => s.id === id) ?? (aside.value?.id === id ? aside.value : undefined);

/** One that is not among those in the list: old, or somebody else's. */
const aside = signal<Session>();

/** Notes what a conversation is now. */
export function put(session: Session) {
  const all = sessions.value ?? [];
  if (all.some((s) => s.id === session.id)) sessions.value = all.map((s) => (s.id === session.id ? session : s));
  else if (sessions.value && (!all[0] || session.id > all[0].id)) sessions.value = [session, ...all];
  else aside.value = session;
}

export async function rename(id: string, title: string) {
  put(await got(api.PATCH("/api/v1/sessions/{session}", { params: { path: { session: id } }, body: { title } })));
}

export async function remove(id: string) {
  await got(api.DELETE("/api/v1/sessions/{session}", { params: { path: { session: id } } }));
  sessions.value = sessions.value?.filter((s) => s.id !== id);
}

/** Keeps the list fresh while it is looked at. */
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

/** A title made of what was said first. */
export function titleFrom(text: string, most = 60): string {
  const line = text.trim().split("\n")[0]!.replace(/^[#>*\s-]+|[`*]+/g, "").replace(/\s+/g, " ");
  const letters = [...line];
  if (letters.length <= most) return line;
  const cut = letters.slice(0, most).join("");
  const blank = cut.lastIndexOf(" ");
  return `${blank > most / 2 ? cut.slice(0, blank) : cut}…`;
}
