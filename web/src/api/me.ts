import { computed, signal } from "@preact/signals";
import { api, got, signedOut, type Schema } from "./client";

/** Who is signed in; undefined until it is known. */
export const me = signal<Schema["Me"]>();

/** How people sign in here; undefined until it is known. */
export const ways = signal<Schema["Ways"]>();

/** Whether who is signed in is an administrator, as the one user of a hub without accounts is. */
export const isAdmin = computed(() => me.value?.user.account?.admin === true || ways.value?.mode === "single");

/** Find out who is signed in. */
export async function meet() {
  ways.value = await got(api.GET("/api/v1/login"));
  const { data, response } = await api.GET("/api/v1/me");
  me.value = data;
  signedOut.value = response.status === 401;
}

/** Whether there is anything that who is signed in may review. */
export const reviews = computed(() => isAdmin.value || !!me.value?.can.review.length);

/** Whether who is signed in may review a version of a skill of a namespace: it is the version's uploader that counts, not the skill's. */
export function mayReview(namespace: string, version: { createdBy: string }): boolean {
  if (isAdmin.value) return true;
  return version.createdBy !== me.value?.user.id && !!me.value?.can.review.includes(namespace.replace(/^group:/, ""));
}

const ranks = ["reporter", "developer", "maintainer", "owner"] as const;

/** Whether who is signed in has at least that role in a group (by its id), or is an administrator. */
export function hasRole(group: string, least: (typeof ranks)[number]): boolean {
  if (isAdmin.value) return true;
  const role = me.value?.groups.find((g) => g.group === group)?.role;
  return role !== undefined && ranks.indexOf(role) >= ranks.indexOf(least);
}

export async function signOut() {
  await got(api.POST("/api/v1/logout"));
  location.reload(); // so that nothing of this person stays in memory
}
