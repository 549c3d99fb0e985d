import type { Schema } from "../api/client";

/** A diagnostic of the hub at a line, with the edit that fixes it. */
export type Finding = Schema["Diagnostic"] & { apply?: () => void };
