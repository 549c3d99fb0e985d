import { msg } from "../../shared/i18n/messages";

/** listed joins names, each in quotation marks. */
export const listed = (items: string[]): string =>
  items.map((name) => msg("compose.quoted", { name })).join(msg("compose.listComma"));
