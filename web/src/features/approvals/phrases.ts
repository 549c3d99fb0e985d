import { msg } from "../../shared/i18n/messages";

/** pendingText says how many requests are pending. */
export const pendingText = (count: number): string => msg("approvals.waits", { count });
