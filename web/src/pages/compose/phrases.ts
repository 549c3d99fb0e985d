import { msg } from "../../shared/i18n/messages";

/** listed joins names, each in quotation marks. */
export const listed = (items: string[]): string =>
  items.map((name) => msg("language.quoted", { name })).join(msg("language.listComma"));
