import type { Schema } from "../../../shared/api/client";
import { findMsg } from "../../../shared/i18n/messages";

/**
 * reasonOf returns why a package was refused, in the language of the page if the code is known. The
 * numbers and quoted names of the hub's text fill the placeholders.
 */
export function reasonOf({ where, message, code = "" }: Schema["Fault"]): Schema["Fault"] {
  const values = message.match(/"(?:[^"\\]|\\.)*"|\d+/g) ?? [];
  const params = Object.fromEntries(values.map((value, i) => [String(i + 1), value]));
  return { where: where === "package" ? "" : where, message: findMsg("add.reasons", code, params) ?? message };
}
