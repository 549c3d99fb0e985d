import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { api, got, type Schema } from "../../shared/api/client";
import { me } from "../../shared/api/me";
import { store, stored } from "../../shared/i18n/storage";
import { failed } from "../../shared/ui";

export type Session = Schema["Session"];

export type Folder = Schema["ChatConversationFolder"];

/** A loaded part of a list of conversations: the pinned ones first, then those with the latest messages. */
interface List {
  items: Session[];
  /** The cursor of the next page. */
  next?: string;
}

/** The names of the lists besides those of folders, which are named by their ID. */
export const unfiled = "none";
export const archived = "archived";

const lists = signal<Record<string, List>>({});

/** The user's folders by name, or undefined until loaded. */
export const folders = signal<Folder[]>();

/** The conversation whose folder the user chooses. */
export const sessionToMove = signal<Session>();

/** Whether the list shows the archived conversations. */
export const showArchived = signal(false);

const openKey = "loadout.chat.folders";

/** The IDs of the folders that are open. */
export const openFolders = signal<readonly string[]>(stored(openKey)?.split(" ") ?? []);

export function toggleFolder(id: string) {
  const open = openFolders.value;
  openFolders.value = open.includes(id) ? open.filter((o) => o !== id) : [...open, id];
  store(openKey, openFolders.value.join(" ") || null);
  if (openFolders.value.includes(id)) void refresh(id).catch(failed);
}

/** listOf returns a loaded list. */
export const listOf = (name: string): List | undefined => lists.value[name];

/** unpinned returns the conversations of a folder that are not listed as pinned. */
export const unpinned = (name: string) => (listOf(name)?.items ?? []).filter((s) => !s.pinned);

export const pinned = () => (listOf(unfiled)?.items ?? []).filter((s) => s.pinned);

/** displayed returns the conversations in the order in which the page lists them. */
export function displayed(): Session[] {
  if (showArchived.value) return listOf(archived)?.items ?? [];
  const open = (folders.value ?? []).filter((f) => openFolders.value.includes(f.id));
  return [...pinned(), ...open.flatMap((f) => unpinned(f.id)), ...unpinned(unfiled)];
}

const page = 50;

const get = (name: string, after?: string) => {
  const query = name === archived ? { archived: true } : { folder: name };
  return got(api.GET("/api/v1/sessions", { params: { query: { ...query, limit: page, after } } }));
};

const setList = (name: string, list: List) => (lists.value = { ...lists.value, [name]: list });

/** before compares two conversations by their order in a list: the pinned ones first, then by the last message. */
function before(a: Session, b: Session): boolean {
  if (!!a.pinned !== !!b.pinned) return !!a.pinned;
  const later = Date.parse(a.last_message) - Date.parse(b.last_message);
  return later ? later > 0 : a.id > b.id;
}

/** refresh loads the first page of a list and keeps the later ones. */
export async function refresh(name: string) {
  const { items, next } = await get(name);
  const last = items.at(-1);
  const known = new Set(items.map((s) => s.id)); // a message moves one to the first page
  const later = next && last ? (listOf(name)?.items ?? []).filter((s) => !known.has(s.id) && before(last, s)) : [];
  setList(name, { items: [...items, ...later], next: later.length ? listOf(name)!.next : next });
}

/** reloadShown loads as many conversations of a list as were loaded before, because any of them may be new to it. */
export async function reloadShown(name: string) {
  const shown = listOf(name)?.items.length ?? 0;
  let { items, next } = await get(name);
  while (next && items.length < shown) {
    const page = await get(name, next);
    items = [...items, ...page.items];
    next = page.next;
  }
  setList(name, { items, next });
}

export async function more(name: string) {
  const { items, next } = await get(name, listOf(name)?.next);
  const known = new Set(items.map((s) => s.id));
  setList(name, { items: [...(listOf(name)?.items ?? []).filter((s) => !known.has(s.id)), ...items], next });
}

export async function refreshFolders() {
  const { items } = await got(api.GET("/api/v1/folders"));
  folders.value = items.sort((a, b) => a.name.localeCompare(b.name));
}

/** refreshOpen loads the lists of the open folders. */
const refreshOpen = () =>
  Promise.all(openFolders.value.filter((id) => folders.value?.some((f) => f.id === id)).map(refresh));

/** refreshSessions loads the shown lists again. */
const refreshSessions = () =>
  Promise.all([refreshFolders(), ...(showArchived.value ? [refresh(archived)] : [refresh(unfiled), refreshOpen()])]);

/** idle runs a function at an idle moment. Safari has no idle callbacks. */
const idle = (run: () => void) => void (window.requestIdleCallback?.(run, { timeout: 1000 }) ?? setTimeout(run));

/** sessionOf returns a loaded conversation. */
export function sessionOf(id: string): Session | undefined {
  for (const list of Object.values(lists.value)) {
    const found = list.items.find((s) => s.id === id);
    if (found) return found;
  }
  return aside.value?.id === id ? aside.value : undefined;
}

/** An open conversation that is in no loaded list, because it is old, temporary or another user's. */
const aside = signal<Session>();

/** holds reports whether a list has a conversation. */
function holds(name: string, s: Session): boolean {
  if (name === archived || s.archived) return name === archived && !!s.archived;
  return name === unfiled ? !!s.pinned || !s.folder : s.folder === name;
}

/** put updates a conversation in all loaded lists. */
export function put(session: Session) {
  const mine = !session.trial && (!me.value || session.owner === me.value.user.id);
  let found = false;
  const updated = Object.entries(lists.value).map(([name, list]) => {
    const items = list.items.filter((s) => s.id !== session.id);
    const last = items.at(-1);
    if (mine && holds(name, session) && (!list.next || (last && before(session, last)))) {
      found = true;
      const at = items.findIndex((s) => before(session, s));
      items.splice(at < 0 ? items.length : at, 0, session);
    }
    return [name, { ...list, items }];
  });
  lists.value = Object.fromEntries(updated) as Record<string, List>;
  if (!found) aside.value = session;
}

/** reload updates a conversation from the hub. */
export async function reload(id: string) {
  const session = await got(api.GET("/api/v1/sessions/{session}", { params: { path: { session: id } } }));
  put(session);
  return session;
}

/** change changes a conversation. */
export async function change(id: string, body: Schema["SessionChange"]) {
  put(await got(api.PATCH("/api/v1/sessions/{session}", { params: { path: { session: id } }, body })));
  if ((body.folder ?? body.pinned ?? body.archived) !== undefined) await refreshFolders();
}

export const rename = (id: string, title: string) => change(id, { title });

export async function remove(id: string) {
  await got(api.DELETE("/api/v1/sessions/{session}", { params: { path: { session: id } } }));
  for (const [name, list] of Object.entries(lists.value))
    setList(name, { ...list, items: list.items.filter((s) => s.id !== id) });
  await refreshFolders();
}

/** useFreshSessions reloads the shown lists while they are visible. */
export function useFreshSessions() {
  const view = showArchived.value ? archived : unfiled;
  useEffect(() => {
    const load = async () => {
      if (folders.value) return refreshSessions();
      await refresh(view);
      idle(() => void refreshFolders().then(refreshOpen).catch(failed)); // not at the first sight
    };
    void load().catch((error) => listOf(view) || failed(error));
    const look = () => document.visibilityState === "visible" && void refreshSessions().catch(() => {});
    const timer = setInterval(look, 15_000);
    document.addEventListener("visibilitychange", look);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", look);
    };
  }, [view]);
}
