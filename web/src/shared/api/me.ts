import { computed, signal } from "@preact/signals";
import { api, got, signedOut, type Schema } from "./client";

/** The signed-in user, undefined until loaded. */
export const me = signal<Schema["Me"]>();

/** The ways to sign in, undefined until loaded. */
export const ways = signal<Schema["Ways"]>();

/** Whether the user is an administrator. The user of a single-user hub is one. */
export const isAdmin = computed(() => me.value?.user.account?.admin === true || ways.value?.mode === "single");

/** loadMe loads the signed-in user, or else the ways to sign in. */
export async function loadMe() {
  const { data, response } = await api.GET("/api/v1/me");
  ways.value = data?.ways ?? (await got(api.GET("/api/v1/login")));
  me.value = data;
  signedOut.value = response.status === 401;
}

/** Whether the user can review anything. */
export const reviews = computed(() => isAdmin.value || !!me.value?.can.review.length);

/**
 * mayReview reports whether the user may review a version in a namespace. Uploaders cannot review
 * their own versions.
 */
export function mayReview(namespace: string, version: { createdBy: string }): boolean {
  if (isAdmin.value) return true;
  return version.createdBy !== me.value?.user.id && !!me.value?.can.review.includes(namespace.replace(/^group:/, ""));
}

const ranks = ["reporter", "developer", "maintainer", "owner"] as const;

/** hasRole reports whether the user has at least a role in a group, or is an administrator. */
export function hasRole(group: string, least: (typeof ranks)[number]): boolean {
  if (isAdmin.value) return true;
  const role = me.value?.groups.find((g) => g.group === group)?.role;
  return role !== undefined && ranks.indexOf(role) >= ranks.indexOf(least);
}

export async function signOut() {
  await got(api.POST("/api/v1/logout"));
  location.reload(); // clears the memory of this user's data
}
