import { isAdmin, me } from "../../shared/api/me";
import { groupsByID } from "../users/users";

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
