import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { api, got, type Schema } from "./client";

const known = signal<Schema["Limits"]>();
let asked: Promise<Schema["Limits"]> | undefined;

/** limits loads the limits of the hub, once. */
export function limits(): Promise<Schema["Limits"]> {
  return (asked ??= got(api.GET("/api/v1/about")).then(
    (about) => (known.value = about.limits),
    (error) => {
      asked = undefined;
      throw error;
    },
  ));
}

/** useLimits returns the limits once they are loaded. */
export function useLimits(): Schema["Limits"] | undefined {
  useEffect(() => void limits().catch(() => undefined), []); // the hub enforces its limits as well
  return known.value;
}
