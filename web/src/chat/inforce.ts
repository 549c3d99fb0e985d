import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { api, type Asked, got, type Schema, useAsked } from "../api/client";
import { me } from "../api/me";
import { usePlaces } from "../library/places";
import { w } from "./words";

export type InForce = Schema["ChatInForce"];

/** The skills in force in a conversation, asked for again when `at` is another number. */
export function useInForce(id: string, at: number): Asked<InForce[]> {
  const asked = useAsked(async (signal) => (await got(api.GET("/api/v1/sessions/{session}/skills", { params: { path: { session: id } }, signal }))).items, [id, at]);
  useEffect(() => {
    const more = (asked.data ?? []).flatMap((f): [string, string][] => (f.namespace ? [[keyOf(f.skill), f.namespace]] : []));
    if (more.some(([key, home]) => homes.value.get(key) !== home)) homes.value = new Map([...homes.value, ...more]);
  }, [asked.data]);
  return asked;
}

/** Where skills are at home, as far as it was said; a transcript has only the label of the source. */
const homes = signal(new Map<string, string>());

const keyOf = (id: Schema["SessionID"]) => `${id.origin}/${id.dir}`;

/** Says where a skill came from: its namespace where that is known, else the source; "" of what an agent has bound. */
export function useFrom(): (id: Schema["SessionID"]) => string {
  const place = usePlaces();
  return (id) => {
    const home = homes.value.get(keyOf(id));
    if (home === `user:${me.value?.user.id}`) return w().origins.mine!;
    if (home) return w().origins[home] ?? place(home);
    return /^agent(\.|$)/.test(id.origin) ? "" : (w().origins[id.origin] ?? id.origin);
  };
}
