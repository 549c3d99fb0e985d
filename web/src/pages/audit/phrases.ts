import { msg } from "../../shared/i18n/messages";

/** shownRecords says how many records are shown, and whether there are more. */
export const shownRecords = (count: number, more: boolean): string =>
  more ? msg("audit.shownMore", { count }) : msg("audit.shown", { count });
