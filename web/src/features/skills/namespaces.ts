import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { api, got, type Schema } from "../../shared/api/client";
import { hasRole, isAdmin, me } from "../../shared/api/me";
import { msg } from "../../shared/i18n/messages";
import { failed } from "../../shared/ui";

const groups = signal<Schema["Group"][]>();
const knownUsers = signal<Schema["User"][]>();

const most = 500;

/** useGroups returns the user's groups once they are wanted and loaded. */
export function useGroups(wanted = true): Schema["Group"][] {
  useEffect(() => {
    if (groups.value || !wanted) return;
    groups.value = [];
    got(api.GET("/api/v1/groups", { params: { query: { limit: most } } })).then(
      (page) => (groups.value = page.items),
      failed,
    );
  }, [wanted]);
  return groups.value ?? [];
}

/** useUserNames returns a function that names users, once wanted. Unknown users have their ID as name. */
export function useUserNames(wanted = true): (id: string) => string {
  useEffect(() => {
    if (knownUsers.value || !wanted) return;
    knownUsers.value = [];
    got(api.GET("/api/v1/users", { params: { query: { limit: most } } })).then(
      (page) => (knownUsers.value = page.items),
      () => undefined,
    );
  }, [wanted]);
  return (id) => {
    if (id === me.value?.user.id) return msg("library.you");
    const found = knownUsers.value?.find((u) => u.id === id);
    return found ? found.display || found.name : id;
  };
}

/** useNamespaceNames returns a function that names namespaces, once wanted. */
export function useNamespaceNames(wanted = true): (namespace: string) => string {
  const all = useGroups(wanted);
  const person = useUserNames(wanted);
  return (namespace) => {
    const [kind, id = ""] = namespace.split(/:(.*)/s);
    if (namespace === "public") return msg("library.everybody");
    const readOnly = readOnlyScopes().find(([n]) => n === namespace);
    if (readOnly) return readOnly[1];
    if (kind === "group") {
      const group = all.find((g) => g.id === id);
      return group ? group.display || group.name : msg("library.aGroup");
    }
    return id === me.value?.user.id ? msg("library.mine") : person(id);
  };
}

/** readOnlyScopes returns the namespaces that only the hub changes. */
export const readOnlyScopes = (): [namespace: string, name: string][] => [
  ["hub", msg("library.operator")],
  ["bundled", msg("library.bundled")],
];

/** useScopes returns the namespaces that the user may upload to: the user's own, and those of groups. */
export function useScopes(): [namespace: string, name: string][] {
  const all = useGroups();
  const mine = me.value ? `user:${me.value.user.id}` : "";
  return [
    [mine, msg("library.mine")],
    ...all.map((g): [string, string] => [`group:${g.id}`, g.display || g.name]),
    ["public", msg("library.everybody")],
  ];
}

/** mayAdd reports whether the user may add skills to a namespace. */
export function mayAdd(namespace: string): boolean {
  const [kind, id = ""] = namespace.split(":");
  return kind === "user" || (kind === "group" ? hasRole(id, "developer") : isAdmin.value);
}
