import { signal } from "@preact/signals";

/** The language that the page is shown in, as a BCP 47 tag such as "en". It is the name of a message file. */
export const language = signal("en");
