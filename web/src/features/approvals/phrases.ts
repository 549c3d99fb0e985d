import { msg } from "../../shared/i18n/messages";

/** waits says how many requests are pending. */
export const waits = (count: number): string => msg("approvals.waits", { count });
