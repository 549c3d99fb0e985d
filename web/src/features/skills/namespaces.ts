import type { Schema } from "../../shared/api/client";
import { hasRole, isAdmin, me } from "../../shared/api/me";
import { msg } from "../../shared/i18n/messages";
import { useGroupMap, useUserMap } from "../users/users";

/** useGroups returns the user's groups once they are wanted and loaded. */
export const useGroups = (wanted = true): Schema["Group"][] => [...useGroupMap(wanted).values()];

/** useUserNames returns a function that names users, once wanted. Unknown users have their ID as name. */
export function useUserNames(wanted = true): (id: string) => string {
  const users = useUserMap(wanted);
  return (id) => {
    if (id === me.value?.user.id) return msg("library.you");
    const found = users.get(id);
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
  if (readOnlyScopes().some(([n]) => n === namespace)) return false;
  return kind === "user" || (kind === "group" ? hasRole(id, "developer") : isAdmin.value);
}

/** mayAddVersion reports whether the user may add a version of a skill. */
export function mayAddVersion({ namespace, createdBy }: Schema["Skill"]): boolean {
  const [kind, id = ""] = namespace.split(":");
  const user = me.value?.user.id ?? "";
  if (kind === "user") return id === user || isAdmin.value;
  return mayAdd(namespace) && (kind !== "group" || createdBy === user || hasRole(id, "maintainer"));
}
