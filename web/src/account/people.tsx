import { signal } from "@preact/signals";
import { useEffect, useId } from "preact/hooks";
import { api, got, type Schema } from "../api/client";
import { me } from "../api/me";
import { Field } from "../ui";
import { w } from "./words";

type User = Schema["User"];
type Group = Schema["Group"];

/** How many are asked for at most: of more, some are shown by their ids. */
const most = 2000;

const users = signal<Map<string, User>>(new Map());
const groups = signal<Map<string, Group>>(new Map());
let asked: Promise<void> | undefined;

interface Pages<T> {
  items: T[];
  next?: string;
}

async function all<T>(ask: (after?: string) => Promise<Pages<T>>): Promise<T[]> {
  const out: T[] = [];
  for (let after: string | undefined; ; ) {
    const page = await ask(after);
    out.push(...page.items);
    after = page.next;
    if (!after || out.length >= most) return out;
  }
}

/** Find out who there is. What fails leaves ids where names would be. */
async function find() {
  const found = await all((after) => got(api.GET("/api/v1/users", { params: { query: { limit: 500, after } } })));
  users.value = new Map(found.map((u) => [u.id, u]));
  await regroup();
}

/** Ask again which groups there are, as after one was made. */
export async function regroup() {
  const found = await all((after) => got(api.GET("/api/v1/groups", { params: { query: { limit: 500, after } } })));
  groups.value = new Map(found.map((g) => [g.id, g]));
}

/** Names for ids, in components that show who did something or where it is. */
export function usePeople() {
  useEffect(() => {
    asked ??= find().catch(() => (asked = undefined));
  }, []);
  return { users: users.value, groups: groups.value };
}

/** Ask again who there is, as after somebody was made. */
export const again = () => (asked = find());

/** Forget who there is, as when somebody else signs in, who may see others. */
export function forget() {
  asked = undefined;
  users.value = new Map();
  groups.value = new Map();
}

/** Somebody by name, from the id. */
export function personName(id: string): string {
  if (id === "") return w().nobody;
  if (id === me.value?.user.id) return me.value.user.name;
  return users.value.get(id)?.name ?? id;
}

/** A group by name, from its id. */
export const groupName = (id: string): string => groups.value.get(id)?.display || groups.value.get(id)?.name || id;

/** A namespace in words: user:ID, group:ID, public, and the hub where it is none. */
export function placeName(namespace: string | undefined): string {
  if (!namespace) return w().hub;
  if (namespace === "public") return w().everybody;
  const [kind, id = ""] = namespace.split(":");
  if (kind === "user") return id === me.value?.user.id ? w().you : personName(id);
  return groupName(id);
}

/** A role in words. */
export const roleName = (role: string): string => w().roles[role] ?? role;

/** The id of who is written as a name, an id, or me. */
export async function personId(written: string): Promise<string> {
  if (written === "me" || users.value.has(written)) return written;
  for (const u of users.value.values()) if (u.name === written.toLowerCase()) return u.id;
  const found = await got(api.GET("/api/v1/users", { params: { query: { name: written.toLowerCase() } } }));
  return found.items[0]?.id ?? written;
}

/** Somebody by name, with those whom one may mean offered. */
export function PersonField({ label, hint, value, onText, required }: { label?: string; hint?: string; value: string; onText: (text: string) => void; required?: boolean }) {
  usePeople();
  const list = useId();
  return (
    <Field label={label ?? w().person} hint={hint}>
      {(a) => (
        <>
          <input class="input" list={list} value={value} onInput={(e) => onText(e.currentTarget.value)} autocomplete="off" autocapitalize="none" spellcheck={false} required={required} {...a} />
          <datalist id={list}>{[...users.value.values()].slice(0, 500).map((u) => <option key={u.id} value={u.name}>{u.display}</option>)}</datalist>
        </>
      )}
    </Field>
  );
}
