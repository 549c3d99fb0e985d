import { hasRole, isAdmin, me } from "../api/me";

/**
 * Whose secrets something in a namespace can have: one's own come first, then those of the namespace,
 * which are asked for where one manages a group at all. Of another group the hub says no.
 */
export function owners(namespace = "default"): string[] {
  if (namespace === "default") return ["default"];
  const manages = me.value?.groups.some((g) => hasRole(g.group, "maintainer")) ?? false;
  return isAdmin.value || (manages && namespace !== "public") ? ["default", namespace] : ["default"];
}
