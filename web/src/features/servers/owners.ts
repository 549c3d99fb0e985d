import { hasRole, isAdmin, me } from "../../shared/api/me";
import { groupsByID } from "../users/users";
import type { Server } from "./state";

/**
 * owners returns the owners whose secrets the user may list for a namespace: the user first, then
 * the group of the namespace if the user manages it. The hub refuses other groups, also to
 * administrators.
 */
export async function owners(namespace = "default"): Promise<string[]> {
  if (namespace === "default") return ["default"];
  if (namespace === "public") return isAdmin.value ? ["default", namespace] : ["default"];
  const managed = me.value?.groups.filter((g) => g.role === "maintainer" || g.role === "owner") ?? [];
  const byID = managed.length ? await groupsByID() : undefined;
  const manages = managed.some((g) => namespace === `group:${g.group}` || namespace === byID?.get(g.group)?.name);
  return manages ? ["default", namespace] : ["default"];
}

/** mayTest reports whether the user may test and restart a server: whoever may change its definition. */
export async function mayTest({ kind, namespace = "default" }: Pick<Server, "kind" | "namespace">): Promise<boolean> {
  if (isAdmin.value || !kind || namespace === "public") return isAdmin.value;
  if (namespace === "default" || namespace.startsWith("user:")) return true;
  const groups = [...(await groupsByID()).values()];
  const group = groups.find((g) => g.name === namespace || `group:${g.id}` === namespace);
  return !!group && hasRole(group.id, kind === "MCPServer" ? "maintainer" : "developer");
}
