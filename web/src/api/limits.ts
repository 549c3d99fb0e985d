import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { api, got, type Schema } from "./client";

const known = signal<Schema["Limits"]>();
let asked: Promise<Schema["Limits"]> | undefined;

/** The most that the hub takes; it is asked once. */
export function limits(): Promise<Schema["Limits"]> {
  return (asked ??= got(api.GET("/api/v1/about")).then(
    (about) => (known.value = about.limits),
    (error) => {
      asked = undefined;
      throw error;
    },
  ));
}

/** The same in a component, once it is known. */
export function useLimits(): Schema["Limits"] | undefined {
  useEffect(() => void limits().catch(() => undefined), []); // what is too large is refused by the hub as well
  return known.value;
}
