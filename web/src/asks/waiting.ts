import { signal } from "@preact/signals";

/** How many questions wait for whoever is signed in. */
export const waiting = signal(0);
