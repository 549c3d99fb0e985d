import { signal } from "@preact/signals";
import { useEffect, useId } from "preact/hooks";
import { api, got, type Schema } from "../../shared/api/client";
import { me } from "../../shared/api/me";
import { findMsg, msg } from "../../shared/i18n/messages";
import { failed, Field } from "../../shared/ui";

type User = Schema["User"];
type Group = Schema["Group"];

/** The limit of loaded users. Further users appear by ID. */
const most = 2000;

const users = signal<Map<string, User>>(new Map());
const groups = signal<Map<string, Group>>(new Map());
let asked: Promise<void> | undefined;
let askedGroups: Promise<void> | undefined;

interface Pages<T> {
  items: T[];
  next?: string;
}

async function all<T>(ask: (after?: string) => Promise<Pages<T>>): Promise<T[]> {
  const out: T[] = [];
  for (let after: string | undefined; ;) {
    const page = await ask(after);
    out.push(...page.items);
    after = page.next;
    if (!after || out.length >= most) return out;
  }
}

/** again reloads the users, for example after one was added. If that fails, the known names stay. */
export function again(): Promise<void> {
  const found = all((after) => got(api.GET("/api/v1/users", { params: { query: { limit: 500, after } } })));
  const mine = found.then(
    (found) => {
      if (asked === mine) users.value = new Map(found.map((u) => [u.id, u]));
    },
    () => {
      if (asked === mine) asked = undefined; // IDs are shown in place of names
    },
  );
  return (asked = mine);
}

/** regroup reloads the groups, for example after one was added. */
export function regroup(): Promise<void> {
  const found = all((after) => got(api.GET("/api/v1/groups", { params: { query: { limit: 500, after } } })));
  const mine = found.then(
    (found) => {
      if (askedGroups === mine) groups.value = new Map(found.map((g) => [g.id, g]));
    },
    (error) => {
      if (askedGroups === mine) askedGroups = undefined;
      throw error;
    },
  );
  return (askedGroups = mine);
}

/** useUserMap returns the users once they are wanted and loaded. */
export function useUserMap(wanted = true): ReadonlyMap<string, User> {
  useEffect(() => {
    if (wanted && !asked) void again();
  }, [wanted]);
  return users.value;
}

/** useGroupMap returns the groups that the user sees once they are wanted and loaded. */
export function useGroupMap(wanted = true): ReadonlyMap<string, Group> {
  useEffect(() => {
    if (wanted && !askedGroups) regroup().catch(failed); // tried again by the next component
  }, [wanted]);
  return groups.value;
}

/** useUserNames makes a component redraw when names are loaded. */
export const useUserNames = () => ({ users: useUserMap(), groups: useGroupMap() });

/** groupsByID loads the groups unless they are loaded. */
export async function groupsByID(): Promise<ReadonlyMap<string, Group>> {
  await (askedGroups ?? regroup());
  return groups.value;
}

/** forget clears the names, because another user may see other names. */
export function forget() {
  asked = undefined;
  askedGroups = undefined;
  users.value = new Map();
  groups.value = new Map();
}

/** userName returns the name for a user ID. Administrators are named only to some users. */
export function userName(id: string): string {
  if (id === "") return msg("account.nobody");
  if (id === me.value?.user.id) return me.value.user.name;
  return (
    users.value.get(id)?.name ?? (users.value.size > 0 && !me.value?.user.account?.admin ? msg("account.another") : id)
  );
}

/** groupName returns the name for a group ID. */
export const groupName = (id: string): string => groups.value.get(id)?.display || groups.value.get(id)?.name || id;

/** namespaceName names a namespace: user:ID, group:ID, public, or the hub if undefined. */
export function namespaceName(namespace: string | undefined): string {
  if (!namespace) return msg("account.hub");
  if (namespace === "public") return msg("account.everybody");
  const [kind, id = ""] = namespace.split(":");
  if (kind === "user") return id === me.value?.user.id ? msg("account.you") : userName(id);
  return groupName(id);
}

/** roleName returns the label of a role. */
export const roleName = (role: string): string => findMsg("account.roles", role) ?? role;

/** userID returns the user ID for a name, an ID or "me". */
export async function userID(written: string): Promise<string> {
  if (written === "me" || users.value.has(written)) return written;
  for (const u of users.value.values()) if (u.name === written.toLowerCase()) return u.id;
  const found = await got(api.GET("/api/v1/users", { params: { query: { name: written.toLowerCase() } } }));
  return found.items[0]?.id ?? written;
}

/** UserField is a text field for a user name, with suggestions. */
export function UserField({
  label,
  hint,
  value,
  onText,
  required,
}: {
  label?: string;
  hint?: string;
  value: string;
  onText: (text: string) => void;
  required?: boolean;
}) {
  useUserNames();
  const list = useId();
  return (
    <Field label={label ?? msg("account.person")} hint={hint}>
      {(a) => (
        <>
          <input
            class="input"
            list={list}
            value={value}
            onInput={(e) => onText(e.currentTarget.value)}
            autocomplete="off"
            autocapitalize="none"
            spellcheck={false}
            required={required}
            {...a}
          />
          <datalist id={list}>
            {[...users.value.values()].slice(0, 500).map((u) => (
              <option key={u.id} value={u.name}>
                {u.display}
              </option>
            ))}
          </datalist>
        </>
      )}
    </Field>
  );
}
