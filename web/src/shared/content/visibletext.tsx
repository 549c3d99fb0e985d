import type { ComponentChildren } from "preact";
import { msg } from "../i18n/messages";

/**
 * Characters that no one sees, but that control a terminal, reorder text or are read by models:
 * those of internal/untrusted with fewer exceptions for scripts. Readers must see them. The first
 * group matches the sequences of emoji and letters in which such characters belong.
 */
const hidden = new RegExp(
  [
    "(\\u{1f3f4}\\u{e0067}\\u{e0062}(?:\\u{e0065}\\u{e006e}\\u{e0067}|\\u{e0073}\\u{e0063}\\u{e0074}|\\u{e0077}\\u{e006c}\\u{e0073})\\u{e007f}",
    "(?<=\\p{Extended_Pictographic})[\\ufe0e\\ufe0f]",
    "(?<=[0-9#*])\\ufe0f(?=\\u20e3)",
    "(?<=\\p{Extended_Pictographic}(?:\\ufe0f|[\\u{1f3fb}-\\u{1f3ff}])?)\\u200d(?=\\p{Extended_Pictographic})",
    "(?<=(?![اأإآدذرزژوؤة])\\p{Script=Arabic})\\u200c(?=\\p{Script=Arabic})",
    "(?<=[\\u094d\\u09cd\\u0a4d\\u0acd\\u0b4d\\u0bcd\\u0c4d\\u0ccd\\u0d4d\\u0dca])[\\u200c\\u200d])",
    "(?![\\t\\n])[\\p{Cc}\\p{Cs}\\p{Zl}\\p{Zp}\\p{Default_Ignorable_Code_Point}\\p{Noncharacter_Code_Point}\\ufff0-\\ufffb\\u{13430}-\\u{1343f}\\u{f0000}-\\u{10ffff}]",
  ].join("|"),
  "gu",
);

/** showHiddenCharacters returns text with its hidden characters made visible. */
export function showHiddenCharacters(text: string): ComponentChildren {
  const out: ComponentChildren[] = [];
  let at = 0;
  for (const found of text.matchAll(hidden)) {
    if (found[1]) continue;
    const code = "U+" + found[0].codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0");
    out.push(
      text.slice(at, found.index),
      <span key={found.index} class="content-invisible" title={msg("content.hidden", { code })}>
        {code}
      </span>,
    );
    at = found.index + found[0].length;
  }
  if (!out.length) return text;
  out.push(text.slice(at));
  return out;
}
