import { hasRole, isAdmin, me } from "../../shared/api/me";

/**
 * owners returns the owners whose secrets can be used in a namespace: the user first, then the
 * groups the user manages. The hub refuses other groups.
 */
export function owners(namespace = "default"): string[] {
  if (namespace === "default") return ["default"];
  const manages = me.value?.groups.some((g) => hasRole(g.group, "maintainer")) ?? false;
  return isAdmin.value || (manages && namespace !== "public") ? ["default", namespace] : ["default"];
}
