import type { ComponentChildren } from "preact";
import { msg } from "../i18n/messages";

/**
 * Invisible characters that change how text reads: direction marks, zero-width characters, and tags
 * that only models see. Reviewers must see them.
 */
const hidden =
  /[\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;

/** shown returns code with its invisible characters made visible. */
export function shown(text: string): ComponentChildren {
  if (text.search(hidden) < 0) return text;
  const out: ComponentChildren[] = [];
  let at = 0;
  for (const found of text.matchAll(hidden)) {
    const code = "U+" + found[0].codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0");
    out.push(
      text.slice(at, found.index),
      <span key={found.index} class="content-invisible" title={msg("content.hidden", { code })}>
        {code}
      </span>,
    );
    at = found.index + found[0].length;
  }
  out.push(text.slice(at));
  return out;
}
